//! phpIPAM from the configuration file: objects of a source, and claims out of its subnets.

use std::{sync::Arc, time::Duration};

use netstead_client::types::ClaimInput;
use netstead_ledger::contract::{self, Subject};
use netstead_model::PoolBackend;
use netstead_providers::{BuildContext, Secret, pool::phpipam::Config};
use netstead_testkit::{FakePhpIpam, HttpFault, wait_until};

use crate::sandbox::{SOON, Sandbox};

fn connection(fake: &FakePhpIpam) -> String {
    let (user, password) = FakePhpIpam::user();
    format!(
        "type = \"phpipam\"\nurl = \"{}\"\napp = \"netstead\"\nsecurity = \"none\"\nuser = \"{user}\"\n\
         password = \"{password}\"\n",
        fake.url()
    )
}

/// A sandbox with an IPAM system and a pool at one phpIPAM.
fn scene(fake: &FakePhpIpam, hosts: &str) -> Sandbox {
    let sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("hosts"), hosts).unwrap();
    let connection = connection(fake);
    let file = format!(
        "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n\n\
         [ipam.inventory]\n{connection}interval = \"1s\"\nended_grace = \"0s\"\n\n\
         [backend.ipam]\n{connection}\n\
         [pool.lan]\nbackend = \"ipam\"\nbackend_pool = \"10.7.7.0/24\"\ncooldown = \"0\"\n"
    );
    std::fs::write(sandbox.path().join("netstead.toml"), file).unwrap();
    sandbox
}

/// Waits until phpIPAM holds exactly these addresses.
fn holds(fake: &FakePhpIpam, wanted: &[String]) {
    let is = wait_until(SOON, || (fake.lines() == wanted).then_some(()));
    assert!(is.is_some(), "{:#?} should be {wanted:#?}", fake.lines());
}

fn has_pool(sandbox: &Sandbox) {
    let made =
        wait_until(SOON, || (sandbox.netstead(["get", "pools", "-o", "name"]).out == "lan\n").then_some(()));
    assert!(made.is_some(), "the pool of the file is made: {:?}", sandbox.netstead(["get", "pools"]));
}

/// Runs passes and sees that none of them writes.
fn rests(sandbox: &Sandbox, fake: &FakePhpIpam) {
    let before = fake.changes();
    for _ in 0..3 {
        sandbox.does("apply --provider inventory");
    }
    assert_eq!(fake.changes(), before, "a pass without news writes nothing");
}

