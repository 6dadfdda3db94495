//! Coming from dnsweaver.

use crate::{resolve, sandbox::Sandbox};

const ENV: &str = "\
# dnsweaver
DNSWEAVER_INSTANCES=internal-dns,update,cloud
DNSWEAVER_SOURCES=traefik,caddy
DNSWEAVER_LOG_LEVEL=warn
DNSWEAVER_DEFAULT_TTL=120
DNSWEAVER_LOG_FILE=/var/log/dnsweaver.log
DNSWEAVER_TYPO_SETTING=1
DNSWEAVER_SOURCE_TRAEFIK_FILE_PATHS=/rules
DNSWEAVER_SOURCE_TRAEFIK_POLL_INTERVAL=30s
DNSWEAVER_INTERNAL_DNS_TYPE=powerdns
DNSWEAVER_INTERNAL_DNS_URL=http://pdns:8081
DNSWEAVER_INTERNAL_DNS_API_KEY=hunter2
DNSWEAVER_INTERNAL_DNS_ZONE=home.test
DNSWEAVER_INTERNAL_DNS_TARGET=10.0.3.9
DNSWEAVER_INTERNAL_DNS_DOMAINS=home.test,*.home.test
DNSWEAVER_INTERNAL_DNS_EXCLUDE_DOMAINS=secret.home.test
DNSWEAVER_UPDATE_TYPE=rfc2136
DNSWEAVER_UPDATE_SERVER=ns1:53
DNSWEAVER_UPDATE_ZONE=lab.test.
DNSWEAVER_UPDATE_TSIG_KEY_NAME=weave.
DNSWEAVER_UPDATE_TSIG_SECRET_FILE=/run/secrets/tsig
DNSWEAVER_UPDATE_RECORD_TYPE=CNAME
DNSWEAVER_UPDATE_TARGET=lb.lab.test
DNSWEAVER_UPDATE_DOMAINS=*.lab.test
DNSWEAVER_UPDATE_MODE=additive
DNSWEAVER_CLOUD_TYPE=ovh
DNSWEAVER_CLOUD_APPLICATION_SECRET=hunter3
DNSWEAVER_CLOUD_DOMAINS=*.example.test
";

const YAML: &str = "\
instance_id: here
reconciler: { interval: 30s, dry_run: true }
sources:
  - name: traefik
    file_discovery: { paths: [/rules], pattern: '*.yml' }
providers:
  - name: lan
    type: powerdns
    domains: ['*.home.test']
    record_type: A
    target: 10.0.3.9
    ttl: 60
    config: { url: 'http://pdns:8081', api_key: '${PDNS_KEY}' }
";

