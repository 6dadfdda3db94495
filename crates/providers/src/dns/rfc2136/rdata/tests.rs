//! Values that the model wrote in wire form, read by another implementation.

use std::net::IpAddr;

use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
};

use super::*;

fn back(kind: RecordType, bytes: &[u8]) -> Option<RecordData> {
    read(kind, &mut BinDecoder::new(bytes))
}

fn a_name() -> impl Strategy<Value = Name> {
    "[a-z_][a-z0-9]{0,62}(\\.[a-z]{1,20}){0,3}".prop_map(|text| text.parse().unwrap())
}

fn a_service() -> impl Strategy<Value = Service> {
    let params = btree_map(prop_oneof![0..8u16, any::<u16>()], vec(any::<u8>(), 0..40), 0..5);
    (any::<u16>(), option::of(a_name()), params).prop_map(|(priority, target, params)| Service {
        priority,
        target,
        params: params.into_iter().collect(),
    })
}

fn a_value() -> impl Strategy<Value = RecordData> {
    prop_oneof![
        any::<IpAddr>().prop_map(RecordData::address),
        a_name().prop_map(RecordData::Cname),
        a_name().prop_map(RecordData::Ptr),
        a_name().prop_map(RecordData::Ns),
        (any::<[u16; 3]>(), a_name()).prop_map(|([priority, weight, port], target)| RecordData::Srv {
            priority,
            weight,
            port,
            target
        }),
        vec(vec(any::<u8>(), 0..=300), 1..6).prop_map(RecordData::Txt),
        (any::<u16>(), option::of(a_name()))
            .prop_map(|(preference, exchange)| RecordData::Mx { preference, exchange }),
        (any::<u8>(), "[a-z0-9]{1,15}", vec(any::<u8>(), 0..300))
            .prop_map(|(flags, tag, value)| RecordData::Caa { flags, tag, value }),
        a_service().prop_map(RecordData::Https),
        a_service().prop_map(RecordData::Svcb),
    ]
}

fn fits(value: &RecordData) -> bool {
    match value {
        RecordData::Txt(strings) => strings.iter().all(|string| string.len() <= 255),
        _ => true,
    }
}

proptest! {
    #[test]
    fn every_value_that_fits_comes_back_from_its_wire_form_and_no_other_has_one(value in a_value()) {
        match value.to_wire() {
            Some(bytes) => prop_assert_eq!(back(value.kind(), &bytes), Some(value)),
            None => prop_assert!(!fits(&value), "{value} has no wire form"),
        }
    }

    #[test]
    fn a_name_comes_back_from_its_wire_form(written in a_name()) {
        let bytes = written.to_wire();
        prop_assert_eq!(name(&WireName::read(&mut BinDecoder::new(&bytes)).unwrap()), Some(written));
    }
}

#[test]
fn every_type_has_a_number_of_its_own() {
    for kind in RecordType::ALL {
        assert_eq!(RecordType::from_number(kind.number()), Some(kind));
        let named = hickory_proto::rr::RecordType::from(kind.number());
        assert_eq!(named.to_string(), kind.as_str());
    }
}

#[test]
fn a_text_that_only_just_fits_into_a_record_has_a_wire_form() {
    // 256 bytes for each string of 255.
    let text = |bytes: usize| RecordData::txt(vec![b'x'; bytes]);
    assert_eq!(text(65_279).to_wire().map(|bytes| bytes.len()), Some(65_535));
    assert_eq!(text(65_280).to_wire(), None);
    let service = Service { priority: 1, target: None, params: vec![(667, vec![0; 65_536])] };
    assert_eq!(RecordData::Svcb(service).to_wire(), None);
    let tag = "x".repeat(256);
    assert_eq!(RecordData::Caa { flags: 0, tag, value: Vec::new() }.to_wire(), None);
    assert_eq!(RecordData::Txt(Vec::new()).to_wire(), Some(vec![0]), "an empty text is one empty string");
}