fn owner(fake: &FakePhpIpam) -> String {
    let note = fake
        .ids()
        .iter()
        .rev()
        .find_map(|id| fake.field(*id, "note").filter(|note| note.contains("[netstead")));
    let note = note.unwrap();
    note.split_whitespace().nth(1).unwrap().split('/').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn phpipam_keeps_the_contract_of_pool_backends() {
    for strange in [false, true] {
        let fake = FakePhpIpam::start();
        let (user, password) = FakePhpIpam::user();
        let mut config = Config::new(fake.url(), "netstead", user, Secret::new(password));
        if strange {
            fake.stringify(true);
            fake.escape(true);
            fake.nest_custom_fields(true);
            fake.add_custom_field("custom_netstead");
            config.key_field = "custom_netstead".into();
        }
        fake.add_subnet(1, "10.7.0.0/16");
        let small = fake.add_subnet(1, "10.7.7.0/29");
        let context = BuildContext::new("ipam".parse().unwrap());
        let backend: Arc<dyn PoolBackend> = Arc::new(config.open(&context).unwrap());
        let outside = "10.7.9.1".parse().unwrap();
        for pool in ["10.7.7.0/29".to_owned(), small.to_string()] {
            contract::pools(&Subject { backend: backend.clone(), pool, size: 6, outside }).await;
        }
        assert!(fake.ids().is_empty(), "{:#?}", fake.lines());
    }
}

#[test]
fn names_and_claims_are_in_phpipam_and_a_second_pass_and_a_restart_write_nothing() {
    let fake = FakePhpIpam::start();
    let subnet = fake.add_subnet(1, "10.7.7.0/24");
    let gateway = fake.put(subnet, "10.7.7.1", &[("hostname", "router")]);
    fake.make_gateway(gateway);
    let mut sandbox = scene(&fake, "10.7.7.20 web.home.test\n");
    sandbox.start(&[]);
    let router = "10.7.7.1 tag=2 hostname=router".to_owned();
    let made = wait_until(SOON, || (fake.ids().len() == 2).then_some(()));
    assert!(made.is_some(), "{:#?}", fake.lines());
    let id = owner(&fake);
    let web = format!(
        "10.7.7.20 tag=2 description=host web.home.test hostname=web.home.test \
         note=[netstead {id} address:office:10.7.7.20@web.home.test]"
    );
    holds(&fake, &[router.clone(), web.clone()]);
    rests(&sandbox, &fake);

    has_pool(&sandbox);
    assert_eq!(sandbox.does("claim lan db"), "10.7.7.2\n");
    assert_eq!(sandbox.does("claim lan db"), "10.7.7.2\n");
    let claimed = |tag: u8, description: &str, note: &str| {
        format!("10.7.7.2 tag={tag} description={description} note={note}")
    };
    let mark = format!("[netstead {id} address:ledger:10.7.7.2@lan/db] [netstead-claim {id}/lan/db]");
    let db = claimed(3, "claim lan/db", &mark);
    holds(&fake, &[router.clone(), db.clone(), web.clone()]);
    rests(&sandbox, &fake);
    let before = fake.changes();
    sandbox.stop();
    sandbox.start(&[]);
    has_pool(&sandbox);
    rests(&sandbox, &fake);
    assert_eq!(fake.changes(), before, "a restart writes nothing");
    assert_eq!(sandbox.does("get drift --backends -o name"), "");

    // The IPAM pass takes its own fields back, and leaves the address to the claim.
    let cleaned = sandbox.does("clean --provider inventory --yes");
    assert!(cleaned.contains("- address 10.7.7.20"), "{cleaned}");
    let left = format!("10.7.7.2 tag=3 note=[netstead-claim {id}/lan/db]");
    holds(&fake, &[router.clone(), left]);
    sandbox.does("release lan db");
    holds(&fake, &[router]);
    sandbox.stop();
}

#[test]
fn parallel_claims_get_addresses_of_their_own_while_answers_are_lost() {
    let fake = FakePhpIpam::start();
    fake.add_subnet(1, "10.7.7.0/24");
    let mut sandbox = scene(&fake, "");
    sandbox.start(&[]);
    has_pool(&sandbox);
    fake.http().fail(5, 4, HttpFault::Lost, |request| request.path.contains("first_free"));
    let client = sandbox.client();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut given: Vec<String> = runtime.block_on(async {
        let client = Arc::new(client);
        let claims = (0..64).map(|number| {
            let client = Arc::clone(&client);
            tokio::spawn(async move {
                let key = format!("key-{number}");
                for _ in 0..100 {
                    let asked = client.claim("lan", &key, &ClaimInput::default()).await;
                    let address = asked.ok().and_then(|(claim, _)| claim.address);
                    if let Some(address) = address {
                        return address;
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                "none".to_owned()
            })
        });
        let mut given = Vec::new();
        for claim in claims.collect::<Vec<_>>() {
            given.push(claim.await.unwrap());
        }
        given
    });
    given.sort();
    given.dedup();
    assert_eq!(given.len(), 64, "{given:?}");
    let held = wait_until(SOON, || (fake.ids().len() == 64).then_some(()));
    assert!(held.is_some(), "no address is held twice or forgotten: {:#?}", fake.lines());
    sandbox.stop();
}

#[test]
fn a_claim_waits_while_phpipam_is_away_and_a_wrong_subnet_is_told() {
    let fake = FakePhpIpam::start();
    fake.add_subnet(1, "10.7.7.0/24");
    let mut sandbox = scene(&fake, "");
    sandbox.start(&[]);
    has_pool(&sandbox);
    let refused = sandbox.fails("pool create other --backend ipam --backend-pool 10.8.0.0/24");
    assert!(refused.err.contains("phpIPAM has no subnet `10.8.0.0/24`"), "{}", refused.err);
    fake.stop();
    let waits = sandbox.netstead(["claim", "lan", "web-1", "--wait", "1s", "--keep"]);
    assert_eq!(waits.code, 2, "{waits:?}");
    assert!(waits.err.contains("waits for the backend of pool `lan`"), "{}", waits.err);
    fake.restart();
    let bound = wait_until(SOON, || {
        let claims = sandbox.netstead(["get", "claims", "-o", "json"]);
        claims.out.contains("10.7.7.1").then_some(())
    });
    assert!(bound.is_some(), "{:?}", sandbox.netstead(["get", "claims"]));
    sandbox.stop();
}

#[test]
fn mistakes_in_the_tables_are_told_with_their_place() {
    let sandbox = Sandbox::empty();
    let config = "[ipam.office]\ntype = \"phpipam\"\nurl = \"https://ipam.example.com\"\napp = \"netstead\"\n\
                  security = \"crypt\"\n[backend.office]\ntype = \"phpipam\"\nurl = \"https://ipam.example.com\"\n\
                  app = \"netstead\"\nkey_feld = \"note\"\nuser = \"netstead\"\npassword = \"x\"\n";
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    let told = sandbox.fails("config check").err;
    assert!(told.contains("ipam.office.security: `crypt` is not spoken"), "{told}");
    assert!(told.contains("key_field"), "{told}");
}
