//! `netstead import external-dns`, and the way from there to a plan without changes.

use netstead_testkit::{KubeApiServer, PowerDns, wait_until};

use crate::{
    resolve,
    sandbox::{SOON, Sandbox},
};

const KEY: &str = "0123456789abcdef0123456789abcdef";
const DEFINITIONS: &str = include_str!("../../../sources/tests/it/kubernetes/definitions.yaml");

/// The configuration that a file with these flags becomes.
fn imported(flags: &str) -> String {
    let sandbox = Sandbox::empty();
    let (file, out) = (sandbox.path().join("flags"), sandbox.path().join("netstead.toml"));
    std::fs::write(&file, flags).unwrap();
    sandbox.does(&format!("import external-dns --file {} --out {}", file.display(), out.display()));
    sandbox.does(&format!("config check --no-secrets {}", out.display()));
    std::fs::read_to_string(&out).unwrap()
}

#[test]
fn flags_become_a_configuration_that_is_valid() {
    let text = imported(
        "external-dns --source=ingress --source=service --source=gateway-httproute --source=crd --source=traefik-proxy \\
  --source=cloudfoundry --namespace=shop --label-filter='dns in (public, both)' --annotation-filter=team=web \\
  --ingress-class=nginx --service-type-filter=ClusterIP --service-type-filter=LoadBalancer --publish-internal-services \\
  --gateway-namespace=infra --gateway-name=edge --default-targets=192.0.2.1 --exclude-target-net=10.0.0.0/8 \\
  --ignore-ingress-tls-spec --managed-record-types=A --managed-record-types=CNAME --managed-record-types=TXT \\
  --fqdn-template='{{.Name}}.example.com' --domain-filter=example.com --domain-filter=.example.net \\
  --exclude-domains=private.example.com --provider=pdns --pdns-server=https://ns1:8081 --pdns-api-key=hunter2 \\
  --tls-ca=/ca.pem --policy=upsert-only --txt-owner-id=blue --txt-prefix=own. --interval=2m --log-format=json \\
  --events --aws-zone-type=public --resolve-service-load-balancer-hostname --txt-encrypt-aes-key=not-shown",
    );
    insta::assert_snapshot!(text, @r#"
    # Made by `netstead import external-dns`. What could not be carried over is here as a comment.

    [log]
    level = "info"
    format = "json"

    [source.kubernetes]
    type = "kubernetes"
    # --source=traefik-proxy: external-dns publishes nothing without the annotation `target`, and Netstead publishes such a name too where the provider has a `target` or `default_targets` are set; IngressRouteUDP and the group traefik.containo.us are not read
    # --source=cloudfoundry: Netstead has no such source, so none of its names is published
    kinds = ["ingress", "service", "httproute", "dnsendpoint", "ingressroute", "ingressroutetcp"]
    namespaces = ["shop"]
    label_selector = "dns in (public, both)"
    annotation_filter = "team=web"
    ingress_classes = ["nginx"]
    ingress_tls_hosts = false
    gateways = ["infra/edge"]
    gateway_namespaces = ["infra"]
    service_types = ["ClusterIP", "LoadBalancer", "Headless"]
    publish_cluster_ips = true
    default_targets = ["192.0.2.1"]
    exclude_target_networks = ["10.0.0.0/8"]
    template = "{{.Name}}.example.com"
    types = ["A", "CNAME", "TXT"]
    wildcard = true
    apex = true

    [dns.pdns]
    type = "powerdns"
    url = "https://ns1:8081"
    api_key = "hunter2"
    ca_file = "/ca.pem"
    ttl = 300
    domains = ["example.com", "*.example.net"]
    exclude_domains = ["private.example.com"]
    mode = "additive"
    interval = "2m"
    reverse = false

    # The records that external-dns made become Netstead's, and its marks are removed, with this. Stop external-dns
    # before; --dry-run shows what would be taken over.
    #   netstead adopt --from external-dns --id blue --txt-prefix=own. --txt-key-file FILE
    # FILE has the text of --txt-encrypt-aes-key.

    # Not carried over:
    #   --aws-zone-type=public: it belongs to another provider than `pdns`
    #   --events=true: changes are always followed
    #   --resolve-service-load-balancer-hostname=true: it has no equal here
    "#);
}

#[test]
fn a_list_of_arguments_for_a_server_with_dynamic_updates_is_carried_over() {
    let text = imported(
        "\
- --source=service
- --provider=rfc2136
- --rfc2136-host=192.0.2.53
- --rfc2136-port=5353
- --rfc2136-zone=example.com
- --rfc2136-tsig-secret=c2VjcmV0
- --rfc2136-tsig-secret-alg=hmac-sha256
- --rfc2136-tsig-keyname=external-dns
- --rfc2136-tsig-axfr
- --rfc2136-min-ttl=2m
- --rfc2136-create-ptr
- --registry=noop
- --policy=sync
",
    );
    insta::assert_snapshot!(text, @r#"
    # Made by `netstead import external-dns`. What could not be carried over is here as a comment.

    [log]
    level = "info"
    format = "text"

    [source.kubernetes]
    type = "kubernetes"
    kinds = ["service"]
    types = ["A", "AAAA", "CNAME"]
    wildcard = true
    apex = true

    [dns.rfc2136]
    type = "rfc2136"
    servers = ["192.0.2.53:5353"]
    tsig_name = "external-dns"
    tsig_algorithm = "hmac-sha256"
    tsig_secret = "c2VjcmV0"
    zones = ["example.com"]
    ttl = 120
    domains = ["example.com"]
    mode = "managed"
    adopt = true
    reverse = true

    # the registry `noop` is not read: equal records are taken over by `adopt = true`.
    "#);
}

#[test]
fn what_means_something_else_here_or_is_not_known_is_said() {
    let text = imported(
        "\
kind: Deployment
spec:
  template:
    spec:
      containers:
      - name: external-dns
        args:
        - --source=istio-gateway
        - --source=istio-virtualservice
        - --source=traefik-proxy
        - --label-filter=$(LABELS)
        - --default-targets=$(TARGET)
        - --provider=cloudflare
        - --domain-filter=example.com
        - --zone-id-filter=one
        - --zone-id-filter=two
        - --some-new-switch
        env:
        - { name: LABELS, valueFrom: { configMapKeyRef: { name: a, key: labels } } }
        - { name: TARGET, valueFrom: { configMapKeyRef: { name: a, key: target } } }
",
    );
    insta::assert_snapshot!(text, @r#"
    # Made by `netstead import external-dns`. What could not be carried over is here as a comment.

    [log]
    level = "info"
    format = "text"

    [source.kubernetes]
    type = "kubernetes"
    # --source=istio-gateway: external-dns looks up the Service of an Istio Gateway for its address, and Netstead does not: set `target` at the provider, `default_targets`, or the annotation `target`
    # --source=istio-virtualservice: external-dns looks up the Service of its Gateways for the address, and Netstead does not: set `target` at the provider, `default_targets`, or the annotation `target`
    # --source=traefik-proxy: external-dns publishes nothing without the annotation `target`, and Netstead publishes such a name too where the provider has a `target` or `default_targets` are set; IngressRouteUDP and the group traefik.containo.us are not read
    kinds = ["istio-gateway", "istio-virtualservice", "ingressroute", "ingressroutetcp"]
    types = ["A", "AAAA", "CNAME"]
    wildcard = true
    apex = true

    [dns.cloudflare]
    type = "cloudflare"
    token = { env = "CF_API_TOKEN" }
    # --zone-id-filter=one,two: `zone_id` names one zone, so every zone of the token that `domains` lead to is used; make one table with a `zone_id` for each, or a token for these zones alone
    proxied = false
    domains = ["example.com"]
    mode = "managed"
    reverse = false

    # The records that external-dns made become Netstead's, and its marks are removed, with this. Stop external-dns
    # before; --dry-run shows what would be taken over.
    #   netstead adopt --from external-dns --id default

    # Left out, because the value is only known in the cluster; write it where it belongs:
    #   --default-targets=$(TARGET)
    #   --label-filter=$(LABELS)

    # Not carried over:
    #   --some-new-switch=true: it has no equal here
    "#);
}

#[test]
fn what_cannot_be_read_is_refused_with_the_reason() {
    let sandbox = Sandbox::empty();
    for (text, why) in [
        ("--source=ingress stray", "`stray` is no flag"),
        ("kind: Service\nmetadata: { name: x }\n", "there is no container in it"),
    ] {
        let file = sandbox.path().join("flags");
        std::fs::write(&file, text).unwrap();
        let said = sandbox.fails(&format!("import external-dns --file {}", file.display()));
        assert!(said.err.contains(why), "{}", said.err);
    }
}

const WORKLOADS: &str = "\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: www }
spec:
  rules:
  - host: www.shop.test
    http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: www, port: { number: 80 } } } }] }
