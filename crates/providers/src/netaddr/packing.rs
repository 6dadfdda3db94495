//! Packs claims into one transaction: which name gets which address, and what must still be so when it is written.
//!
//! Pure: views of the ranges go in, conditions and writes come out.

use std::collections::{BTreeMap, HashSet};

use netstead_wire::etcd::messages::{Compare, RequestOp};

use super::{
    layout::{
        AddressList, delete, exists, is_absent, is_at, keys_between, none_between, none_newer, put,
        put_leased,
    },
    raw::RawAddress,
    view::{Held, RangeView},
};

/// Conditions and writes that etcd takes in one transaction.
const MOST: usize = 128;
/// Claims of one transaction.
pub(super) const MOST_CLAIMS: usize = 42;
/// So many fixed addresses that are skipped are conditions of their own. More are read back.
const MOST_SKIPPED: usize = 64;

/// So many addresses of plans are passed. Each is written, so more of them would not fit.
const MOST_PASSED: usize = 100;

/// The outcome for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// It holds an address already; the number is that of the range.
    Has(usize, Held),
    Gets(usize, RawAddress),
    Full,
    /// No room is left in this transaction.
    Later,
}

/// A transaction, and what it means for each name.
#[derive(Debug, Default)]
pub(super) struct Packed {
    pub(super) decisions: Vec<Decision>,
    pub(super) compare: Vec<Compare>,
    pub(super) success: Vec<RequestOp>,
    /// The new pointer of ranges whose pointer moves.
    pub(super) pointers: BTreeMap<usize, RawAddress>,
    /// Fixed addresses that are skipped without conditions of their own, and which of `success` reads them back.
    pub(super) read_back: Vec<(usize, Vec<RawAddress>, usize)>,
    /// Addresses given back earlier that are given again.
    pub(super) reused: Vec<(usize, RawAddress, i64)>,
}

/// The mark of a creation, for one that is cut off.
#[derive(Debug, Clone)]
pub(super) struct PendingMark {
    pub(super) lease: i64,
    pub(super) origin: String,
}

/// More fixed addresses of a range must be read first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadMore(pub(super) usize);

/// Where the packing stands in one range.
#[derive(Clone)]
struct Cursor {
    freed: usize,
    next: RawAddress,
    skipped: Vec<RawAddress>,
    passed: Vec<RawAddress>,
    moved: bool,
}

impl Cursor {
    fn of(view: &RangeView) -> Self {
        let (skipped, passed) = (Vec::new(), Vec::new());
        Self { freed: 0, next: view.next.clone(), skipped, passed, moved: false }
    }

    /// Conditions and writes that moving the pointer takes.
    fn cost(&self) -> (usize, usize) {
        if !self.moved {
            return (0, 0);
        }
        let (skipped, read_back) =
            if self.skipped.len() > MOST_SKIPPED { (0, 1) } else { (self.skipped.len(), 0) };
        (3 + skipped, 1 + read_back + self.passed.len())
    }
}

pub(super) fn pack(
    views: &[RangeView],
    names: &[String],
    mark: Option<&PendingMark>,
) -> Result<Packed, ReadMore> {
    let mut packed = Packed::default();
    let mut cursors: Vec<Cursor> = views.iter().map(Cursor::of).collect();
    let mut seen = HashSet::new();
    for name in names {
        let has = views.iter().enumerate().find_map(|(at, view)| Some((at, view.names.get(name)?)));
        if let Some((at, held)) = has {
            packed.decisions.push(Decision::Has(at, held.clone()));
            continue;
        }
        if !seen.insert(name) {
            packed.decisions.push(Decision::Later);
            continue;
        }
        let before = cursors.clone();
        let Some((at, address, reused)) = choose(views, &mut cursors, name)? else {
            packed.decisions.push(Decision::Full);
            continue;
        };
        let Some(view) = views.get(at) else { continue };
        let (compare, success) = assign(views, view, name, &address, reused, mark);
        let (pointers, writes) = cursors.iter().fold((0, 0), |(compares, writes), cursor| {
            let (more_compares, more_writes) = cursor.cost();
            (compares + more_compares, writes + more_writes)
        });
        let fits = packed.compare.len() + compare.len() + pointers <= MOST
            && packed.success.len() + success.len() + writes <= MOST;
        // Alone, each claim fits.
        if !fits && !packed.success.is_empty() {
            cursors = before;
            packed.decisions.push(Decision::Later);
            continue;
        }
        packed.compare.extend(compare);
        packed.success.extend(success);
        if let Some(revision) = reused {
            packed.reused.push((at, address.clone(), revision));
        }
        packed.decisions.push(Decision::Gets(at, address));
    }
    for (at, (view, cursor)) in views.iter().zip(cursors).enumerate() {
        if cursor.moved {
            move_pointer(&mut packed, at, view, cursor);
        }
    }
    Ok(packed)
}

