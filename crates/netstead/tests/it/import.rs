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

/// The lines besides comments and empty ones.
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
    let told = sandbox.does(&format!("config check --no-secrets {}", out.display()));
    assert!(told.contains("powerdns at http://pdns:8081"), "{told}");
    assert!(!text.contains("hunter"), "a secret is never copied: {text}");
    let powerdns = settings(&text);
    for line in [
        "[source.traefik]\ntype = \"traefik\"\npaths = [\"/rules\"]\npoll = \"30s\"\napex = true",
        "dialects = [\"netstead\", \"dnsweaver\", \"traefik\", \"caddy\"]\napex = true",
        "[dns.internal-dns]\ntype = \"powerdns\"\nurl = \"http://pdns:8081\"\napi_key = { env = \"DNSWEAVER_INTERNAL_DNS_API_KEY\" }\ndomains = [\"home.test\"]",
        "target = \"10.0.3.9\"\nttl = 120\nmode = \"managed\"\nreverse = false",
        "[dns.update]\ntype = \"rfc2136\"\nservers = [\"ns1:53\"]\ntsig_name = \"weave.\"\ntsig_secret = { file = \"/run/secrets/tsig\" }\nzones = [\"lab.test\"]\ndomains",
        "record_type = \"CNAME\"\ntarget = \"lb.lab.test\"\nttl = 120\nmode = \"additive\"",
    ] {
        assert!(powerdns.contains(line), "{line}\n is not in\n{text}");
    }
    for comment in [
        "# The instance `cloud` is left out: Netstead has no provider of type `ovh`.",
        "# Hint: reach it through a program of your own (`type = \"webhook\"`), or through one of the many webhook",
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
    sandbox.does(&format!("config check --no-secrets {}", out.display()));
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
DNSWEAVER_INSTANCES=home,hole,old,files,conf
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
DNSWEAVER_FILES_TARGET=10.0.3.9
DNSWEAVER_FILES_DOMAINS=*.files.test
DNSWEAVER_CONF_TYPE=pihole
DNSWEAVER_CONF_ACCESS_MODE=file
DNSWEAVER_CONF_CONFIG_DIR=/etc/dnsmasq.d
DNSWEAVER_CONF_CONFIG_FILE=99-dnsweaver.conf
DNSWEAVER_CONF_RELOAD_COMMAND=docker restart pihole
DNSWEAVER_CONF_TARGET=10.0.3.9
DNSWEAVER_CONF_DOMAINS=*.conf.test
";
    std::fs::write(&env, text).unwrap();
    sandbox.does(&format!("import dnsweaver --env-file {} --out {}", env.display(), out.display()));
    let text = std::fs::read_to_string(&out).unwrap();
    sandbox.does(&format!("config check --no-secrets {}", out.display()));
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
    let files = "[dns.files]\ntype = \"pihole\"\nhosts_file = \"/etc/pihole/custom.list\"\n\
        cname_file = \"/etc/dnsmasq.d/05-pihole-custom-cname.conf\"\nreload = [\"pihole\", \"restartdns\"]\n\
        domains = [\"*.files.test\"]";
    let conf = "[dns.conf]\ntype = \"dnsmasq\"\nconf_dir = \"/etc/dnsmasq.d\"\ndnsweaver_file = \"99-dnsweaver.conf\"\n\
        reload = [\"docker\", \"restart\", \"pihole\"]\ndomains = [\"*.conf.test\"]";
    for part in [files, conf] {
        assert!(found.contains(part), "{part}\n is not in\n{text}");
    }
    assert!(
        text.contains("`pihole restartdns reload-lists` does not make Pi-hole read CNAME records"),
        "{text}"
    );
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
    let told = sandbox.does(&format!("config check --no-secrets {}", out.display()));
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

#[test]
fn a_proxmox_of_dnsweavers_becomes_a_source() {
    let sandbox = Sandbox::empty();
    let (env, out) = (sandbox.path().join("dnsweaver.env"), sandbox.path().join("netstead.toml"));
    let variables = [
        "SOURCES=proxmox",
        "PLATFORM=none",
        "PROXMOX_URL=https://pve1:8006/",
        "PROXMOX_TOKEN_ID=weave@pve!dns",
        "PROXMOX_TOKEN_SECRET_FILE=/run/secrets/pve",
        "PROXMOX_NODE_FILTER=pve1,pve2",
        "PROXMOX_TAG_FILTER=web",
        "PROXMOX_STATE_FILTER=running",
        "PROXMOX_DOMAIN_SUFFIX=.home.test",
        "PROXMOX_HOSTNAME_TAG_PREFIX=dns",
        "PROXMOX_TARGET_MODE=instance",
        "PROXMOX_TLS_CA_FILE=/etc/pve.pem",
    ];
    std::fs::write(
        &env,
        format!("DNSWEAVER_INSTANCES=lan\n{}", variables.map(|line| format!("DNSWEAVER_{line}\n")).concat()),
    )
    .unwrap();
    sandbox.does(&format!("import dnsweaver --env-file {} --out {}", env.display(), out.display()));
    let text = std::fs::read_to_string(&out).unwrap();
    let wanted = r#"[source.proxmox]
type = "proxmox"
url = "https://pve1:8006"
token_id = "weave@pve!dns"
token_secret = { file = "/run/secrets/pve" }
nodes = ["pve1", "pve2"]
states = ["running"]
tags = ["web*"]
domain_suffix = "home.test"
hostname_tag_prefix = "dns"
target = "provider"
hostname = ["config", "name"]
ca_file = "/etc/pve.pem""#;
    assert!(settings(&text).contains(wanted), "{text}");
}

#[test]
fn a_file_of_pipams_becomes_a_configuration_in_all_three_forms() {
    let toml = r#"
collect_interval = 30
full_reconcile_interval = 3600
skip_cidrs = ["10.9.0.0/16"]
[proxmox]
url = "https://pve1:8006"
user = "pipam"
realm = "pve"
token_id = "dns"
token_uuid_file = "/run/secrets/pve"
insecure = true
[dns]
provider = "powerdns"
zones = ["lab.test."]
[dns.powerdns]
url = "http://pdns:8081"
api_key_file = "/run/secrets/pdns"
[ipam]
provider = "netbox"
[ipam.netbox]
url = "https://netbox.test/"
token_file = "/run/secrets/netbox"
cluster = "lab"
[raft]
node_id = 1
peers = { 1 = "http://a:9000" }
[mapping]
ipv6_inherit_ipv4_fqdn = true
[mapping."lab.test"]
networks = [{ cidr = "10.0.3.0/24" }, { cidr = "10.0.4.0/24", service_record = "all.lab.test" }]
"#;
    let value: serde_json::Value = toml::from_str(toml).unwrap();
    let wanted = r#"[source.proxmox]
type = "proxmox"
url = "https://pve1:8006"
token_id = "pipam@pve!dns"
token_secret = { file = "/run/secrets/pve" }
insecure = true
interval = "30s"
skip_cidrs = ["10.9.0.0/16"]
[dns.powerdns]
type = "powerdns"
url = "http://pdns:8081"
api_key = { file = "/run/secrets/pdns" }
domains = ["lab.test"]
reverse = false
[ipam.netbox]
type = "netbox"
url = "https://netbox.test"
token = { file = "/run/secrets/netbox" }
cluster = "lab"
kind_tags = { container = "lxc", vm = "qemu" }
[domain."lab.test"]
networks = ["10.0.3.0/24", { cidr = "10.0.4.0/24", shared_name = "all.lab.test." }]
ipv6_inherit = true"#;
    let json = value.to_string();
    // JSON is YAML as well.
    for (name, text) in [("config.toml", toml), ("config.json", &json), ("config.yaml", &json)] {
        let sandbox = Sandbox::empty();
        let (file, out) = (sandbox.path().join(name), sandbox.path().join("netstead.toml"));
        std::fs::write(&file, text).unwrap();
        sandbox.does(&format!("import pipam --file {} --out {}", file.display(), out.display()));
        sandbox.does(&format!("config check --no-secrets {}", out.display()));
        let text = std::fs::read_to_string(&out).unwrap();
        assert_eq!(settings(&text), wanted, "{text}");
        let comment = "#   1 http://a:9000";
        assert!(text.contains(comment), "{comment} is not in {text}");
    }
}

#[test]
fn dnsweavers_settings_of_kubernetes_are_carried_over() {
    let source = |more: &str| {
        let sandbox = Sandbox::empty();
        let (env, out) = (sandbox.path().join("dnsweaver.env"), sandbox.path().join("netstead.toml"));
        let lan = "DNSWEAVER_INSTANCES=lan\nDNSWEAVER_LAN_TYPE=webhook\nDNSWEAVER_LAN_URL=http://127.0.0.1:9\n\
                   DNSWEAVER_LAN_TARGET=10.0.3.9\nDNSWEAVER_LAN_DOMAINS=*.home.test\nDNSWEAVER_PLATFORM=kubernetes\n";
        std::fs::write(&env, format!("{lan}{more}")).unwrap();
        sandbox.does(&format!("import dnsweaver --env-file {} --out {}", env.display(), out.display()));
        sandbox.does(&format!("config check --no-secrets {}", out.display()));
        let text = settings(&std::fs::read_to_string(&out).unwrap());
        let table = text.split("[source.kubernetes]\n").nth(1).unwrap_or_default().to_owned();
        table.split("\n[").next().unwrap_or_default().trim_end().to_owned()
    };
    assert_eq!(source(""), "type = \"kubernetes\"\nkinds = [\"ingress\", \"ingressroute\", \"httproute\"]");
    assert_eq!(
        source(
            "DNSWEAVER_K8S_KUBECONFIG=/etc/k8s.yaml\nDNSWEAVER_K8S_NAMESPACES=shop,blog\nDNSWEAVER_K8S_LABEL_SELECTOR=dns=yes\n\
             DNSWEAVER_K8S_ANNOTATION_FILTER=team=web\nDNSWEAVER_K8S_WATCH_INGRESS=false\nDNSWEAVER_K8S_WATCH_INGRESSROUTE=false\n\
             DNSWEAVER_K8S_WATCH_HTTPROUTE=true\nDNSWEAVER_K8S_WATCH_SERVICES=true\n"
        ),
        "type = \"kubernetes\"\nkubeconfig = \"/etc/k8s.yaml\"\nnamespaces = [\"shop\", \"blog\"]\nlabel_selector = \"dns=yes\"\n\
         annotation_filter = \"team=web\"\nkinds = [\"httproute\", \"service\"]"
    );
}

#[test]
fn in_dnsweavers_place_nothing_is_dropped_in_silence() {
    let mut sandbox = Sandbox::empty();
    for (name, value) in [
        ("DNSWEAVER_INSTANCES", "lan,cloud,narrow,public"),
        ("DNSWEAVER_SOURCES", "traefik,incus,consul"),
        ("DNSWEAVER_PLATFORM", "none"),
        ("DNSWEAVER_LOG_FILE", "/var/log/dnsweaver.log"),
        ("DNSWEAVER_TYPO_SETTING", "1"),
        ("DNSWEAVER_LAN_TYPE", "webhook"),
        ("DNSWEAVER_LAN_URL", "http://127.0.0.1:9"),
        ("DNSWEAVER_LAN_RETRIES", "3"),
        ("DNSWEAVER_LAN_TARGET", "10.0.3.9"),
        ("DNSWEAVER_LAN_DOMAINS", "*.home.test"),
        ("DNSWEAVER_LAN_ENTRYPOINTS", "websecure,lan"),
        ("DNSWEAVER_CLOUD_TYPE", "ovh"),
        ("DNSWEAVER_NARROW_TYPE", "webhook"),
        ("DNSWEAVER_NARROW_URL", "http://127.0.0.1:9"),
        ("DNSWEAVER_NARROW_TARGET", "10.0.3.9"),
        ("DNSWEAVER_NARROW_DOMAINS", "*.home.test"),
        ("DNSWEAVER_NARROW_EXCLUDE_DOMAINS_REGEX", "(?!x)"),
        ("DNSWEAVER_PUBLIC_TYPE", "webhook"),
        ("DNSWEAVER_PUBLIC_URL", "http://127.0.0.1:9/public"),
        ("DNSWEAVER_PUBLIC_TARGET_MODE", "public"),
        ("DNSWEAVER_PUBLIC_TARGET_REFRESH_INTERVAL", "10m"),
        ("DNSWEAVER_PUBLIC_TARGET_PUBLIC_ENDPOINTS", "http://127.0.0.1:9/ip"),
        ("DNSWEAVER_PUBLIC_DOMAINS", "*.example.test"),
        ("DNSWEAVER_PUBLIC_EXCLUDE_LABELS", "private"),
    ] {
        sandbox.set(name, value);
    }
    let warnings = [
        "DNSWEAVER_SOURCES: Netstead has no source `consul`, so none of its names is published",
        "DNSWEAVER_INCUS_*: Netstead has no source for Incus yet, so none of its names is published",
        "DNSWEAVER_LAN_*: RETRIES=3: how often something is repeated is not set here",
        "DNSWEAVER_CLOUD_*: The instance `cloud` is left out: Netstead has no provider of type `ovh`",
        "DNSWEAVER_NARROW_*: [dns.narrow] is left out: ",
        "DNSWEAVER_PUBLIC_*: [dns.public] is left out: DNSWEAVER_PUBLIC_EXCLUDE_LABELS narrows what is published",
        "DNSWEAVER_LOG_FILE: it is not carried over: logs go to stderr",
        "DNSWEAVER_TYPO_SETTING: it is not carried over: it has no meaning here",
    ];
    let checked = sandbox.netstead(["config", "check"]);
    assert_eq!(checked.code, 0, "{}", checked.err);
    for warning in warnings {
        assert!(
            checked.err.contains(&format!("warning: {warning}")),
            "{warning}\n is not in\n{}",
            checked.err
        );
    }
    assert!(
        checked.err.contains("`type = \"webhook\"`") && checked.err.contains("`type = \"external-dns\"`")
    );
    let shown = sandbox.does("config check -o json");
    assert!(shown.contains("\"websecure\"") && !shown.contains("dns.public"), "{shown}");

    sandbox.start(&["--log-format", "json"]);
    let log = sandbox.server().log();
    for warning in warnings {
        let (at, message) = warning.split_once(": ").unwrap();
        assert!(
            log.contains(at) && log.contains(&message.replace('"', "\\\"")),
            "{warning}\n is not in\n{log}"
        );
    }
    let status: serde_json::Value = serde_json::from_str(&sandbox.does("status -o json")).unwrap();
    let doctor = sandbox.netstead(["doctor", "-o", "json"]);
    let doctor: serde_json::Value = serde_json::from_str(&doctor.out).unwrap();
    let texts = |list: &serde_json::Value, field: Option<&str>| -> Vec<String> {
        let text = |one: &serde_json::Value| {
            field.map_or(one, |field| &one[field]).as_str().unwrap_or_default().to_owned()
        };
        list.as_array().unwrap().iter().map(text).collect()
    };
    let (status, doctor) = (texts(&status["warnings"], None), texts(&doctor["findings"], Some("text")));
    for warning in warnings {
        for (place, told) in [("status", &status), ("doctor", &doctor)] {
            assert!(
                told.iter().any(|one| one.contains(warning)),
                "{warning}\n is not in `{place}`\n{}",
                told.join("\n")
            );
        }
    }
    sandbox.stop();
}

#[test]
fn settings_that_have_an_equal_here_are_carried_over() {
    let sandbox = Sandbox::empty();
    let (env, out) = (sandbox.path().join("dnsweaver.env"), sandbox.path().join("netstead.toml"));
    let text = "\
DNSWEAVER_INSTANCES=lan
DNSWEAVER_SOURCE_TRAEFIK_DEFAULT_ENTRYPOINTS=web
DNSWEAVER_LAN_TYPE=powerdns
DNSWEAVER_LAN_URL=http://pdns:8081
DNSWEAVER_LAN_API_KEY=hunter2
DNSWEAVER_LAN_DOMAINS=*.home.test
DNSWEAVER_LAN_ENTRYPOINTS=websecure,lan
DNSWEAVER_LAN_TARGET_MODE=public
DNSWEAVER_LAN_TARGET_REFRESH_INTERVAL=1m30s
DNSWEAVER_LAN_TARGET_PUBLIC_ENDPOINTS=https://api.ipify.org,ifconfig.me/ip
";
    std::fs::write(&env, text).unwrap();
    sandbox.does(&format!("import dnsweaver --env-file {} --out {}", env.display(), out.display()));
    let told = sandbox.netstead(["config", "check", "--no-secrets", out.to_str().unwrap()]);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(!text.contains("Not carried over") && !told.err.contains("warning"), "{text}\n{}", told.err);
    let settings = settings(&text);
    for part in [
        "default_entrypoints = [\"web\"]",
        "target = \"public\"\ntarget_interval = \"1m30s\"\ntarget_endpoints = [\"https://api.ipify.org\", \"https://ifconfig.me/ip\"]",
        "entrypoints = [\"websecure\", \"lan\"]",
    ] {
        assert!(settings.contains(part), "{part}\n is not in\n{text}");
    }
}
