resource "netaddr_range_mac" "macs" {
  key_prefix    = "/ranges/macs/"
  first_address = "52:54:00:00:00:00"
  last_address  = "52:54:00:ff:ff:ff"
}
