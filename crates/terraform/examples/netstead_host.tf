resource "netstead_host" "vm" {
  name      = "vm-1"
  ipv4_pool = "lan"
  ipv6_pool = "lan6"
  mac_pool  = "macs"
  hostname  = "vm-1.home.example.net"
}
