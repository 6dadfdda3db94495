resource "netstead_pool" "sites" {
  name    = "sites"
  family  = "prefix"
  network = "10.8.0.0/16"
  length  = 24
}

resource "netstead_prefix" "ams" {
  pool = netstead_pool.sites.name
  key  = "ams"
}
