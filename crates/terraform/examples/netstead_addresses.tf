resource "netstead_addresses" "workers" {
  pool = "lan"
  keys = [for number in range(1, 101) : "worker-${number}"]
}

output "first_worker" {
  value = netstead_addresses.workers.addresses["worker-1"]
}
