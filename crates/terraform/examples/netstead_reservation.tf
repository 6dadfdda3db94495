resource "netstead_reservation" "dhcp" {
  pool        = "lan"
  key         = "dhcp"
  range       = "10.0.3.100-10.0.3.120"
  description = "Handed out by the router"
}
