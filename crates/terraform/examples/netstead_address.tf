resource "netstead_address" "web" {
  pool     = "lan"
  key      = "web-1"
  hostname = "web-1"
  labels   = { role = "web" }
}

# The first of these pools with room.
resource "netstead_address" "db" {
  pools  = ["lan", "lab"]
  key    = "db-1"
  prefer = "10.0.3.60"
}

output "web" {
  value = "${netstead_address.web.address}/${netstead_address.web.prefix_length}"
}
