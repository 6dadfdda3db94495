//! Checks of reading and writing.

#![allow(clippy::panic, clippy::missing_panics_doc, reason = "a promise that is broken ends the test")]

use netstead_model::{Marks, RecordSet, RecordType, SetChange, Unit, UnitOutcome, ZoneSource, mark};

use super::{Subject, name, ok, set, typed, unit};

/// A TXT with an empty string.
pub const EMPTY_TEXT: &str = r#""""#;
/// A TXT with bytes that are no ASCII.
pub const BINARY_TEXT: &str = r#""\195\188\000\255""#;

pub async fn the_zone_is_found(subject: &Subject) {
    let below = subject.at("zone-found");
    let domains = if subject.can().zones == ZoneSource::Domains {
        &[&subject.zone][..]
    } else {
        &[&subject.zone, &below]
    };
    for domain in domains.iter().copied() {
        let zones = ok(subject.provider.zones(std::slice::from_ref(domain)).await);
        let names: Vec<_> = zones.iter().map(|zone| &zone.name).collect();
        assert_eq!(names, [&subject.zone], "the zone should be found for {domain}");
        let signed = zones.iter().all(|zone| zone.sign.is_some());
        assert_eq!(
            signed,
            subject.can().signs_changes,
            "the zone should have a sign of change, or never one"
        );
    }
    if subject.can().zones == ZoneSource::Domains {
        return;
    }
    let none = ok(subject.provider.zones(&[name("elsewhere.invalid")]).await);
    assert!(none.is_empty(), "no zone should be found, and there is {none:?}");
}

pub async fn create_change_delete(subject: &Subject) {
    let name = subject.at("create");
    let first = set(&name, &["192.0.2.1"]);
    subject.change(None, Some(first.clone())).await;
    subject.has(&name, &first).await;
    let second = set(&name, &["192.0.2.2"]);
    subject.change(Some(first), Some(second.clone())).await;
    subject.has(&name, &second).await;
    subject.change(Some(second), None).await;
    assert!(subject.read(&[&name]).await.is_empty(), "what is deleted should be gone");
}

