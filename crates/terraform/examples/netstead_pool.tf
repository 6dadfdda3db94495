resource "netstead_pool" "lan" {
  name    = "lan"
  network = "10.0.3.0/24"
  ranges  = ["10.0.3.50-10.0.3.200"]
  gateway = "10.0.3.1"
  domain  = "home.example.net"
  labels  = { site = "ams" }
}