status: { loadBalancer: { ingress: [{ ip: 192.0.2.10 }] } }
---
apiVersion: v1
kind: Service
metadata:
  name: db
  annotations: { external-dns.alpha.kubernetes.io/hostname: db.shop.test, external-dns.alpha.kubernetes.io/ttl: \"60\" }
spec: { type: LoadBalancer, ports: [{ port: 5432 }] }
status: { loadBalancer: { ingress: [{ ip: 192.0.2.11 }] } }
---
apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: { name: wild }
spec: { endpoints: [{ dnsName: \"*.wild.shop.test\", recordType: A, targets: [192.0.2.12] }] }
";

/// The zone as external-dns leaves it: records, and marks of which one is older than the encryption.
const RECORDS: [(&str, &str, &str, u32); 7] = [
    ("www.shop.test", "A", "192.0.2.10", 300),
    ("db.shop.test", "A", "192.0.2.11", 60),
    ("*.wild.shop.test", "A", "192.0.2.12", 300),
    ("hand.shop.test", "A", "192.0.2.13", 300),
    (
        "own-a-www.shop.test",
        "TXT",
        "bm9uY2Utbm9uY2UhQQ/SdISqafTVPP6m8BNnl4PZ0NsYYzwS6ercFWm6zWlJNlScUJrIJESG09CyTNX6uBP/hOadXKmiKP3Nyj6luxYDhUgs3PNr7Et4Zcx4gB1nTEso9xs+FhEL70/L3TcqlZiL6LuDqn+ZjUQ=",
        300,
    ),
    (
        "own-a-db.shop.test",
        "TXT",
        "heritage=external-dns,external-dns/owner=blue,external-dns/resource=service/adoption/db",
        300,
    ),
    (
        "own-a-any.wild.shop.test",
        "TXT",
        "bm9uY2Utbm9uY2UhQQ/SdISqafTVPP6m8BNnl4PZ0NsYYzwSiaqw2A7GNcRJNlScUJrIBmR/WvaOt1SltxP/yspplG6iKC0ZAD9Z/72sRkwjDfBQIlx4msyGgR2YTPiDlx2bThELc1A0vhG4pG+Xw1KGhnYdyA==",
        300,
    ),
];

#[test]
fn a_zone_that_external_dns_filled_has_a_plan_without_changes() {
    let Some(dns) = PowerDns::start(&["shop.test"]) else { return };
    let cluster = KubeApiServer::shared();
    cluster.apply(DEFINITIONS);
    cluster.apply_in("adoption", WORKLOADS);
    let arguments = [
        "--source=ingress",
        "--source=service",
        "--source=crd",
        "--namespace=adoption",
        "--domain-filter=shop.test",
        "--provider=pdns",
        &format!("--pdns-server={}", dns.api_url()),
        &format!("--pdns-api-key={}", dns.api_key()),
        "--txt-owner-id=blue",
        "--txt-prefix=own-",
        "--txt-wildcard-replacement=any",
        "--txt-encrypt-enabled",
        "--txt-encrypt-aes-key=$(KEY)",
        "--interval=1s",
    ];
    let deployment = serde_json::json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "external-dns" },
        "spec": {
            "selector": { "matchLabels": { "app": "external-dns" } },
            "template": {
                "metadata": { "labels": { "app": "external-dns" } },
                "spec": { "containers": [{
                    "name": "external-dns", "image": "registry.k8s.io/external-dns/external-dns:v0.21.0",
                    "args": arguments,
                    "env": [{ "name": "KEY", "valueFrom": { "secretKeyRef": { "name": "aes", "key": "key" } } }],
                }] },
            },
        },
    });
    cluster.apply_in("adoption", &deployment.to_string());
    for (name, kind, value, ttl) in RECORDS {
        let value = if kind == "TXT" { format!("\"{value}\"") } else { value.to_owned() };
        let statement = format!(
            "INSERT INTO records (domain_id, name, type, content, ttl) SELECT id, '{name}', '{kind}', '{value}', {ttl} \
             FROM domains WHERE name = 'shop.test'"
        );
        dns.sql(&statement).unwrap();
    }

    let mut sandbox = Sandbox::empty();
    let (out, kubeconfig) = (sandbox.path().join("netstead.toml"), cluster.kubeconfig());
    sandbox.does(&format!(
        "import external-dns --kubeconfig {} --namespace adoption --out {}",
        kubeconfig.display(),
        out.display()
    ));
    let text = std::fs::read_to_string(&out).unwrap();
    let adopt = "netstead adopt --from external-dns --id blue --txt-prefix=own- --txt-wildcard=any --txt-key-file FILE";
    assert!(text.contains(&format!("#   {adopt}\n")), "{text}");
    // The test is not a pod of the cluster.
    let inside = "type = \"kubernetes\"\n";
    let outside = format!("{inside}kubeconfig = \"{}\"\n", kubeconfig.display());
    std::fs::write(&out, text.replace(inside, &outside)).unwrap();
    sandbox.start(&[]);

    let blocked = || {
        let plan = sandbox.netstead(["plan", "pdns"]).out;
        ["www.shop.test", "db.shop.test", "*.wild.shop.test"]
            .iter()
            .all(|name| plan.contains(name))
            .then_some(())
    };
    assert!(wait_until(SOON, blocked).is_some(), "{}", sandbox.netstead(["plan", "pdns"]).out);
    let key = sandbox.path().join("key");
    std::fs::write(&key, format!("{KEY}\n")).unwrap();
    let adopt = adopt.trim_start_matches("netstead ").replace("FILE", &key.display().to_string());
    let mut taken: Vec<String> = sandbox.does(&adopt).lines().map(str::to_owned).collect();
    taken.sort();
    let line = |name: &str, value: &str| format!("pdns  {name} A {value}  from external-dns blue");
    assert_eq!(
        taken,
        [
            line("*.wild.shop.test", "192.0.2.12"),
            line("db.shop.test", "192.0.2.11"),
            line("www.shop.test", "192.0.2.10"),
        ]
    );
    let mut said = sandbox.netstead(["plan", "pdns"]);
    let empty = wait_until(SOON, || {
        said = sandbox.netstead(["plan", "pdns"]);
        (said.code == 0).then_some(())
    });
    assert!(empty.is_some(), "{}{}", said.out, said.err);
    let port = dns.address().port();
    for (name, kind, value, _) in RECORDS.iter().filter(|(_, kind, ..)| *kind == "A") {
        let name = name.replace('*', "any");
        assert_eq!(resolve::a(port, &name).values, [*value], "{name} {kind}");
    }
    // The marks of external-dns are gone, and what it wrote has never changed.
    let records = sandbox.does("get records --provider pdns");
    assert!(!records.contains("own-a-"), "{records}");
    let changes = sandbox.does("get changes --provider pdns -o wide");
    for address in ["192.0.2.10", "192.0.2.11", "192.0.2.12"] {
        assert!(!changes.contains(address), "{changes}");
    }
    sandbox.stop();
}
