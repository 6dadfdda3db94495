//! Refusals as people read them.

use insta::assert_snapshot;
use netstead_ledger::{LedgerError, Refusal};
use netstead_model::Span;

use crate::support::key;

/// One of every kind, and of every form a message takes.
fn every_refusal() -> Vec<Refusal> {
    let pool = || "lan".parse().unwrap();
    let (web, ann) = (|| key("web"), || "ann".into());
    let address = || "10.0.3.50".to_owned();
    let exhausted = |resting, seconds: Option<u64>| Refusal::Exhausted {
        pool: pool(),
        resting,
        next_free: seconds.map(Span::from_secs),
    };
    let observed = |note: Option<&str>| Refusal::Observed {
        address: address(),
        source_name: "pve".parse().unwrap(),
        since: "2026-01-02T03:04:05Z".parse().unwrap(),
        note: note.map(ToOwned::to_owned),
    };
    let id = "1f0c22ab-17".parse().unwrap();
    vec![
        Refusal::NoSuchPool { pool: pool() },
        Refusal::NothingSelected { selector: "site=ams".into() },
        Refusal::PoolExists { pool: pool() },
        Refusal::NoSuchClaim { pool: pool(), key: web() },
        Refusal::AddressHeld { address: address(), pool: pool(), key: web(), owner: ann() },
        Refusal::KeyHeld { pool: pool(), key: web(), owner: ann(), address: address() },
        Refusal::HoldsAnother { pool: pool(), key: web(), held: address(), asked: "10.0.3.60".into() },
        exhausted(0, None),
        exhausted(1, Some(50)),
        exhausted(1, Some(0)),
        exhausted(17, Some(50)),
        exhausted(17, Some(0)),
        Refusal::Resting { address: address(), key: web(), owner: ann(), left: Span::from_secs(345) },
        observed(None),
        observed(Some("vm 104")),
        Refusal::NotInPool { address: "192.0.2.1".into(), pool: pool() },
        Refusal::Withheld { address: "10.0.3.1".into(), pool: pool(), reason: "it is the gateway" },
        Refusal::Reserved { address: address(), pool: pool(), key: web(), owner: ann() },
        Refusal::ForceDenied { address: address(), pool: pool(), key: web(), owner: ann() },
        Refusal::QuotaReached { pool: pool(), owner: ann(), held: 2, most: 2 },
        Refusal::Overlap {
            pool: pool(),
            other: "dmz".parse().unwrap(),
            vrf: "default".parse().unwrap(),
            at: "10.0.3.0/24".into(),
        },
        Refusal::WouldStrand { pool: pool(), address: address(), key: web(), owner: ann() },
        Refusal::PoolInUse { pool: pool(), claims: 1, reservations: 0 },
        Refusal::PoolInUse { pool: pool(), claims: 300, reservations: 1 },
        Refusal::CarriesPool { address: "fd00:2::/64".into(), pool: pool() },
        Refusal::PoolClosing { pool: pool() },
        Refusal::ReadOnly { pool: pool() },
        Refusal::VersionMismatch { pool: pool(), is: 12, asked: 7 },
        Refusal::AlreadyGone { key: web(), id, now: "the key holds nothing" },
        Refusal::AlreadyGone { key: web(), id, now: "the key has a later claim" },
        Refusal::NotYours { pool: pool(), key: web(), owner: ann() },
        Refusal::WaitingForOther { pool: pool(), key: web(), owner: ann() },
        Refusal::Paused,
        Refusal::Entry { place: 3, key: web(), refusal: Refusal::Paused.into() },
        Refusal::Invalid { field: "length", reason: "only a claim in a prefix pool has a length".into() },
    ]
}

