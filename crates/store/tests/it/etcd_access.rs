//! An etcd that asks who we are: TLS, certificates, users, and tokens that grow old.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use netstead_store::{Commit, EtcdOptions, EtcdStore, Store, WatchItem, contract};
use netstead_testkit::Etcd;
use netstead_wire::{Tls, TlsVersion};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, PKCS_RSA_SHA256, RsaKeySize,
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(30);

/// An authority that signs for servers and clients, with its files.
struct Authority {
    dir: TempDir,
    issuer: Issuer<'static, KeyPair>,
    ca: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&key).unwrap().pem();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("ca.pem"), &ca).unwrap();
        Self { dir, issuer: Issuer::new(params, key), ca }
    }

    /// Makes a certificate and a key for a server's host or a client's name.
    fn signs(&self, host: &str, name: &str, usage: &[ExtendedKeyUsagePurpose]) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        if !name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.extended_key_usages = usage.to_vec();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    fn client(&self, name: &str) -> (String, String) {
        self.signs("client.test", name, &[ExtendedKeyUsagePurpose::ClientAuth])
    }

    /// Trusts this authority and shows a certificate that `signer` made.
    fn trusts_as(&self, signer: &Self, name: &str) -> Tls {
        let (certificate, key) = signer.client(name);
        let client_cert = Some(self.file(&format!("client-{name}.pem"), &certificate).into());
        let client_key = Some(self.file(&format!("client-{name}.key"), &key).into());
        Tls { client_cert, client_key, ..self.trusts() }
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// One member with a certificate for `host`.
    fn etcd(&self, host: &str, flags: &[&str]) -> Option<Etcd> {
        // etcd's own gateway is a client of its server, with the server's certificate.
        let usage = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let (certificate, key) = self.signs(host, "", &usage);
        let (certificate, key) = (self.file("server.pem", &certificate), self.file("server.key", &key));
        let mut all = vec!["--cert-file", &certificate, "--key-file", &key];
        all.extend(flags);
        Etcd::start_with(1, "https", &all)
    }

    /// The flag that makes etcd ask for certificates of ours.
    fn asks(&self) -> [String; 2] {
        [
            "--client-cert-auth".into(),
            format!("--trusted-ca-file={}", self.dir.path().join("ca.pem").display()),
        ]
    }

    fn trusts(&self) -> Tls {
        Tls { ca_file: Some(self.dir.path().join("ca.pem")), ..Tls::default() }
    }
}

fn options(etcd: &Etcd, tls: Tls) -> EtcdOptions {
    EtcdOptions { tls, prefix: "/n".into(), ..EtcdOptions::new(etcd.endpoints()) }
}

async fn refusal(options: &EtcdOptions) -> String {
    let refused = timeout(SOON, EtcdStore::open(options)).await.expect("an answer in time");
    refused.expect_err("it should not have been let in").to_string()
}

