//! The socket serves the one client whose certificate Terraform named.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use netstead_testkit::{Process, has_commands};

const PROVIDER: &str = env!("CARGO_BIN_EXE_terraform-provider-netstead");
const COOKIE: &str = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2";

/// A certificate as Terraform makes one: a P-521 authority that is its own end entity.
fn certificate(dir: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (key, pem) = (dir.join(format!("{name}.key")), dir.join(format!("{name}.pem")));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:secp521r1",
            "-nodes",
            "-sha512",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "basicConstraints=critical,CA:TRUE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&pem)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (key, pem)
}

/// Whether a client with this certificate gets through the handshake.
fn is_served(socket: &str, certificate: Option<&(PathBuf, PathBuf)>) -> bool {
    let mut client = Command::new("openssl");
    // With TLS 1.2 a client knows at the end of the handshake that it was refused.
    client.args(["s_client", "-unix", socket, "-alpn", "h2", "-tls1_2"]);
    if let Some((key, pem)) = certificate {
        client.arg("-cert").arg(pem).arg("-key").arg(key);
    }
    client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn only_the_client_with_the_named_certificate_is_served_and_the_socket_is_gone_afterwards() {
    if !has_commands(&["openssl"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (ours, other) = (certificate(dir.path(), "ours"), certificate(dir.path(), "other"));
    let mut provider = Process::start(
        "provider",
        Command::new(PROVIDER)
            .env("TF_PLUGIN_MAGIC_COOKIE", COOKIE)
            .env("PLUGIN_PROTOCOL_VERSIONS", "5,6")
            .env("PLUGIN_UNIX_SOCKET_DIR", dir.path())
            .env("PLUGIN_CLIENT_CERT", fs::read_to_string(&ours.1).unwrap()),
    )
    .unwrap();
    let line = provider.wait_for_line("1|6|unix|", Duration::from_secs(30)).unwrap();
    let socket = line.split('|').nth(3).unwrap().to_owned();
    assert!(Path::new(&socket).starts_with(dir.path()), "{line}");
    assert!(!is_served(&socket, None));
    assert!(!is_served(&socket, Some(&other)));
    assert!(is_served(&socket, Some(&ours)));
    provider.terminate().unwrap();
    assert_eq!(provider.wait(Duration::from_secs(30)).unwrap().code(), Some(0));
    assert!(!Path::new(&socket).exists());
}

#[test]
fn started_by_hand_it_says_what_it_is() {
    let said = Command::new(PROVIDER).env_remove("TF_PLUGIN_MAGIC_COOKIE").output().unwrap();
    assert_eq!((said.status.code(), said.stdout.as_slice()), (Some(1), b"".as_slice()));
    assert_eq!(
        String::from_utf8(said.stderr).unwrap(),
        "error: this program is a plugin of Terraform and OpenTofu: they start it, people do not\n\
         hint: docs/guide/terraform.md shows how Terraform finds and starts it\n"
    );
}