pub async fn all_types_come_back_as_adjusted(subject: &Subject) {
    let long = "x".repeat(255);
    let long = format!("\"{long}\" \"{long}\" \"end\"");
    let cases: &[(&str, RecordType, &[&str])] = &[
        ("type-a", RecordType::A, &["192.0.2.1", "192.0.2.2"]),
        ("type-aaaa", RecordType::Aaaa, &["2001:db8::1", "2001:db8::a:0:0:1"]),
        ("type-cname", RecordType::Cname, &["target.example.net."]),
        ("type-ptr", RecordType::Ptr, &["host.example.net."]),
        (
            "_svc._tcp.type-srv",
            RecordType::Srv,
            &["1 2 443 host.example.net.", "2 0 8443 other.example.net."],
        ),
        (
            "type-txt",
            RecordType::Txt,
            &[r#""plain""#, r#""with \"quotes\" and \\ and ; inside""#, &long, EMPTY_TEXT],
        ),
        ("_netstead-x.type-txt", RecordType::Txt, &[r#""v=1" "two strings""#, BINARY_TEXT]),
        ("type-mx", RecordType::Mx, &["10 mail.example.net."]),
        ("type-null-mx", RecordType::Mx, &["0 ."]),
        (
            "type-caa",
            RecordType::Caa,
            &[r#"0 issue "ca.example.net; account=1""#, r#"128 iodef "mailto:a@example.net""#],
        ),
        ("type-ns", RecordType::Ns, &["ns1.example.net.", "ns2.example.net."]),
        (
            "type-https",
            RecordType::Https,
            &["1 . alpn=h2,h3 port=8443 ipv4hint=192.0.2.1 ipv6hint=2001:db8::1"],
        ),
        (
            "type-svcb",
            RecordType::Svcb,
            &["1 host.example.net. port=53", "2 . ech=AEj+DQBEAQAgACA= key667=hello"],
        ),
        ("*.type-wildcard", RecordType::A, &["192.0.2.9"]),
    ];
    for (label, kind, values) in
        cases.iter().filter(|case| subject.provider.capabilities().types.contains(&case.1))
    {
        let name = subject.at(label);
        if name.is_wildcard() && !subject.can().wildcards {
            continue;
        }
        let (cannot, mut values): (Vec<&str>, Vec<&str>) =
            values.iter().partition(|value| subject.impossible.contains(&(*kind, **value)));
        for value in cannot {
            let outcomes = subject.write(vec![unit(&name, None, Some(typed(&name, *kind, &[value])))]).await;
            assert!(matches!(outcomes.as_slice(), [UnitOutcome::Rejected { .. }]), "{value}: {outcomes:?}");
            assert!(subject.read(&[&name]).await.is_empty(), "{value} should not be there");
        }
        if values.is_empty() {
            continue;
        }
        if subject.can().one_value {
            values.truncate(1);
        }
        let wanted = typed(&name, *kind, &values);
        assert_eq!(wanted.values.len(), values.len(), "the check has a bad value");
        subject.change(None, Some(wanted.clone())).await;
        let adjusted = subject.provider.adjust(wanted, &subject.can());
        subject.has(&name, &adjusted).await;
        subject.change(Some(adjusted), None).await;
        assert!(subject.read(&[&name]).await.is_empty(), "{kind} should be gone");
    }
}

pub async fn a_repeated_write_changes_nothing(subject: &Subject) {
    let name = subject.at("repeat");
    let wanted = set(&name, &["192.0.2.1"]);
    let request = subject.request(vec![unit(&name, None, Some(wanted.clone()))]);
    assert_eq!(subject.send(&request).await, [UnitOutcome::Applied]);
    let sign = subject.sign().await;
    let again = subject.send(&request).await;
    assert_eq!(again, [UnitOutcome::Applied], "what is there already should count as applied");
    assert_eq!(subject.sign().await, sign, "a repeated write should leave the sign of change alone");
    subject.has(&name, &wanted).await;
    subject.change(Some(wanted), None).await;
}

pub async fn a_time_to_live_can_change(subject: &Subject) {
    let name = subject.at("ttl");
    let slow = set(&name, &["192.0.2.1"]);
    let mut fast = slow.clone();
    fast.ttl = 60;
    subject.change(None, Some(slow.clone())).await;
    subject.change(Some(slow), Some(fast.clone())).await;
    subject.has(&name, &subject.provider.adjust(fast.clone(), &subject.can())).await;
    subject.change(Some(fast), None).await;
}

pub async fn a_set_may_have_many_values(subject: &Subject) {
    if subject.can().one_value {
        return;
    }
    let name = subject.at("many-values");
    // BIND takes 100 unless told otherwise.
    let addresses: Vec<String> = (1..=100).map(|n| format!("192.0.2.{n}")).collect();
    let texts: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let all = set(&name, &texts);
    let fewer = set(&name, texts.get(..99).unwrap_or_default());
    subject.change(None, Some(all.clone())).await;
    subject.change(Some(all), Some(fewer.clone())).await;
    subject.has(&name, &fewer).await;
    subject.change(Some(fewer), None).await;
}

pub async fn a_type_can_change_in_one_unit(subject: &Subject) {
    if !subject.can().types.contains(&RecordType::Cname) {
        return;
    }
    let name = subject.at("type-change");
    let address = set(&name, &["192.0.2.1"]);
    let alias = typed(&name, RecordType::Cname, &["target.example.net."]);
    subject.change(None, Some(address.clone())).await;
    for (from, to) in [(&address, &alias), (&alias, &address)] {
        // The removal stands last on purpose: the order is the provider's affair.
        let changes = vec![
            SetChange { before: None, after: Some(to.clone()) },
            SetChange { before: Some(from.clone()), after: None },
        ];
        let outcomes = subject.write(vec![Unit { name: name.clone(), changes }]).await;
        assert_eq!(outcomes, [UnitOutcome::Applied], "{} should become {}", from.kind, to.kind);
        subject.has(&name, to).await;
    }
    subject.change(Some(address), None).await;
}

/// The mark of a name reads as a TXT record at a name of its own, wherever the server keeps it, and a CNAME may stand at the first.
pub async fn a_name_and_its_mark_are_one_unit(subject: &Subject) {
    if subject.can().marks == Marks::None {
        return;
    }
    let (name, mark) = (subject.at("marked"), subject.at("_netstead-contract.marked"));
    let value = typed(&name, RecordType::Cname, &["target.example.net."]);
    let proof = mark::render(&name, &value.values);
    let proof = RecordSet::new(mark.clone(), RecordType::Txt, value.ttl, proof);
    let proof = subject.provider.adjust(proof, &subject.can());
    let change = |before: bool, after: bool| {
        let sets = [&value, &proof]
            .map(|set| SetChange { before: before.then(|| set.clone()), after: after.then(|| set.clone()) });
        vec![Unit { name: name.clone(), changes: sets.into() }]
    };
    for (before, after) in [(false, true), (false, true), (true, false)] {
        let outcomes = subject.write(change(before, after)).await;
        assert_eq!(outcomes, [UnitOutcome::Applied], "a name and its mark should land together");
        let standing = subject.read(&[&name, &mark]).await;
        assert_eq!(standing.len(), if after { 2 } else { 0 }, "a name and its mark come and go together");
        let read = standing.values().find(|set| set.name == mark).map(|set| &set.values);
        assert_eq!(read, after.then_some(&proof.values), "a mark is read as it was written");
    }
}
