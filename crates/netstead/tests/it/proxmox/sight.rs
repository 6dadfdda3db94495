//! Names of guests that the credentials may no longer see, and of clusters with the same numbers.

use netstead_testkit::{FakePve, PowerDns, PveGuest, PveRights, PveVersion};

use super::{configured, destination, once, source};
use crate::{resolve, sandbox::Sandbox};

/// Waits for so many further looks.
fn looks(fake: &FakePve, count: usize) {
    fake.calls();
    let mut seen = 0;
    while seen < count {
        seen += fake.calls().iter().filter(|call| call.ends_with("/cluster/resources")).count();
        std::thread::yield_now();
    }
}

#[test]
fn names_of_a_guest_that_is_hidden_stay_also_after_a_restart_and_go_once_it_is_deleted() {
    let Some(server) = PowerDns::start(&["lab.test"]) else { return };
    let fake = FakePve::start(PveVersion::Nine, &["pve1"]);
    for vmid in 101..107 {
        let name = format!("m{vmid}");
        fake.add(PveGuest::machine(vmid, "pve1", &name, &format!("10.0.3.{}/24", vmid - 90)));
    }
    let own = ["VM.Audit", "VM.GuestAgent.Audit"];
    let each = |rights: PveRights, vmid: u32| rights.and(&format!("/vms/{vmid}"), &own);
    let rights = (101..107).fold(PveRights::on_root(&["Sys.Audit"]), each);
    fake.cluster().tokens.insert(FakePve::TOKEN.into(), rights);
    let every = "interval = \"1s\"\naddress_interval = \"1s\"";
    let mut sandbox = configured(&(source("pve", &fake, every) + &destination(&server)));
    sandbox.start(&[]);
    let port = server.address().port();
    let all_are_there = || {
        for vmid in 101..107 {
            let address = format!("10.0.3.{}", vmid - 90);
            resolve::until(&[address.as_str()], || resolve::a(port, &format!("m{vmid}.lab.test")));
        }
    };
    all_are_there();
    fake.cluster().tokens.values_mut().for_each(|rights| rights.remove("/vms/102"));
    // With Complete views two looks and a second would be enough to remove it.
    let stays = |sandbox: &Sandbox| {
        looks(&fake, 5);
        sandbox.does("apply");
        all_are_there();
        let told = sandbox.does("get sources -o json");
        assert!(told.contains("guest 102 still exists"), "{told}");
    };
    stays(&sandbox);
    sandbox.stop();
    sandbox.start(&[]);
    stays(&sandbox);
    fake.destroy(102);
    resolve::until(&[], || resolve::a(port, "m102.lab.test"));
    resolve::until(&["10.0.3.11"], || resolve::a(port, "m101.lab.test"));
    sandbox.stop();
}

#[test]
fn a_guest_that_is_deleted_in_one_cluster_keeps_its_namesake_of_another() {
    let Some(server) = PowerDns::start(&["lab.test"]) else { return };
    let (here, there) =
        (FakePve::start(PveVersion::Nine, &["pve1"]), FakePve::start(PveVersion::Eight, &["pve1"]));
    for vmid in 101..105 {
        here.add(PveGuest::machine(vmid, "pve1", &format!("a{vmid}"), &format!("10.0.3.{}/24", vmid - 90)));
        there.add(PveGuest::machine(vmid, "pve1", &format!("b{vmid}"), &format!("10.0.4.{}/24", vmid - 90)));
    }
    let sources = source("here", &here, "") + &source("there", &there, "");
    let sandbox = configured(&(sources + &destination(&server)));
    let (code, made) = once(&sandbox);
    assert_eq!((code, made.len()), (0, 8), "{made:?}");
    here.destroy(102);
    let said = sandbox.netstead(["run", "--once", "--settle"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let port = server.address().port();
    assert_eq!(resolve::a(port, "a102.lab.test").values, [""; 0]);
    assert_eq!(resolve::a(port, "b102.lab.test").values, ["10.0.4.12"]);
    assert_eq!(resolve::a(port, "a101.lab.test").values, ["10.0.3.11"]);
}