#[test]
fn every_refusal_names_its_subject_and_says_what_to_do() {
    let lines: Vec<String> = every_refusal().iter().map(ToString::to_string).collect();
    assert_snapshot!(lines.join("\n"), @r"
    there is no pool `lan`
    no pool matches `site=ams`
    a pool `lan` exists already, with other settings; use `pool update`
    `web` holds nothing in pool `lan`
    10.0.3.50 is held by `web` of `ann` in pool `lan`
    `web` in pool `lan` belongs to `ann`, who holds 10.0.3.50 with it; use another key, or adopt it
    `web` holds 10.0.3.50 in pool `lan` and not 10.0.3.60; release it first, because someone may be using 10.0.3.50
    pool `lan` has no free address, and none is resting
    pool `lan` has no free address; 1 is resting, and free in 50s
    pool `lan` has no free address; 1 is resting
    pool `lan` has no free address; 17 are resting, and the next is free in 50s
    pool `lan` has no free address; 17 are resting
    10.0.3.50 rests for 5m 45s more, since the claim `web` of `ann` ended; wait, or force it
    10.0.3.50 was seen in use by `pve` since 2026-01-02T03:04:05Z; adopt it if it is yours
    10.0.3.50 was seen in use by `pve` since 2026-01-02T03:04:05Z (vm 104); adopt it if it is yours
    192.0.2.1 is not in pool `lan`
    pool `lan` never hands out 10.0.3.1: it is the gateway
    10.0.3.50 is reserved for `web` of `ann` in pool `lan`
    10.0.3.50 is reserved for `web` of `ann` in pool `lan`, and only a caller who may write can force it
    `ann` holds 2 addresses of pool `lan`, which allows 2 per owner; release one first
    the ranges of pool `lan` and of pool `dmz` overlap at 10.0.3.0/24, and both are in VRF `default`
    10.0.3.50, held by `web` of `ann`, would fall outside pool `lan`; release it first
    pool `lan` has 1 claim and 0 reservations; release them, or force it with a reason
    pool `lan` has 300 claims and 1 reservation; release them, or force it with a reason
    fd00:2::/64 carries pool `lan`; delete that pool first
    pool `lan` is being deleted; delete it again if that came to a halt
    pool `lan` is in the configuration file; change it there
    pool `lan` changed meanwhile: it has version 12 and not 7; look at it again
    the claim 1f0c22ab-17 of `web` is gone; the key holds nothing
    the claim 1f0c22ab-17 of `web` is gone; the key has a later claim
    `web` of `ann` in pool `lan` is not yours
    `ann` already waits for an address for `web` in pool `lan`; use another key
    this ledger was restored from a backup and hands out no address by itself until `netstead resume`; exact claims work
    entry 3, `web`: this ledger was restored from a backup and hands out no address by itself until `netstead resume`; exact claims work
    length: only a claim in a prefix pool has a length
    ");
}

#[test]
fn every_error_says_whether_something_was_done() {
    let reason = || "the disk is full".to_owned();
    let errors = [
        LedgerError::Unknown { reason: reason() },
        LedgerError::Unavailable { reason: reason() },
        LedgerError::NotLeading,
        LedgerError::TooLate,
        LedgerError::Gone { reason: "events up to 17 were trimmed, and 3 is older".into() },
        LedgerError::Moved {
            to: "etcd at http://127.0.0.1:2379 below /netstead/".into(),
            at: jiff::Timestamp::UNIX_EPOCH,
        },
        LedgerError::Unfinished { reason: "a restore into this store was interrupted".into() },
        LedgerError::Damaged { reason: "`ledger/head`: its value is empty".into() },
    ];
    assert_snapshot!(errors.map(|error| error.to_string()).join("\n"), @r"
    it is unknown whether this was done (the disk is full): ask again with the same key
    the ledger cannot answer now: the disk is full; nothing was changed
    another Netstead leads this store now; nothing was changed
    the deadline of the request has passed; nothing was changed
    events up to 17 were trimmed, and 3 is older; start again from a list
    this store was moved to etcd at http://127.0.0.1:2379 below /netstead/ at 1970-01-01T00:00:00Z and is sealed; set `[store]` to the new one
    a restore into this store was interrupted
    the stored ledger is damaged: `ledger/head`: its value is empty; run `netstead store check`
    ");
}
