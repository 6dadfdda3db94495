resource "netaddr_address_ipv4_v2" "web" {
  range_ids = ["/ranges/lan-1/", "/ranges/lan-2/"]
  name      = "web-1"
}

output "range" {
  value = netaddr_address_ipv4_v2.web.found_in_range
}