/// What stands in it besides comments and empty lines.
fn settings(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn an_env_file_of_dnsweavers_becomes_a_configuration_that_is_valid() {
    let sandbox = Sandbox::empty();
    let (env, out) = (sandbox.path().join("dnsweaver.env"), sandbox.path().join("netstead.toml"));
    std::fs::write(&env, ENV).unwrap();
    sandbox.does(&format!("import dnsweaver --env-file {} --out {}", env.display(), out.display()));
    let text = std::fs::read_to_string(&out).unwrap();
    let told = sandbox.does(&format!("config check {}", out.display()));
    assert!(told.contains("powerdns at http://pdns:8081"), "{told}");
    assert!(!text.contains("hunter"), "a secret is never copied: {text}");
    let powerdns = settings(&text);
    for line in [
        "[source.traefik]\ntype = \"traefik\"\npaths = [\"/rules\"]\npoll = \"30s\"\napex = true",
        "dialects = [\"netstead\", \"dnsweaver\", \"traefik\", \"caddy\"]\napex = true",
        "[dns.internal-dns]\ntype = \"powerdns\"\nurl = \"http://pdns:8081\"\napi_key = { env = \"DNSWEAVER_INTERNAL_DNS_API_KEY\" }\ndomains = [\"home.test\"]",
        "target = \"10.0.3.9\"\nttl = 120\nmode = \"managed\"\nreverse = false",
        "[dns.update]\ntype = \"rfc2136\"\nservers = [\"ns1:53\"]\ntsig_name = \"weave.\"\ntsig_secret = { file = \"/run/secrets/tsig\" }\nzones = [\"lab.test\"]",
        "record_type = \"CNAME\"\ntarget = \"lb.lab.test\"\nttl = 120\nmode = \"additive\"",
    ] {
        assert!(powerdns.contains(line), "{line}\n is not in\n{text}");
    }
    for comment in [
        "# The instance `cloud` is left out: Netstead has no provider of type `ovh` yet.",
        "#   DNSWEAVER_CLOUD_APPLICATION_SECRET=(a secret)",
        "#   DNSWEAVER_LOG_FILE=/var/log/dnsweaver.log: logs go to stderr",
        "#   DNSWEAVER_TYPO_SETTING=1: it has no meaning here",
    ] {
        assert!(text.contains(comment), "{comment}\n is not in\n{text}");
    }
    let again =
        sandbox.fails(&format!("import dnsweaver --env-file {} --out {}", env.display(), out.display()));
    assert!(again.err.contains("cannot make"), "{}", again.err);
}

/// The table of one instance of dnsweaver, as a configuration that `config check` accepts.
fn imported(variables: &str) -> String {
    let sandbox = Sandbox::empty();
    let (env, out) = (sandbox.path().join("dnsweaver.env"), sandbox.path().join("netstead.toml"));
    let shared =
        "DNSWEAVER_INSTANCES=lan\nDNSWEAVER_LAN_DOMAINS=*.home.test\nDNSWEAVER_LAN_TARGET=10.0.3.9\n";
    std::fs::write(&env, format!("{shared}{variables}")).unwrap();
    sandbox.does(&format!("import dnsweaver --env-file {} --out {}", env.display(), out.display()));
    sandbox.does(&format!("config check {}", out.display()));
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(!text.contains("hunter"), "a secret is never copied: {text}");
    assert!(!text.contains("Not carried over"), "{text}");
    let begin = text.find("[dns.lan]").unwrap();
    let end = text[begin..].find("domains = ").unwrap();
    text[begin..begin + end].to_owned()
}

#[test]
fn a_dnsmasq_of_dnsweavers_is_restarted_and_not_reloaded() {
    assert_eq!(
        imported("DNSWEAVER_LAN_TYPE=dnsmasq\n"),
        "[dns.lan]\ntype = \"dnsmasq\"\nconf_dir = \"/etc/dnsmasq.d\"\n\
         # `systemctl reload dnsmasq` does not make dnsmasq read this directory; a restart does\n\
         reload = [\"systemctl\", \"restart\", \"dnsmasq\"]\n"
    );
    let variables = [
        "TYPE=dnsmasq",
        "CONFIG_DIR=/opt/dns",
        "CONFIG_FILE=weaver.conf",
        "RELOAD_COMMAND=/etc/init.d/dnsmasq restart",
        "ZONE=home.test",
        "SSH_HOST=router",
        "SSH_PORT=2222",
        "SSH_USER=root",
        "SSH_KEY_FILE=/run/secrets/key",
        "SSH_PASSWORD=hunter2",
        "SSH_KNOWN_HOSTS_FILE=/etc/known",
        "SSH_STRICT_HOST_KEY_CHECKING=false",
    ];
    assert_eq!(
        imported(&variables.map(|line| format!("DNSWEAVER_LAN_{line}\n")).concat()),
        "[dns.lan]\ntype = \"dnsmasq\"\nconf_dir = \"/opt/dns\"\ndnsweaver_file = \"weaver.conf\"\n\
         reload = [\"/etc/init.d/dnsmasq\", \"restart\"]\nssh = \"ssh://root@router:2222\"\n\
         ssh_key = \"/run/secrets/key\"\nssh_known_hosts = \"/etc/known\"\n\
         # SSH_STRICT_HOST_KEY_CHECKING=false: the host's key must be known here\n\
         # SSH_PASSWORD is not carried over: ssh logs in with a key\n"
    );
}

#[test]
fn a_webhook_of_dnsweavers_keeps_its_protocol() {
    let variables = [
        "TYPE=webhook",
        "URL=https://hook.home.test",
        "AUTH_HEADER=X-Token",
        "AUTH_TOKEN=hunter2",
        "TIMEOUT=10s",
        "RETRIES=3",
        "TLS_CA_FILE=/etc/ca.pem",
    ];
    assert_eq!(
        imported(&variables.map(|line| format!("DNSWEAVER_LAN_{line}\n")).concat()),
        "[dns.lan]\ntype = \"webhook\"\nprotocol = \"dnsweaver\"\nurl = \"https://hook.home.test\"\n\
         auth_header = \"X-Token\"\nauth_token = { env = \"DNSWEAVER_LAN_AUTH_TOKEN\" }\ntimeout = \"10s\"\n\
         # RETRIES=3: how often something is repeated is not set here\nca_file = \"/etc/ca.pem\"\n"
    );
}

#[test]
fn adguard_home_and_pihole_are_carried_over() {
    let sandbox = Sandbox::empty();
    let (env, out) = (sandbox.path().join("dnsweaver.env"), sandbox.path().join("netstead.toml"));
    let text = "\
DNSWEAVER_INSTANCES=home,hole,old,files
DNSWEAVER_HOME_TYPE=adguard
DNSWEAVER_HOME_URL=http://adguard:3000
DNSWEAVER_HOME_USERNAME=admin
DNSWEAVER_HOME_PASSWORD=hunter2
DNSWEAVER_HOME_TLS_CA_FILE=/etc/ca.pem
DNSWEAVER_HOME_TARGET=10.0.3.9
DNSWEAVER_HOME_DOMAINS=*.home.test
DNSWEAVER_HOLE_TYPE=pihole
DNSWEAVER_HOLE_URL=http://pi.hole
DNSWEAVER_HOLE_PASSWORD_FILE=/run/secrets/pihole
DNSWEAVER_HOLE_API_VERSION=v6
DNSWEAVER_HOLE_ACCESS_MODE=api
DNSWEAVER_HOLE_MODE=additive
DNSWEAVER_HOLE_TARGET=10.0.3.9
DNSWEAVER_HOLE_DOMAINS=*.hole.test
DNSWEAVER_OLD_TYPE=pihole
DNSWEAVER_OLD_URL=http://old.hole
DNSWEAVER_OLD_PASSWORD=hunter3
DNSWEAVER_OLD_MODE=api
DNSWEAVER_OLD_TARGET=10.0.3.9
DNSWEAVER_OLD_DOMAINS=*.old.test
DNSWEAVER_FILES_TYPE=pihole
DNSWEAVER_FILES_MODE=file
DNSWEAVER_FILES_CONFIG_FILE=custom.list
DNSWEAVER_FILES_DOMAINS=*.files.test
";
    std::fs::write(&env, text).unwrap();
    sandbox.does(&format!("import dnsweaver --env-file {} --out {}", env.display(), out.display()));
    let text = std::fs::read_to_string(&out).unwrap();
    sandbox.does(&format!("config check {}", out.display()));
    assert!(!text.contains("hunter"), "a secret is never copied: {text}");
    let found = settings(&text);
    for part in [
        "[dns.home]\ntype = \"adguard\"\nurl = \"http://adguard:3000\"\nuser = \"admin\"\npassword = { env = \"DNSWEAVER_HOME_PASSWORD\" }\nca_file = \"/etc/ca.pem\"\ndomains = [\"*.home.test\"]",
        "[dns.hole]\ntype = \"pihole\"\nurl = \"http://pi.hole\"\npassword = { file = \"/run/secrets/pihole\" }\ndomains = [\"*.hole.test\"]",
        "mode = \"additive\"",
        "[dns.old]\ntype = \"pihole\"\nurl = \"http://old.hole\"\npassword = { env = \"DNSWEAVER_OLD_PASSWORD\" }",
    ] {
        assert!(found.contains(part), "{part}\n is not in\n{text}");
    }
    let absent = "# The instance `files` is left out: Netstead changes a Pi-hole over its API, not its files";
    assert!(text.contains(absent) && !found.contains("dns.files"), "{text}");
}

#[test]
fn a_yaml_file_of_dnsweavers_becomes_the_same() {
    let sandbox = Sandbox::empty();
    let file = sandbox.path().join("config.yaml");
    std::fs::write(&file, YAML).unwrap();
    let text = sandbox.does(&format!("import dnsweaver --file {}", file.display()));
    let found = settings(&text);
    assert!(found.contains("pattern = [\"*.yml\"]"), "{text}");
    assert!(found.contains("api_key = { env = \"PDNS_KEY\" }\ndomains = [\"*.home.test\"]"), "{text}");
    assert!(found.contains("ttl = 60\nmode = \"observe\""), "{text}");
    assert!(found.contains("interval = \"30s\"") && !found.contains("apex"), "{text}");
    assert!(sandbox.fails("import dnsweaver").err.contains("DNSWEAVER_INSTANCES"));
}

#[test]
fn without_a_file_the_server_runs_on_dnsweavers_environment() {
    let mut sandbox = Sandbox::empty();
    let rules = sandbox.path().join("rules");
    std::fs::create_dir(&rules).unwrap();
    std::fs::write(rules.join("web.yml"), "http:\n  routers:\n    web:\n      rule: Host(`web.home.test`)\n")
        .unwrap();
    let paths = rules.to_str().unwrap().to_owned();
    sandbox.set("DNSWEAVER_INSTANCES", "gone");
    sandbox.set("DNSWEAVER_GONE_TYPE", "ovh");
    sandbox.set("DNSWEAVER_PLATFORM", "none");
    sandbox.set("DNSWEAVER_SOURCE_TRAEFIK_FILE_PATHS", &paths);
    sandbox.set("NETSTEAD_SOURCE_TRAEFIK_TARGET", "10.0.3.9");
    // dnsweaver logs JSON unless told otherwise, and so do we in its place.
    sandbox.start(&["--log-format", "json"]);
    resolve::until(&["10.0.3.9"], || resolve::a(sandbox.dns(), "web.home.test"));
}

#[test]
fn instances_of_cloudflare_and_technitium_are_carried_over() {
    let sandbox = Sandbox::empty();
    let (env, out) = (sandbox.path().join("dnsweaver.env"), sandbox.path().join("netstead.toml"));
    let text = "\
DNSWEAVER_INSTANCES=public,by-id,home,plain
DNSWEAVER_PUBLIC_TYPE=cloudflare
DNSWEAVER_PUBLIC_TOKEN=hunter2
DNSWEAVER_PUBLIC_ZONE=example.test.
DNSWEAVER_PUBLIC_TARGET=192.0.2.1
DNSWEAVER_PUBLIC_DOMAINS=*.example.test
DNSWEAVER_BY_ID_TYPE=cloudflare
DNSWEAVER_BY_ID_TOKEN_FILE=/run/secrets/cloudflare
DNSWEAVER_BY_ID_ZONE_ID=0123456789abcdef0123456789abcdef
DNSWEAVER_BY_ID_PROXIED=false
DNSWEAVER_BY_ID_TARGET=192.0.2.1
DNSWEAVER_BY_ID_DOMAINS=*.other.test
DNSWEAVER_HOME_TYPE=technitium
DNSWEAVER_HOME_URL=http://ns1:5380
DNSWEAVER_HOME_TOKEN=hunter3
DNSWEAVER_HOME_ZONE=home.test
DNSWEAVER_HOME_TARGET=10.0.3.9
DNSWEAVER_HOME_DOMAINS=*.home.test
DNSWEAVER_HOME_AUTO_HTTPS_ALPN=h2,h3
DNSWEAVER_HOME_INSECURE_SKIP_VERIFY=true
DNSWEAVER_PLAIN_TYPE=technitium
DNSWEAVER_PLAIN_URL=http://ns2:5380
DNSWEAVER_PLAIN_TOKEN_FILE=/run/secrets/technitium
DNSWEAVER_PLAIN_TARGET=10.0.3.9
DNSWEAVER_PLAIN_DOMAINS=*.lab.test
DNSWEAVER_PLAIN_AUTO_HTTPS_RECORDS=false
";
    std::fs::write(&env, text).unwrap();
    sandbox.does(&format!("import dnsweaver --env-file {} --out {}", env.display(), out.display()));
    let text = std::fs::read_to_string(&out).unwrap();
    let told = sandbox.does(&format!("config check {}", out.display()));
    assert!(told.contains("technitium at http://ns1:5380"), "{told}");
    assert!(!text.contains("hunter") && !text.contains("left out"), "{text}");
    let settings = settings(&text);
    for part in [
        "[dns.public]\ntype = \"cloudflare\"\ntoken = { env = \"DNSWEAVER_PUBLIC_TOKEN\" }\nzone = \"example.test\"\nproxied = true\ndomains",
        "[dns.by-id]\ntype = \"cloudflare\"\ntoken = { file = \"/run/secrets/cloudflare\" }\nzone_id = \"0123456789abcdef0123456789abcdef\"\nproxied = false\ndomains",
        "[dns.home]\ntype = \"technitium\"\nurl = \"http://ns1:5380\"\ntoken = { env = \"DNSWEAVER_HOME_TOKEN\" }\nhttps_alpn = \"h2,h3\"\ninsecure = true\ndomains",
        "[dns.plain]\ntype = \"technitium\"\nurl = \"http://ns2:5380\"\ntoken = { file = \"/run/secrets/technitium\" }\nhttps_records = false\ndomains",
    ] {
        assert!(settings.contains(part), "{part}\n is not in\n{text}");
    }
}
