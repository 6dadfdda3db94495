//! Commands of the README and the guide print what is shown there.

use std::{net::SocketAddr, path::Path, process::Command, time::Duration};

use netstead_testkit::{
    FakePhpIpam, NetBox, PhpIpamSecurity, Process, Transcript, free_port, has_command, skip, wait_until,
};

use crate::sandbox::Sandbox;

const SOON: Duration = Duration::from_mins(1);

#[test]
fn the_readme_works_as_typed() {
    typed("README.md");
}

#[test]
fn the_first_ten_minutes_work_as_typed() {
    typed("docs/guide/first-pool.md");
}

#[test]
fn the_branch_office_works_as_typed() {
    if let Some(missing) = ["bash", "jq"].into_iter().find(|name| !has_command(name)) {
        return skip(&format!("`{missing}` is not installed"));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/branch-office.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (first, second) = text.split_once("## At the branch office").unwrap();
    let head = Sandbox::with_server();
    typed_in(&head, first);

    let mut branch = Sandbox::empty();
    let token = branch.path().join("head-office.token");
    std::fs::copy(head.path().join("branch-7.token"), &token).unwrap();
    let file = second.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let file = file
        .replace("https://netstead.example.com:5301", &head.url())
        .replace("/run/secrets/head-office", &token.display().to_string());
    std::fs::write(branch.path().join("netstead.toml"), file).unwrap();
    branch.start(&[]);
    let made = || (branch.netstead(["get", "pools", "-o", "name"]).out == "lan\n").then_some(());
    assert!(wait_until(SOON, made).is_some(), "the pool of the file is made");
    typed_in(&branch, second);
    let held: serde_json::Value = serde_json::from_str(&head.does("get claims -o json")).unwrap();
    let keys: Vec<&str> =
        held.as_array().unwrap().iter().map(|claim| claim["key"].as_str().unwrap()).collect();
    assert!(keys.iter().all(|key| key.contains("/lan/")) && keys.len() == 2, "{keys:?}");
}

/// With a fake phpIPAM, which the tables of the guide reach by another address.
#[test]
fn the_guide_of_phpipam_works_as_typed() {
    if let Some(missing) = ["bash", "jq"].into_iter().find(|name| !has_command(name)) {
        return skip(&format!("`{missing}` is not installed"));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/phpipam.md");
    let text = std::fs::read_to_string(path).unwrap();
    let fake = FakePhpIpam::start();
    fake.behind_tls(true);
    fake.add_app("netstead", PhpIpamSecurity::SslToken, 2);
    fake.set_user("netstead", "a password");
    let subnet = fake.add_subnet(1, "10.7.7.0/24");
    let router = fake.put(subnet, "10.7.7.1", &[("hostname", "router")]);
    fake.make_gateway(router);
    let mut sandbox = Sandbox::empty();
    let password = sandbox.path().join("password");
    std::fs::write(&password, "a password").unwrap();
    // The fields go with the first table, so they are no example of their own.
    let blocks = ["```toml\n[", "```text\n[ipam.office.fields"].into_iter();
    let blocks = blocks.flat_map(|start| text.split(start).skip(1).map(move |rest| (start, rest)));
    let table = |(start, rest): (&str, &str)| {
        let rest = rest.split("```").next().unwrap_or_default();
        start.split_once('\n').map(|(_, begun)| format!("{begun}{rest}"))
    };
    let tables: String = blocks.filter_map(table).collect();
    let file = tables
        .replace("[ipam.office]\n", "[ipam.office]\ninterval = \"1s\"\n")
        .replace("https://ipam.example.com", &fake.url())
        .replace("/run/secrets/phpipam", &password.display().to_string());
    std::fs::write(sandbox.path().join("netstead.toml"), file).unwrap();
    sandbox.start(&[]);
    let made = || (sandbox.netstead(["get", "pools", "-o", "name"]).out == "lan\n").then_some(());
    assert!(wait_until(SOON, made).is_some(), "the pool of the file is made");
    typed_in(&sandbox, &text);
    let held = || (fake.lines().len() == 3 && fake.lines()[2].contains("owner=Team Blue")).then_some(());
    assert!(wait_until(SOON, held).is_some(), "{:#?}", fake.lines());
}

/// With a real NetBox, which the tables of the guide reach by another address.
#[test]
fn the_guide_of_netbox_works_as_typed() {
    if let Some(missing) = ["bash", "jq"].into_iter().find(|name| !has_command(name)) {
        return skip(&format!("`{missing}` is not installed"));
    }
    let Some(netbox) = NetBox::shared() else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/netbox.md");
    let text = std::fs::read_to_string(path).unwrap();
    netbox.make("/api/ipam/prefixes/", &serde_json::json!({ "prefix": "10.7.7.0/24" }));
    let mut sandbox = Sandbox::empty();
    let token = sandbox.path().join("token");
    std::fs::write(&token, netbox.bearer()).unwrap();
    let tables = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let file = tables
        .collect::<String>()
        .replace("[ipam.office]\n", "[ipam.office]\ninterval = \"1s\"\n")
        .replace("https://netbox.example.com", &netbox.url())
        .replace("/run/secrets/netbox", &token.display().to_string());
    std::fs::write(sandbox.path().join("netstead.toml"), file).unwrap();
    sandbox.start(&[]);
    let made = || (sandbox.netstead(["get", "pools", "-o", "name"]).out == "lan\n").then_some(());
    assert!(wait_until(SOON, made).is_some(), "the pool of the file is made");
    typed_in(&sandbox, &text);
    // The claim that is left is filled in by the IPAM system.
    let filled = || {
        let found = netbox.list("/api/ipam/ip-addresses/?address=10.7.7.99");
        found.first().filter(|one| one["status"]["value"] == "reserved").map(|_| ())
    };
    assert!(wait_until(SOON, filled).is_some(), "{:#?}", netbox.list("/api/ipam/ip-addresses/"));
}

#[test]
fn the_ipam_guide_works_as_typed_with_its_receiver() {
    if let Some(missing) = ["bash", "jq", "openssl", "python3"].into_iter().find(|name| !has_command(name)) {
        return skip(&format!("`{missing}` is not installed"));
    }
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let text = std::fs::read_to_string(guide.join("ipam.md")).unwrap();
    let block = |kind: &str, number: usize| {
        let block = text.split(&format!("```{kind}\n")).nth(number + 1).unwrap();
        block.split("```").next().unwrap().to_owned()
    };
    let mut sandbox = Sandbox::empty();
    std::fs::copy(guide.join("ipam-receiver.py"), sandbox.path().join("ipam-receiver.py")).unwrap();
    let port = format!("127.0.0.1:{}", free_port().unwrap());
    let bash = |script: &str| {
        let mut bash = Command::new("bash");
        bash.current_dir(sandbox.path()).args(["-ec", script]);
        bash
    };
    // The receiver is told to run behind the terminal; here it ends with the test.
    let begin = block("sh", 0).replace("127.0.0.1:8099", &port).replace(" &\n", "\n");
    let begin = begin.replace("python3 ", "exec python3 ");
    let mut receiver = Process::start("the receiver", &mut bash(&begin)).unwrap();
    receiver.wait_for_line("listening on", SOON).unwrap();
    let file = block("toml", 0).replace("127.0.0.1:8099", &port);
    std::fs::write(sandbox.path().join("netstead.toml"), file).unwrap();
    let hosts = block("sh", 1).lines().next().unwrap().to_owned();
    assert!(bash(&hosts).status().unwrap().success());
    sandbox.does("config check --no-secrets");
    sandbox.start(&[]);
    typed_in(&sandbox, &text);
}

/// Types the commands of a text as a user of this sandbox.
fn typed_in(sandbox: &Sandbox, text: &str) {
    let plain = sandbox.command();
    let path = std::env::var("PATH").unwrap_or_default();
    let binaries = Path::new(env!("CARGO_BIN_EXE_netstead")).parent().unwrap();
    let done = Transcript::parse(text).run(
        |bash| {
            bash.current_dir(sandbox.path()).env("PATH", format!("{}:{path}", binaries.display()));
            for (name, value) in plain.get_envs() {
                match value {
                    Some(value) => bash.env(name, value),
                    None => bash.env_remove(name),
                };
            }
        },
        SOON,
    );
    if let Err(error) = done {
        panic!("{error}");
    }
}

/// Types a document's commands against a server of their own.
fn typed(document: &str) {
    if let Some(missing) = ["bash", "curl", "jq"].into_iter().find(|name| !has_command(name)) {
        return skip(&format!("`{missing}` is not installed"));
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_netstead"));
    let home = tempfile::tempdir().unwrap();
    let listen = SocketAddr::from(([127, 0, 0, 1], free_port().unwrap()));
    let own = |command: &mut Command| {
        command
            .current_dir(&home)
            .env("HOME", home.path())
            .env("XDG_STATE_HOME", home.path().join("state"))
            .env("DOCKER_HOST", format!("unix://{}", home.path().join("docker.sock").display()));
    };
    let mut run = Command::new(binary);
    own(run
        .arg("run")
        .arg("--data-dir")
        .arg(home.path().join("data"))
        .arg("--listen")
        .arg(listen.to_string()));
    let mut server = Process::start("netstead", &mut run).unwrap();
    server.wait_for_line("is ready", SOON).unwrap();

    let path = std::env::var("PATH").unwrap_or_default();
    let transcript =
        Transcript::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document)).unwrap();
    let done = transcript.run(
        |bash| {
            own(bash);
            bash.env("PATH", format!("{}:{path}", binary.parent().unwrap().display()))
                .env("NETSTEAD_URL", format!("http://{listen}"));
        },
        SOON,
    );
    if let Err(error) = done {
        panic!("{document}:\n{error}");
    }
}
