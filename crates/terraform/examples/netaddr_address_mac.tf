resource "netaddr_range_mac" "macs" {
  key_prefix    = "/ranges/macs/"
  first_address = "52:54:00:00:00:00"
  last_address  = "52:54:00:ff:ff:ff"
}

resource "netaddr_address_mac" "web" {
  range_id = netaddr_range_mac.macs.id
  name     = "web-1"
}
