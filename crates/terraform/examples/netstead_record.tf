resource "netstead_record" "mail" {
  name   = "home.example.net"
  type   = "MX"
  values = ["10 mail.home.example.net."]
  ttl    = 3600
}
