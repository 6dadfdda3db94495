use netstead_model::RecordSet;

use super::*;

fn set(ttl: u32, values: &[&str]) -> RecordSet {
    let values = values.iter().map(|text| RecordData::parse(RecordType::A, text).unwrap());
    RecordSet::new("www.example.net".parse().unwrap(), RecordType::A, ttl, values)
}

fn shown(change: &SetChange, single: bool) -> Vec<String> {
    let edits = Changes::default().edits(change, single);
    edits
        .iter()
        .map(|edit| {
            let records: Vec<&str> = edit.records.iter().map(|record| record.content.as_str()).collect();
            format!("{} {}", edit.changetype, records.join(" "))
        })
        .collect()
}

#[test]
fn single_values_are_used_where_the_server_has_them_and_the_set_is_there() {
    let change = SetChange {
        before: Some(set(300, &["192.0.2.1", "192.0.2.2"])),
        after: Some(set(300, &["192.0.2.2", "192.0.2.3"])),
    };
    assert_eq!(shown(&change, true), ["EXTEND 192.0.2.3", "PRUNE 192.0.2.1"]);
    assert_eq!(shown(&change, false), ["REPLACE 192.0.2.2 192.0.2.3"]);
    let removal = SetChange { before: Some(set(300, &["192.0.2.1"])), after: None };
    assert_eq!(shown(&removal, true), ["PRUNE 192.0.2.1"]);
    assert_eq!(shown(&removal, false), ["DELETE "]);
    let new = SetChange { before: None, after: Some(set(300, &["192.0.2.1"])) };
    assert_eq!(shown(&new, true), ["REPLACE 192.0.2.1"]);
    let slower = SetChange { before: Some(set(300, &["192.0.2.1"])), after: Some(set(60, &["192.0.2.1"])) };
    assert_eq!(shown(&slower, true), ["REPLACE 192.0.2.1"]);
}

#[test]
fn versions_are_read_from_any_text() {
    for (text, version) in [
        ("4.7.3", (4, 7, 3)),
        ("5.0.2-1pdns.bookworm", (5, 0, 2)),
        ("git", (0, 0, 0)),
        ("5.1.0-alpha1", (5, 1, 0)),
    ] {
        assert_eq!(Server { version: text.into() }.version(), version, "{text}");
    }
}
