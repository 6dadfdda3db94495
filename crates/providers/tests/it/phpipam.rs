//! phpIPAM: its IPAM kind and its connection, against a fake that refuses, escapes and lies as the real one does.

use std::{sync::Arc, time::Duration};

use netstead_model::{
    Fence, FieldValue, Fields, IpamAddress, IpamObject, IpamProvider, IpamSubject, ManualClock, ObjectChange,
    ObjectKey, ObjectUnit, ObjectWrite, ProviderError, UnitOutcome,
};
use netstead_providers::{
    PhpIpamConnection, Secret,
    contract::ipam::{self, IpamSubjectUnderTest},
    ipam::phpipam::Config,
};
use netstead_settings::{Configured as _, Number};
use netstead_testkit::{FakePhpIpam, HttpFault, HttpResponse, PhpIpamSecurity};

use crate::support::context;

fn config(fake: &FakePhpIpam) -> Config {
    let (user, password) = FakePhpIpam::user();
    Config::new(fake.url(), "netstead", user, Secret::new(password))
}

fn open(config: &Config) -> Arc<dyn IpamProvider> {
    Arc::new(config.open(&context()).unwrap())
}

fn request(units: Vec<ObjectUnit>) -> ObjectWrite {
    ObjectWrite::new(units, Fence { owner: "blue".into(), epoch: 1, generation: 1 })
}

/// A host of a hosts file, with one address.
fn host(name: &str, address: &str) -> IpamSubject {
    IpamSubject {
        source: "office".parse().unwrap(),
        id: name.parse().unwrap(),
        kind: "host".into(),
        name: name.into(),
        tags: std::collections::BTreeSet::new(),
        facts: netstead_model::Facts::default(),
        interfaces: Vec::new(),
        addresses: vec![IpamAddress {
            address: address.parse().unwrap(),
            dns_name: Some(name.parse().unwrap()),
            claim: None,
            reserved: false,
        }],
    }
}

fn creates(provider: &Arc<dyn IpamProvider>, subject: &IpamSubject) -> Vec<ObjectUnit> {
    let unit = |draft: netstead_model::ObjectDraft| ObjectUnit {
        key: draft.key,
        change: ObjectChange::Create { fields: draft.fields },
        needs: Vec::new(),
    };
    provider.objects(subject).into_iter().map(unit).collect()
}

async fn make(provider: &Arc<dyn IpamProvider>, subject: &IpamSubject) -> Vec<UnitOutcome> {
    provider.read().await.unwrap();
    provider.write(&request(creates(provider, subject))).await.unwrap().outcomes
}

fn rejection(outcomes: &[UnitOutcome]) -> &str {
    match outcomes {
        [UnitOutcome::Rejected { reason }] => reason,
        other => panic!("it should be rejected: {other:?}"),
    }
}

/// A system with one subnet for the contract.
async fn contract(fake: FakePhpIpam, config: &Config) {
    let fake = Arc::new(fake);
    fake.add_subnet(1, "10.7.0.0/16");
    fake.add_subnet(1, "10.7.7.0/24");
    let hand = Arc::clone(&fake);
    let by_hand = move |object: &IpamObject, field: &str, value: &str| {
        hand.set(object.id.parse().unwrap(), field, value);
    };
    let mut wrong = config.clone();
    wrong.connection.password = wrong.connection.password.map(|_| Secret::new("wrong"));
    wrong.connection.code = wrong.connection.code.map(|_| Secret::new("wrong"));
    let subject = IpamSubjectUnderTest::new(open(config), Some(open(&wrong)), by_hand);
    ipam::all(&subject).await;
    assert!(fake.http().requests().iter().all(|request| request.path.ends_with('/')), "paths end in a slash");
}

#[tokio::test]
async fn phpipam_keeps_the_contract() {
    let fake = FakePhpIpam::start();
    let config = config(&fake);
    contract(fake, &config).await;
}

#[tokio::test]
async fn phpipam_with_texts_for_numbers_entities_and_keys_in_a_nested_custom_field_keeps_the_contract() {
    let fake = FakePhpIpam::start();
    fake.stringify(true);
    fake.escape(true);
    fake.nest_custom_fields(true);
    fake.add_custom_field("custom_netstead");
    let config = Config { key_field: "custom_netstead".into(), ..config(&fake) };
    contract(fake, &config).await;
}