/// Checks all that a store needs of its way to etcd: commits, conditions, snapshots, watches, the lead.
async fn works(options: &EtcdOptions) {
    macro_rules! run {
        ($($module:ident::$check:ident)*) => {$({
            let prefix = format!("/n/{}", stringify!($check));
            let options = EtcdOptions { prefix, ..options.clone() };
            let store: Arc<dyn Store> = Arc::new(EtcdStore::open(&options).await.unwrap());
            contract::$module::$check(Arc::clone(&store)).await;
            store.close().await;
        })*};
    }
    run! {
        basics::what_is_put_is_read_back basics::what_is_deleted_is_gone basics::the_epoch_grows_with_each_lead
        conditions::a_version_holds_only_until_the_next_write limits::the_largest_commit_lands
        ranges::pages_join_without_gap_or_overlap snapshots::a_snapshot_stays_as_it_was
        concurrency::many_commits_at_once_all_land watches::commits_come_in_order_and_once
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_tls_everything_works_for_those_who_trust_its_authority() {
    let authority = Authority::new();
    let Some(etcd) = authority.etcd("127.0.0.1", &[]) else { return };
    works(&options(&etcd, authority.trusts())).await;
    let store = EtcdStore::open(&options(&etcd, authority.trusts())).await.unwrap();
    let remarks = store.examine().await;
    assert!(remarks[0].text.ends_with("MiB of 2.0 GiB"), "its metrics are behind TLS too: {remarks:?}");
    store.close().await;

    let machine = refusal(&options(&etcd, Tls::default())).await;
    assert!(machine.contains("UnknownIssuer") && machine.contains("`ca_file`"), "{machine}");
    let other = refusal(&options(&etcd, Authority::new().trusts())).await;
    assert!(other.contains("certificate") && other.contains("`ca_file`"), "{other}");
    let plain: Vec<_> = etcd.endpoints().iter().map(|url| url.replace("https", "http")).collect();
    let plain = refusal(&EtcdOptions::new(plain)).await;
    assert!(plain.contains("https"), "{plain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_without_tls_is_told_from_one_with_it() {
    let Some(etcd) = Etcd::start(1) else { return };
    let urls: Vec<_> = etcd.endpoints().iter().map(|url| url.replace("http", "https")).collect();
    let refused = refusal(&EtcdOptions::new(urls)).await;
    assert!(refused.contains("write `http://`"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_name_needs_that_name() {
    let authority = Authority::new();
    let Some(etcd) = authority.etcd("etcd.test", &[]) else { return };
    let refused = refusal(&options(&etcd, authority.trusts())).await;
    assert!(refused.contains("etcd.test") && refused.contains("`server_name`"), "{refused}");
    let tls = Tls { server_name: Some("etcd.test".into()), ..authority.trusts() };
    works(&options(&etcd, tls)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_certificate_and_a_newer_tls_are_enough_to_know_it() {
    let authority = Authority::new();
    let Some(etcd) = authority.etcd("etcd.test", &[]) else { return };
    let pem = fs::read(authority.dir.path().join("server.pem")).unwrap();
    let fingerprint = |pem: &[u8]| {
        let certificate = CertificateDer::from_pem_slice(pem).unwrap();
        let bytes = Sha256::digest(certificate);
        Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":"))
    };
    let pinned = |fingerprint| Tls { fingerprint, min_tls_version: TlsVersion::V1_3, ..Tls::default() };
    works(&options(&etcd, pinned(fingerprint(&pem)))).await;
    let other = refusal(&options(&etcd, pinned(fingerprint(authority.ca.as_bytes())))).await;
    assert!(other.contains("is not the one of `fingerprint`"), "{other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_missing_is_named() {
    let tls = Tls { ca_file: Some("/nowhere/ca.pem".into()), ..Tls::default() };
    let refused = refusal(&EtcdOptions { tls, ..EtcdOptions::new(["https://127.0.0.1:1"]) }).await;
    assert!(refused.contains("ca_file: /nowhere/ca.pem holds no certificate: No such file"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_ours_is_shown_where_one_is_asked_for() {
    let authority = Authority::new();
    let [asks, whom] = authority.asks();
    let Some(etcd) = authority.etcd("127.0.0.1", &[&asks, &whom]) else { return };
    let with = |signer: &Authority| options(&etcd, authority.trusts_as(signer, "ned"));
    let none = refusal(&options(&etcd, authority.trusts())).await;
    assert!(none.contains("`client_cert`"), "{none}");
    let foreign = refusal(&with(&Authority::new())).await;
    assert!(foreign.contains("`client_cert`"), "{foreign}");
    works(&with(&authority)).await;
}

/// Gives etcd the users `root` and `ned`, who may use `/n/`.
fn make_users(run: impl Fn(&str) -> std::io::Result<String>) {
    for command in [
        "user add root:root",
        "user grant-role root root",
        "role add netstead",
        "role grant-permission --prefix netstead readwrite /n/",
        "user add ned:secret",
        "user grant-role ned netstead",
        "auth enable",
    ] {
        // Debian's etcd has no role `root` to begin with.
        if run(command).is_err() {
            run("role add root").unwrap();
            run(command).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_in_our_certificate_is_a_user() {
    let authority = Authority::new();
    let [asks, whom] = authority.asks();
    let Some(etcd) = authority.etcd("127.0.0.1", &[&asks, &whom]) else { return };
    let (certificate, key) = authority.client("root");
    let ca = authority.file("ca.pem", &authority.ca);
    let (certificate, key) = (authority.file("root.pem", &certificate), authority.file("root.key", &key));
    make_users(|command| {
        let mut words = vec!["--cacert", &ca, "--cert", &certificate, "--key", &key];
        words.extend(command.split(' '));
        etcd.ctl(&words)
    });
    let with = |name| authority.trusts_as(&authority, name);
    works(&options(&etcd, with("ned"))).await;
    let outside = refusal(&EtcdOptions { prefix: "/other".into(), ..options(&etcd, with("ned")) }).await;
    assert!(outside.contains("needs read and write on the whole prefix"), "{outside}");
    let stranger = refusal(&options(&etcd, with("stranger"))).await;
    assert!(stranger.contains("needs read and write on the whole prefix"), "{stranger}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_end_whatever_is_done_with_them_are_renewed() {
    let files = Authority::new();
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    let public = files.file("jwt.pub", &key.public_key_pem());
    let private = files.file("jwt.key", &key.serialize_pem());
    let tokens = format!("jwt,pub-key={public},priv-key={private},sign-method=RS256,ttl=2s");
    let Some(mut etcd) = Etcd::start_with(1, "http", &["--auth-token", &tokens]) else { return };
    make_users(|command| etcd.ctl(&command.split(' ').collect::<Vec<_>>()));
    let user = Some(("ned".to_owned(), "secret".to_owned()));
    let with_user = EtcdOptions { user, ..options(&etcd, Tls::default()) };
    works(&with_user).await;

    let store = EtcdStore::open(&with_user).await.unwrap();
    let mut watch = store.watch(b"k/").await.unwrap();
    store.lead().await.unwrap();
    // Commits all the time over three lives of a token, and one life of etcd.
    for number in 0..30_u32 {
        if number == 20 {
            etcd.restart(0).unwrap();
        }
        let write = || Commit::new().put(format!("k/{number:02}"), "1");
        let landed = async {
            while store.commit(write()).await.is_err() {
                assert!(number >= 20, "etcd was there all the time");
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(SOON, landed).await.unwrap();
        sleep(Duration::from_millis(200)).await;
    }
    let mut last = String::new();
    while last != "k/29" {
        let item = timeout(SOON, watch.next()).await.unwrap();
        let Some(WatchItem::Changed { writes, .. }) = item else { panic!("{last}: {item:?}") };
        last = String::from_utf8_lossy(writes[0].key()).into_owned();
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_behind_tls_is_known_by_password() {
    let authority = Authority::new();
    let Some(etcd) = authority.etcd("127.0.0.1", &[]) else { return };
    let ca = authority.file("ca.pem", &authority.ca);
    make_users(|command| {
        let mut words = vec!["--cacert", &ca];
        words.extend(command.split(' '));
        etcd.ctl(&words)
    });
    let with = |password: &str| EtcdOptions {
        user: Some(("ned".into(), password.into())),
        ..options(&etcd, authority.trusts())
    };
    works(&with("secret")).await;
    let wrong = refusal(&with("wrong")).await;
    assert!(wrong.contains("the user `ned` is refused") && wrong.contains("password"), "{wrong}");
}