/// The range, the address, and the revision at which it was given back if it was.
type Choice = (usize, RawAddress, Option<i64>);

/// An address of the first range with room.
fn choose(views: &[RangeView], cursors: &mut [Cursor], name: &str) -> Result<Option<Choice>, ReadMore> {
    for (at, (view, cursor)) in views.iter().zip(cursors).enumerate() {
        if let Some((address, revision)) = reuse(view, cursor, name) {
            return Ok(Some((at, address, Some(revision))));
        }
        if let Some(address) = advance(view, cursor, name).map_err(|()| ReadMore(at))? {
            return Ok(Some((at, address, None)));
        }
    }
    Ok(None)
}

/// Conditions and writes that give `name` this address.
fn assign(
    views: &[RangeView],
    view: &RangeView,
    name: &str,
    address: &RawAddress,
    reused: Option<i64>,
    mark: Option<&PendingMark>,
) -> (Vec<Compare>, Vec<RequestOp>) {
    let keys = &view.keys;
    let mut compare: Vec<Compare> = views.iter().map(|view| is_absent(view.keys.name(name))).collect();
    let mut success = vec![
        put(keys.address(AddressList::Generated, address), name.as_bytes()),
        put(keys.name(name), address.bytes()),
    ];
    if let Some(revision) = reused {
        compare.extend([
            is_at(keys.address(AddressList::Deleted, address), revision),
            is_absent(keys.address(AddressList::Hardcoded, address)),
            is_absent(keys.address(AddressList::Generated, address)),
        ]);
        success.push(delete(keys.address(AddressList::Deleted, address)));
    }
    if let Some(PendingMark { lease, origin }) = mark {
        success.push(put_leased(keys.pending(name), origin.as_bytes(), *lease));
    }
    (compare, success)
}

/// The lowest address that was given back and that no plan is about to take for another name.
fn reuse(view: &RangeView, cursor: &mut Cursor, name: &str) -> Option<(RawAddress, i64)> {
    loop {
        let (address, revision) = view.freed.get(cursor.freed)?;
        cursor.freed += 1;
        if view.planned.get(address).is_none_or(|planned| planned == name) {
            return Some((address.clone(), *revision));
        }
    }
}

/// The next address behind the pointer that nothing holds; `Err` if it is not known whether it is fixed.
fn advance(view: &RangeView, cursor: &mut Cursor, name: &str) -> Result<Option<RawAddress>, ()> {
    let (mut skipped, mut passed) = (Vec::new(), Vec::new());
    let mut candidate = cursor.next.clone();
    loop {
        if !view.info.contains(&candidate) {
            return Ok(None);
        }
        if view.fixed_to.as_ref().is_some_and(|seen| candidate > *seen) {
            return Err(());
        }
        if view.fixed.contains(&candidate) {
            skipped.push(candidate.clone());
        } else if cursor.passed.len() + passed.len() < MOST_PASSED
            && view.planned.get(&candidate).is_some_and(|planned| planned != name)
        {
            passed.push(candidate.clone());
        } else {
            break;
        }
        candidate = candidate.next();
    }
    cursor.skipped.append(&mut skipped);
    cursor.passed.append(&mut passed);
    cursor.next = candidate.next();
    cursor.moved = true;
    Ok(Some(candidate))
}