#[tokio::test]
async fn an_app_with_a_code_keeps_the_contract() {
    let fake = FakePhpIpam::start();
    fake.behind_tls(true);
    fake.add_app("coded", PhpIpamSecurity::SslCode, 2);
    let connection = PhpIpamConnection::with_code(fake.url(), "coded", Secret::new(FakePhpIpam::code()));
    contract(fake, &Config::with(connection)).await;
}

#[tokio::test]
async fn an_address_goes_into_the_smallest_subnet_with_its_texts_and_our_key() {
    let fake = FakePhpIpam::start();
    fake.add_subnet(1, "10.0.0.0/8");
    let small = fake.add_subnet(1, "10.0.3.0/24");
    let folder = fake.add_subnet(1, "10.0.3.0/28");
    fake.make_folder(folder);
    let fields = [("owner", "Team <Blue>"), ("custom_at", "{source}/{node}")];
    fake.add_custom_field("custom_at");
    let fields = fields.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    let provider = open(&Config { fields, ..config(&fake) });
    let outcomes = make(&provider, &host("web.home.test", "10.0.3.7")).await;
    assert_eq!(outcomes, [UnitOutcome::Applied]);
    assert_eq!(
        fake.lines(),
        ["10.0.3.7 tag=2 custom_at=office/ description=host web.home.test hostname=web.home.test \
          note=[netstead blue address:office:10.0.3.7@web.home.test] owner=Team (Blue)"]
    );
    let found = provider.read().await.unwrap();
    assert_eq!(found[0].fields["subnet"], FieldValue::Text("10.0.3.0/24".into()));
    let drafts = provider.objects(&host("web.home.test", "10.0.3.7"));
    assert_eq!(drafts[0].fields, found[0].fields, "a second pass has nothing to write");
    // A smaller subnet that comes later does not move it.
    fake.remove_subnet(folder);
    fake.add_subnet(1, "10.0.3.0/29");
    provider.read().await.unwrap();
    assert_eq!(provider.objects(&host("web.home.test", "10.0.3.7"))[0].fields, found[0].fields);
    fake.remove_subnet(small);
    assert_eq!(provider.read().await, Ok(Vec::new()));
}

#[tokio::test]
async fn an_address_without_a_subnet_is_rejected_and_a_subnet_is_made_only_when_told() {
    let fake = FakePhpIpam::start();
    let provider = open(&config(&fake));
    let outcomes = make(&provider, &host("web.home.test", "10.0.3.7")).await;
    assert_eq!(
        rejection(&outcomes),
        "no subnet holds 10.0.3.7: add one to phpIPAM, name a section in `make_subnets`, or leave the address out with \
         `networks`"
    );
    assert!(fake.subnets().is_empty());
    let networks = vec!["10.9.0.0/16".parse().unwrap()];
    let elsewhere = open(&Config { networks, ..config(&fake) });
    assert_eq!(elsewhere.objects(&host("web.home.test", "10.0.3.7")), []);
    let unknown = open(&Config { make_subnets: Some("Racks".into()), ..config(&fake) });
    let outcomes = make(&unknown, &host("web.home.test", "10.0.3.7")).await;
    assert_eq!(rejection(&outcomes), "there is no section `Racks` for a subnet of 10.0.3.7");
    let told =
        Config { make_subnets: Some("Lab".into()), subnet_length: Number::nearest(26), ..config(&fake) };
    let told = open(&told);
    let mut units = creates(&told, &host("web.home.test", "10.0.3.7"));
    units.extend(creates(&told, &host("db.home.test", "10.0.3.8")));
    units.extend(creates(&told, &host("six.home.test", "fd00::7")));
    assert_eq!(told.write(&request(units)).await.unwrap().outcomes, vec![UnitOutcome::Applied; 3]);
    assert_eq!(fake.subnets(), ["10.0.3.0/26 of Lab", "fd00::/64 of Lab"]);
    let found = told.read().await.unwrap();
    assert_eq!(told.objects(&host("web.home.test", "10.0.3.7"))[0].fields, found[0].fields);
}

