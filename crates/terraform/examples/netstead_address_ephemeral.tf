ephemeral "netstead_address" "build" {
  pool = "lan"
  key  = "image-build"
}

# Only what Terraform does not store can use it: provider blocks, provisioners and write-only attributes.
resource "terraform_data" "image" {
  provisioner "local-exec" {
    command = "./build-image --address ${ephemeral.netstead_address.build.address}"
  }
}
