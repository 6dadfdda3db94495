use netstead_testkit::{Process, free_port};

use crate::sandbox::{SOON, Sandbox};

#[test]
fn a_server_with_a_certificate_is_trusted_by_its_authority() {
    let sandbox = Sandbox::empty();
    let port = free_port().unwrap();
    let made =
        rcgen::generate_simple_self_signed(vec!["ns.localhost".to_owned(), "localhost".to_owned()]).unwrap();
    std::fs::write(sandbox.path().join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(sandbox.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let text = format!(
        "[api]\nlisten = \"127.0.0.1:{port}\"\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\nhosts = [\"ns.localhost\"]\n"
    );
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    let mut server =
        Process::start("netstead", sandbox.command().args(["run", "--data-dir", "data"])).unwrap();
    server.wait_for_line("is ready", SOON).unwrap();
    assert!(server.log().contains(&format!("https://127.0.0.1:{port}")), "{}", server.log());

    // `localhost` is as good as 127.0.0.1 when a token is looked up, and the certificate is for it.
    let url = format!("https://localhost:{port}");
    assert!(sandbox.does(&format!("--url {url} --ca-file cert.pem status")).contains("is ready"));
    assert!(sandbox.does(&format!("--url {url} --insecure status")).contains("is ready"));
    let said = sandbox.fails(&format!("--url {url} status"));
    assert!(said.err.starts_with("error: the certificate of https://localhost"), "{}", said.err);
    assert!(said.err.contains("hint: name the authority"), "{}", said.err);
    sandbox.fails(&format!("--url http://localhost:{port} status"));
    assert!(sandbox.fails(&format!("--url {url} --ca-file key.pem status")).err.contains("key.pem"));
}