/// The pointer moves only if nothing came into the addresses that it passes, and what it skips is still held.
fn move_pointer(packed: &mut Packed, at: usize, view: &RangeView, cursor: Cursor) {
    let keys = &view.keys;
    let span = |list| (keys.address(list, &view.next), keys.address(list, &cursor.next));
    packed.compare.push(is_at(keys.next(), view.next_revision));
    let (start, end) = span(AddressList::Generated);
    packed.compare.push(none_between(start, end));
    let (start, end) = span(AddressList::Hardcoded);
    packed.compare.push(if cursor.skipped.is_empty() {
        none_between(start, end)
    } else {
        none_newer(start, end, view.revision)
    });
    if cursor.skipped.len() <= MOST_SKIPPED {
        let skipped = cursor.skipped.iter();
        packed.compare.extend(skipped.map(|address| exists(keys.address(AddressList::Hardcoded, address))));
    } else {
        let (start, end) = span(AddressList::Hardcoded);
        packed.read_back.push((at, cursor.skipped, packed.success.len()));
        packed.success.push(keys_between(start, end));
    }
    packed.success.push(put(keys.next(), cursor.next.bytes()));
    // The address of a plan is behind the pointer now, and free for it.
    for address in &cursor.passed {
        let name = view.planned.get(address).cloned().unwrap_or_default();
        packed.success.push(put(keys.address(AddressList::Deleted, address), name));
    }
    packed.pointers.insert(at, cursor.next);
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use super::{
        super::{layout::RangeKeys, raw::RangeType, view::Info},
        *,
    };

    fn v4(text: &str) -> RawAddress {
        RawAddress::parse(RangeType::Ipv4, text).unwrap()
    }

    /// `10.0.0.1` to `10.0.0.9` with the pointer at the first.
    fn view() -> RangeView {
        RangeView {
            keys: RangeKeys::new("/r/"),
            info: Info { kind: RangeType::Ipv4, first: v4("10.0.0.1"), last: v4("10.0.0.9") },
            next: v4("10.0.0.1"),
            next_revision: 5,
            freed: Vec::new(),
            fixed: BTreeSet::new(),
            fixed_to: None,
            planned: BTreeMap::new(),
            names: HashMap::new(),
            revision: 7,
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn gets(address: &str) -> Decision {
        Decision::Gets(0, v4(address))
    }

    #[test]
    fn the_lowest_freed_goes_first_and_then_the_pointer_which_skips_what_is_fixed() {
        let mut view = view();
        view.next = v4("10.0.0.4");
        view.freed = vec![(v4("10.0.0.2"), 6)];
        view.fixed = BTreeSet::from([v4("10.0.0.4"), v4("10.0.0.5")]);
        let held = Held { address: v4("10.0.0.3"), created: 3, revision: 3 };
        view.names.insert("old".into(), held.clone());
        let packed = pack(&[view], &names(&["a", "old", "b", "b"]), None).unwrap();
        let expected = [gets("10.0.0.2"), Decision::Has(0, held), gets("10.0.0.6"), Decision::Later];
        assert_eq!(packed.decisions, expected);
        assert_eq!(packed.pointers, BTreeMap::from([(0, v4("10.0.0.7"))]));
        // Two names; the freed address; pointer, generated and fixed ones of what it passes; two that it skips.
        assert_eq!(packed.compare.len(), 2 + 3 + 3 + 2);
        // Two addresses with names, one that is freed no more, the pointer.
        assert_eq!(packed.success.len(), 4 + 1 + 1);
    }

    #[test]
    fn what_a_plan_is_about_to_take_is_passed_and_stays_free_for_it() {
        let mut view = view();
        view.planned.insert(v4("10.0.0.1"), "dns".into());
        let packed = pack(&[view.clone()], &names(&["web"]), None).unwrap();
        assert_eq!(packed.decisions, [gets("10.0.0.2")]);
        assert_eq!(packed.success.len(), 2 + 1 + 1, "it becomes one that was given back");
        let packed = pack(&[view], &names(&["dns"]), None).unwrap();
        assert_eq!(packed.decisions, [gets("10.0.0.1")]);
    }

    #[test]
    fn a_full_range_leads_to_the_next_and_the_last_says_so() {
        let mut full = view();
        full.next = v4("10.0.0.10");
        let packed = pack(&[full.clone(), view()], &names(&["a"]), None).unwrap();
        assert_eq!(packed.decisions, [Decision::Gets(1, v4("10.0.0.1"))]);
        assert_eq!(packed.compare.len(), 2 + 3, "the name is free in both ranges");
        let packed = pack(&[full], &names(&["a"]), None).unwrap();
        assert_eq!((packed.decisions, packed.success.len()), (vec![Decision::Full], 0));
    }

    #[test]
    fn a_transaction_never_has_more_than_etcd_takes() {
        let mut view = view();
        view.info.last = v4("10.0.9.255");
        let mark = PendingMark { lease: 1, origin: "here".into() };
        let all: Vec<String> = (0..60).map(|number| format!("n{number}")).collect();
        for freed in [0_u8, 20, 60] {
            view.next = v4("10.0.1.0");
            view.freed = (0..freed)
                .map(|last| (RawAddress::parse(RangeType::Ipv4, &format!("10.0.0.{last}")).unwrap(), 6))
                .collect();
            view.fixed = (0..freed).map(|last| v4(&format!("10.0.1.{last}"))).collect();
            let packed = pack(&[view.clone()], &all, Some(&mark)).unwrap();
            assert!(packed.compare.len() <= MOST && packed.success.len() <= MOST, "{freed}");
            let given = packed.decisions.iter().filter(|one| matches!(one, Decision::Gets(..))).count();
            assert!(given >= 25, "{given} of {freed}");
        }
    }

    #[test]
    fn where_not_all_fixed_addresses_are_known_more_are_read() {
        let mut view = view();
        view.fixed = BTreeSet::from([v4("10.0.0.1"), v4("10.0.0.2")]);
        view.fixed_to = Some(v4("10.0.0.2"));
        assert_eq!(pack(&[view], &names(&["a"]), None).unwrap_err(), ReadMore(0));
    }
}
