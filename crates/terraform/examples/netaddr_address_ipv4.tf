resource "netaddr_range_ipv4" "lan" {
  key_prefix    = "/ranges/lan/"
  first_address = "10.0.3.50"
  last_address  = "10.0.3.200"
}

resource "netaddr_address_ipv4" "web" {
  range_id = netaddr_range_ipv4.lan.id
  name     = "web-1"
}

resource "netaddr_address_ipv4" "dns" {
  range_id          = netaddr_range_ipv4.lan.id
  name              = "dns-1"
  hardcoded_address = "10.0.3.53"
}