#[tokio::test]
async fn refused_credentials_are_sent_once_a_minute_and_never_block_the_address() {
    let fake = FakePhpIpam::start();
    fake.add_subnet(1, "10.0.3.0/24");
    let clock = ManualClock::default();
    let wrong = Config::new(fake.url(), "netstead", "Admin", Secret::new("wrong"));
    let provider = wrong.open(&context().with_clock(clock.shared())).unwrap();
    for minute in 1..=12 {
        for _ in 0..3 {
            let refused = provider.read().await;
            let Err(ProviderError::Denied { reason, .. }) = refused else { panic!("{refused:?}") };
            assert_eq!(reason, "the login failed (500): Invalid username or password");
        }
        assert_eq!(fake.logins(), minute);
        clock.advance(Duration::from_secs(66));
        fake.pass(66);
    }
    assert!(open(&config(&fake)).read().await.is_ok(), "the address is not blocked");
}

#[tokio::test]
async fn a_block_is_waited_for() {
    let fake = FakePhpIpam::start();
    fake.add_subnet(1, "10.0.3.0/24");
    for _ in 0..11 {
        let wrong = Config::new(fake.url(), "netstead", "Admin", Secret::new("wrong"));
        assert!(open(&wrong).read().await.is_err());
    }
    let blocked = open(&config(&fake)).read().await;
    let five_minutes = Some(Duration::from_mins(5));
    assert!(
        matches!(blocked, Err(ProviderError::Busy { retry_after, .. }) if retry_after == five_minutes),
        "{blocked:?}"
    );
    fake.pass(301);
    assert!(open(&config(&fake)).read().await.is_ok());
}

#[tokio::test]
async fn a_token_that_ended_is_renewed_in_the_middle_of_a_write() {
    let fake = FakePhpIpam::start();
    fake.add_subnet(1, "10.0.3.0/24");
    let provider = open(&config(&fake));
    assert_eq!(make(&provider, &host("web.home.test", "10.0.3.7")).await, [UnitOutcome::Applied]);
    fake.pass(7 * 3600);
    assert_eq!(make(&provider, &host("db.home.test", "10.0.3.8")).await, [UnitOutcome::Applied]);
    assert_eq!(fake.logins(), 2, "one login at first, and one when the token had ended");
}

