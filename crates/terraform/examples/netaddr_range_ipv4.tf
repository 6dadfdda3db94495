resource "netaddr_range_ipv4" "lan" {
  key_prefix    = "/ranges/lan/"
  first_address = "10.0.3.50"
  last_address  = "10.0.3.200"
}
