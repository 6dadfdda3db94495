data "netstead_usage" "lan" {
  pool = "lan"
}

check "room_in_lan" {
  assert {
    condition     = data.netstead_usage.lan.used_percent < 90
    error_message = "The pool lan is nearly full: ${data.netstead_usage.lan.free} addresses are left."
  }
}