#[tokio::test]
async fn an_app_that_may_only_read_says_so_and_goes_on_reading() {
    let fake = FakePhpIpam::start();
    fake.add_subnet(1, "10.0.3.0/24");
    fake.add_app("netstead", PhpIpamSecurity::None, 1);
    let provider = open(&config(&fake));
    provider.read().await.unwrap();
    let refused = provider.write(&request(creates(&provider, &host("web.home.test", "10.0.3.7")))).await;
    let Err(ProviderError::Denied { reason, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(reason, "invalid permissions; does the app `netstead` have the permission Read / Write?");
    assert_eq!(provider.read().await, Ok(Vec::new()));
}

#[tokio::test]
async fn an_api_that_is_off_without_tls_or_encrypted_is_told_with_the_next_step() {
    let fake = FakePhpIpam::start();
    let told = async |fake: &FakePhpIpam, app: &str| {
        let (user, password) = FakePhpIpam::user();
        match open(&Config::new(fake.url(), app, user, Secret::new(password))).read().await {
            Err(ProviderError::Unreachable { reason, .. } | ProviderError::Denied { reason, .. }) => reason,
            other => panic!("it should be refused: {other:?}"),
        }
    };
    fake.add_app("ssl", PhpIpamSecurity::SslToken, 2);
    fake.add_app("crypt", PhpIpamSecurity::Crypt, 2);
    assert_eq!(
        told(&fake, "ssl").await,
        "SSL connection is required for API; give an address with `https`, or allow `api_allow_unsafe` in its config.php"
    );
    assert_eq!(
        told(&fake, "crypt").await,
        "Invalid enc_request; the app `crypt` has the security `crypt`: give it `SSL with User token`"
    );
    assert_eq!(told(&fake, "nothing").await, "the login failed (400): Invalid application id");
    fake.switch_off(true);
    assert_eq!(
        told(&fake, "netstead").await,
        "API server disabled; switch on the API in phpIPAM's settings, and give the app `netstead` a permission"
    );
}

#[tokio::test]
async fn what_others_made_is_left_alone_and_a_change_keeps_tag_and_note_of_people() {
    let fake = FakePhpIpam::start();
    let subnet = fake.add_subnet(1, "10.0.3.0/24");
    let theirs = fake.put(subnet, "10.0.3.9", &[("hostname", "printer")]);
    let provider = open(&config(&fake));
    let outcomes = make(&provider, &host("web.home.test", "10.0.3.9")).await;
    assert_eq!(rejection(&outcomes), format!("10.0.3.9 is there already, with the id {theirs}"));
    assert_eq!(make(&provider, &host("web.home.test", "10.0.3.7")).await, [UnitOutcome::Applied]);
    let object = provider.read().await.unwrap().into_iter().find(|object| object.mark.is_some()).unwrap();
    let (id, key): (u64, ObjectKey) = (object.id.parse().unwrap(), object.mark.unwrap().key);
    let note = fake.field(id, "note").unwrap();
    fake.set(id, "note", &format!("rack 7\n{note}"));
    fake.set(id, "hostname", "");
    let text = |text: &str| FieldValue::Text(text.into());
    let after = Fields::from([("hostname".to_owned(), text("new.home.test"))]);
    let change = ObjectChange::Update { id: object.id, adopted: false, before: Fields::new(), after };
    let unit = ObjectUnit { key, change, needs: Vec::new() };
    assert_eq!(provider.write(&request(vec![unit])).await.unwrap().outcomes, [UnitOutcome::Applied]);
    assert_eq!(
        fake.lines(),
        [
            "10.0.3.7 tag=2 description=host web.home.test hostname=new.home.test note=rack 7\n[netstead blue \
             address:office:10.0.3.7@web.home.test]",
            "10.0.3.9 tag=2 hostname=printer",
        ]
    );
}

#[tokio::test]
async fn an_address_that_a_claim_holds_is_filled_in_and_only_emptied_again() {
    let fake = FakePhpIpam::start();
    let subnet = fake.add_subnet(1, "10.0.3.0/24");
    let fields = [("note", "[netstead-claim blue/lan/web]"), ("description", "claim `web` of `alice`")];
    let claimed = fake.put(subnet, "10.0.3.7", &fields);
    fake.put(subnet, "10.0.3.8", &[("note", "[netstead-claim green/lan/db]")]);
    let provider = open(&config(&fake));
    assert_eq!(make(&provider, &host("web.home.test", "10.0.3.7")).await, [UnitOutcome::Applied]);
    let found = provider.read().await.unwrap();
    let [object] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(object.fields, provider.objects(&host("web.home.test", "10.0.3.7"))[0].fields);
    let key = object.mark.clone().unwrap().key;
    let change = ObjectChange::Delete { id: object.id.clone(), before: object.fields.clone() };
    let unit = ObjectUnit { key, change, needs: Vec::new() };
    assert_eq!(provider.write(&request(vec![unit])).await.unwrap().outcomes, [UnitOutcome::Applied]);
    assert_eq!(fake.lines()[0], "10.0.3.7 tag=2 note=[netstead-claim blue/lan/web]");
    assert!(fake.ids().contains(&claimed));
    let outcomes = make(&provider, &host("db.home.test", "10.0.3.8")).await;
    assert_eq!(rejection(&outcomes), "10.0.3.8 is claimed as `green/lan/db`");
}

#[tokio::test]
async fn a_custom_field_that_is_missing_is_named() {
    let fake = FakePhpIpam::start();
    let subnet = fake.add_subnet(1, "10.0.3.0/24");
    let config = Config { key_field: "custom_netstead".into(), ..config(&fake) };
    let provider = open(&config);
    let missing = "addresses have no field `custom_netstead` for our keys: add it in Administration, Custom fields, IP \
                   addresses, with the type `text`, or leave out `key_field`";
    assert_eq!(rejection(&make(&provider, &host("web.home.test", "10.0.3.7")).await), missing);
    assert!(fake.ids().is_empty(), "nothing without our key is left behind");
    fake.put(subnet, "10.0.3.9", &[]);
    let refused = provider.read().await;
    assert!(
        matches!(&refused, Err(ProviderError::Malformed { reason, .. }) if reason == missing),
        "{refused:?}"
    );
    fake.add_custom_field("custom_netstead");
    assert_eq!(make(&provider, &host("web.home.test", "10.0.3.7")).await, [UnitOutcome::Applied]);
}

#[tokio::test]
async fn lost_answers_errors_and_busy_servers_leave_one_object_or_none() {
    let fake = FakePhpIpam::start();
    fake.add_subnet(1, "10.0.3.0/24");
    let provider = open(&config(&fake));
    provider.read().await.unwrap();
    fake.http().fail_at("POST /api/netstead/addresses/", 0, HttpFault::Lost);
    let outcomes = make(&provider, &host("a.home.test", "10.0.3.1")).await;
    assert_eq!(outcomes, [UnitOutcome::Applied], "the second request finds the object of the first");
    fake.http().fail_at("POST /api/netstead/addresses/", 0, HttpFault::Half);
    assert_eq!(make(&provider, &host("b.home.test", "10.0.3.2")).await, [UnitOutcome::Applied]);
    let broken =
        HttpResponse::json(500, r#"{"code":500,"success":false,"message":"Failed to create address"}"#);
    fake.http().fail_at("POST /api/netstead/addresses/", 0, HttpFault::Answer(broken));
    let outcomes = make(&provider, &host("c.home.test", "10.0.3.3")).await;
    assert_eq!(rejection(&outcomes), "Failed to create address");
    fake.http().fail(0, 9, HttpFault::status(502, None), |request| request.method == "POST");
    let mut units = creates(&provider, &host("d.home.test", "10.0.3.4"));
    units.extend(creates(&provider, &host("e.home.test", "10.0.3.5")));
    let reply = provider.write(&request(units)).await.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::Unknown, UnitOutcome::NotTried]);
    assert!(reply.stopped.is_some());
    assert_eq!(fake.ids().len(), 2);
    // A success that is none.
    let lie = HttpResponse::json(200, r#"{"code":200,"success":false,"message":"No database"}"#);
    fake.http().fail_at("GET /api/netstead/sections/1/subnets/", 0, HttpFault::Answer(lie));
    let refused = provider.read().await;
    assert!(refused.is_err(), "{refused:?}");
    // A page of a proxy is no empty list.
    fake.http().fail_at(
        "GET /api/netstead/subnets/",
        0,
        HttpFault::Answer(HttpResponse::new(404, "<html>no</html>")),
    );
    let refused = provider.read().await;
    assert!(matches!(refused, Err(ProviderError::Malformed { .. })), "{refused:?}");
    assert_eq!(provider.read().await.unwrap().len(), 2);
}

#[test]
fn mistakes_in_the_table_are_told() {
    let config = Config::new("https://ipam.example.com/api/", "netstead", "Admin", Secret::new("x"));
    assert_eq!(config.check(), Ok(()));
    let told = |change: &dyn Fn(&mut Config)| {
        let mut config = config.clone();
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    let fields =
        |name: &str, text: &str| std::collections::BTreeMap::from([(name.to_owned(), text.to_owned())]);
    assert!(
        told(&|config| config.connection.security = netstead_providers::PhpIpamSecurity::Crypt)
            .starts_with("security: `crypt` is not spoken")
    );
    assert_eq!(
        told(&|config| config.connection.security = netstead_providers::PhpIpamSecurity::SslCode),
        "code: it is missing"
    );
    assert_eq!(told(&|config| config.connection.password = None), "password: it is missing");
    assert_eq!(told(&|config| config.connection.app = "a/b".into()), "app: `a/b` is no id of an app");
    assert_eq!(told(&|config| config.key_field = "owner".into()), "key_field: `owner` cannot have our keys");
    assert_eq!(
        told(&|config| config.fields = fields("rack", "7")),
        "fields: `rack` is no field that is written"
    );
    assert_eq!(
        told(&|config| config.fields = fields("owner", "{rack}")),
        "fields: `owner`: there is no word `{rack}`"
    );
}
