//! The mirror that `cargo xtask dist terraform` lays out, as `terraform init` installs from it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use netstead_testkit::{Terraform, skip};

#[test]
fn terraform_init_installs_the_provider_from_a_filesystem_mirror() {
    let provider = Path::new(env!("CARGO_BIN_EXE_terraform-provider-netstead"));
    let xtask: PathBuf = provider.with_file_name("xtask");
    if !xtask.is_file() {
        skip("xtask is not built: `cargo build -p xtask`");
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let laid_out = Command::new(&xtask)
        .args(["dist", "terraform", "--provider"])
        .arg(provider)
        .arg("--out")
        .arg(out.path())
        .output();
    let laid_out = laid_out.unwrap();
    assert!(laid_out.status.success(), "{}", String::from_utf8_lossy(&laid_out.stderr));
    let Some(terraform) = Terraform::new(provider) else { return };
    let mirror = out.path().join("mirror");
    terraform.use_mirror(&mirror).unwrap();
    terraform
        .write("output \"reverse\" {\n  value = provider::netstead::reverse_name(\"10.0.3.60\")\n}\n")
        .unwrap();
    let ran = |arguments: &[&str]| {
        let run = terraform.run(arguments).unwrap();
        assert_eq!(run.code, 0, "{arguments:?}: {}\n{}", run.out, run.err);
        run.out
    };
    let said = ran(&["init", "-no-color"]);
    assert!(said.contains("Installed netstead/netstead v"), "{said}");
    let lock = fs::read_to_string(terraform.path().join(".terraform.lock.hcl")).unwrap();
    assert!(lock.contains(&format!("{}/netstead/netstead", terraform.registry())), "{lock}");
    ran(&["apply", "-auto-approve", "-no-color"]);
    assert_eq!(ran(&["output", "-no-color", "-raw", "reverse"]), "60.3.0.10.in-addr.arpa");
}
