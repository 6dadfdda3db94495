//! The grid of a pool: every address of a block of at most 256, and a map of the blocks around it.

use netstead_client::types::{AddressOutput, AddressState, BlocksOutput, PoolOutput};
use netstead_model::{Address, Cidr, Kind, Range};
use std::collections::BTreeMap;

use super::history::encoded;
use crate::parts::{Bar, count};

/// Addresses of one grid: a /24.
const CELLS: u8 = 8;
/// A map shows blocks that are smaller by so many bits.
const TILES: u8 = 8;

/// Where in a pool one looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The block whose addresses are shown, if one is.
    pub(crate) block: Option<Cidr>,
    /// The block whose parts are shown as a map, if the pool is larger than a grid.
    pub(crate) map: Option<Cidr>,
}

/// One address in the grid.
#[derive(Debug)]
pub(crate) struct Cell {
    /// The last part of the address.
    pub(crate) text: String,
    pub(crate) address: String,
    /// The state as a class and as a word.
    pub(crate) state: &'static str,
    /// A sentence for those who do not see it: `10.0.3.17, held by web-1`.
    pub(crate) label: String,
    /// It is the one that was chosen.
    pub(crate) is_picked: bool,
    /// It is the one that the Tab key reaches.
    pub(crate) is_first: bool,
}

/// How many addresses are in a state.
#[derive(Debug)]
pub(crate) struct Legend {
    pub(crate) state: &'static str,
    pub(crate) text: &'static str,
    pub(crate) count: usize,
}

/// One block in the map.
#[derive(Debug)]
pub(crate) struct Tile {
    pub(crate) href: String,
    pub(crate) bar: Bar,
    pub(crate) label: String,
    pub(crate) is_here: bool,
    pub(crate) is_empty: bool,
}

/// A row of the table: what is there, or a gap of free addresses.
#[derive(Debug)]
pub(crate) struct Gap {
    pub(crate) first: Address,
    pub(crate) last: Address,
}

/// The ranges out of which a pool hands out.
pub(crate) fn ranges(pool: &PoolOutput) -> Vec<Range> {
    let ranges: Vec<Range> = pool.ranges.iter().filter_map(|text| text.parse().ok()).collect();
    if !ranges.is_empty() {
        return ranges;
    }
    let network = pool.network.as_ref().and_then(|network| network.parse::<Cidr>().ok());
    network.map(|network| vec![Range::from(network)]).unwrap_or_default()
}

/// The smallest block that has all of the pool.
pub(crate) fn around(ranges: &[Range]) -> Option<Cidr> {
    let first = ranges.iter().map(Range::first).min()?;
    let last = ranges.iter().map(Range::last).max()?;
    let bits = first.kind().bits();
    let differ = 128 - (first.number() ^ last.number()).leading_zeros();
    Cidr::containing(first, bits.saturating_sub(u8::try_from(differ).ok()?)).ok()
}

impl Window {
    /// The window at `at`, an address or a block, or at the beginning of the pool. IPv4 only has grids: of other families
    /// a pool is too large to be seen.
    pub(crate) fn of(ranges: &[Range], at: &str) -> Self {
        let Some(whole) = around(ranges).filter(|whole| whole.kind() == Kind::V4) else {
            return Self { block: None, map: None };
        };
        let fine = Kind::V4.bits() - CELLS;
        if whole.len() >= fine {
            return Self { block: Some(whole), map: None };
        }
        let asked = at.parse::<Cidr>().ok().or_else(|| {
            let address = at.parse::<Address>().ok()?;
            Cidr::containing(address, fine).ok()
        });
        let asked = asked.filter(|asked| whole.contains_cidr(*asked));
        let begin = ranges.iter().map(Range::first).min().unwrap_or(whole.first());
        match asked {
            // A block that is too large for a grid is a map.
            Some(block) if block.len() < fine => Self { block: None, map: Some(block) },
            other => {
                let address = other.map_or(begin, |block| block.first());
                let block = Cidr::containing(address, fine).ok();
                let wide = whole.len().max(fine.saturating_sub(TILES));
                Self { block, map: Cidr::containing(address, wide).ok() }
            }
        }
    }

    /// The block around the map, for a step out; none if it is all of the pool.
    pub(crate) fn out(&self, ranges: &[Range]) -> Option<Cidr> {
        let (whole, map) = (around(ranges)?, self.map?);
        (map.len() > whole.len())
            .then(|| Cidr::containing(map.first(), whole.len().max(map.len().saturating_sub(TILES))).ok())?
    }
}

/// The entries of a list of addresses, by place.
pub(crate) struct Known<'l> {
    single: BTreeMap<Address, &'l AddressOutput>,
    stretches: Vec<(Range, &'l AddressOutput)>,
}

impl<'l> Known<'l> {
    pub(crate) fn new(listed: &'l [AddressOutput]) -> Self {
        let mut known = Self { single: BTreeMap::new(), stretches: Vec::new() };
        for output in listed {
            match output.address.parse::<Address>() {
                Ok(address) => {
                    known.single.insert(address, output);
                }
                Err(_) => known.stretches.extend(range_of(output).map(|range| (range, output))),
            }
        }
        known
    }

    pub(crate) fn at(&self, address: Address) -> Option<&'l AddressOutput> {
        let stretch = || self.stretches.iter().find(|(range, _)| range.contains(address)).map(|(_, of)| *of);
        self.single.get(&address).copied().or_else(stretch)
    }
}

/// The addresses that an entry of a list stands for.
pub(crate) fn range_of(output: &AddressOutput) -> Option<Range> {
    output.address.parse::<Range>().ok().or_else(|| output.address.parse::<Cidr>().ok().map(Range::from))
}

/// The class and the word of a state.
pub(crate) fn state_name(state: &AddressState) -> &'static str {
    match state {
        AddressState::Held => "held",
        AddressState::Resting => "resting",
        AddressState::GivingBack => "giving-back",
        AddressState::Reserved => "reserved",
        AddressState::Observed => "observed",
        AddressState::Excluded => "excluded",
        AddressState::Gateway => "gateway",
        AddressState::Free => "free",
        _ => "outside",
    }
}

/// All addresses of a block, in order.
pub(crate) fn cells(block: Cidr, ranges: &[Range], known: &Known<'_>, picked: Option<Address>) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut next = Some(block.first());
    while let Some(address) = next.filter(|address| *address <= block.last()) {
        let entry = known.at(address);
        let inside = ranges.iter().any(|range| range.contains(address));
        let state = match entry {
            Some(entry) => state_name(&entry.state),
            None if inside => "free",
            None => "outside",
        };
        let text = address.to_string();
        cells.push(Cell {
            label: format!("{text}, {}", spoken(state, entry)),
            text: text.rsplit('.').next().unwrap_or_default().to_owned(),
            address: text,
            state,
            is_picked: picked == Some(address),
            is_first: false,
        });
        next = address.succ();
    }
    let reached = cells.iter().position(|cell| cell.is_picked);
    let reached = reached.or_else(|| cells.iter().position(|cell| cell.state == "free")).unwrap_or(0);
    if let Some(cell) = cells.get_mut(reached) {
        cell.is_first = true;
    }
    cells
}

fn spoken(state: &'static str, entry: Option<&AddressOutput>) -> String {
    let key = entry.and_then(|entry| entry.key.as_deref()).unwrap_or_default();
    match state {
        "held" => format!("held by {key}"),
        "reserved" => format!("reserved for {key}"),
        "observed" => "seen in use, not claimed".to_owned(),
        "resting" => "resting".to_owned(),
        "giving-back" => "being given back".to_owned(),
        "excluded" => "never handed out".to_owned(),
        "outside" => "not of this pool".to_owned(),
        other => other.to_owned(),
    }
}

/// How many cells are in each state that occurs.
pub(crate) fn legend(cells: &[Cell]) -> Vec<Legend> {
    let states = [
        ("free", "free"),
        ("held", "held"),
        ("reserved", "reserved"),
        ("resting", "resting"),
        ("giving-back", "being given back"),
        ("observed", "seen in use, not claimed"),
        ("gateway", "gateway"),
        ("excluded", "never handed out"),
        ("outside", "not of this pool"),
    ];
    let counted = states.into_iter().map(|(state, text)| Legend {
        state,
        text,
        count: cells.iter().filter(|cell| cell.state == state).count(),
    });
    counted.filter(|legend| legend.count > 0).collect()
}

/// The blocks of a map.
pub(crate) fn tiles(blocks: &BlocksOutput, base: &str, pool: &str, here: Option<Cidr>) -> Vec<Tile> {
    let tile = |block: &netstead_client::types::BlockOutput| {
        let (bar, label, is_empty) = match &block.usage {
            Some(usage) if usage.size == "0" => {
                (Bar::default(), format!("{}, not of this pool", block.block), true)
            }
            Some(usage) => {
                let label = format!("{}, {} of {} free", block.block, count(&usage.free), count(&usage.size));
                (Bar::with_least(usage, 12.0), label, false)
            }
            None => (Bar::default(), format!("{}, too much in it to count here", block.block), false),
        };
        Tile {
            href: format!("{base}/pools/{}?at={}#grid", encoded(pool), encoded(&block.block)),
            is_here: here.is_some_and(|here| here.to_string() == block.block),
            bar,
            label,
            is_empty,
        }
    };
    blocks.blocks.iter().map(tile).collect()
}

/// The free stretches of a pool between two places, without what is listed.
pub(crate) fn gaps(ranges: &[Range], listed: &[AddressOutput], within: Range) -> Vec<Gap> {
    let mut free: Vec<Range> = ranges.iter().filter_map(|range| range.intersect(within)).collect();
    for hole in listed.iter().filter_map(range_of) {
        if free.iter().any(|range| range.overlaps(hole)) {
            free = free.into_iter().flat_map(|range| range.without(hole)).collect();
        }
    }
    Range::joined(free).into_iter().map(|range| Gap { first: range.first(), last: range.last() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges_of(texts: &[&str]) -> Vec<Range> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn entry(address: &str, state: AddressState) -> AddressOutput {
        AddressOutput {
            address: address.to_owned(),
            vrf: "default".to_owned(),
            pool: Some("lan".to_owned()),
            state,
            key: Some("web-1".to_owned()),
            owner: None,
            since: None,
            until: None,
            seen_by: Vec::new(),
            note: None,
        }
    }

    #[test]
    fn a_small_pool_is_one_grid_and_a_large_one_has_a_map() {
        let block = |window: Window| window.block.map(|block| block.to_string());
        let map = |window: Window| window.map.map(|map| map.to_string());
        let small = Window::of(&ranges_of(&["10.0.3.50-10.0.3.200"]), "");
        assert_eq!((block(small), map(small)), (Some("10.0.3.0/24".to_owned()), None));
        let large = ranges_of(&["10.0.0.0/16"]);
        let window = Window::of(&large, "10.0.7.9");
        assert_eq!(block(window).as_deref(), Some("10.0.7.0/24"));
        assert_eq!(map(window).as_deref(), Some("10.0.0.0/16"));
        assert_eq!(window.out(&large), None);
        let huge = ranges_of(&["10.0.0.0/8"]);
        let window = Window::of(&huge, "10.9.8.7");
        assert_eq!(map(window).as_deref(), Some("10.9.0.0/16"));
        assert_eq!(window.out(&huge).map(|out| out.to_string()).as_deref(), Some("10.0.0.0/8"));
        assert_eq!(block(Window::of(&huge, "10.0.0.0/8")), None, "a map of /16s");
        assert_eq!(block(Window::of(&huge, "192.0.2.1")).as_deref(), Some("10.0.0.0/24"), "elsewhere");
        assert_eq!(block(Window::of(&ranges_of(&["fd00::/64"]), "")), None);
    }

    #[test]
    fn a_grid_tells_every_address_apart() {
        let listed =
            [entry("10.0.3.1", AddressState::Held), entry("10.0.3.4-10.0.3.5", AddressState::Reserved)];
        let ranges = ranges_of(&["10.0.3.1-10.0.3.6"]);
        let cells = cells("10.0.3.0/29".parse().unwrap(), &ranges, &Known::new(&listed), None);
        let told: Vec<_> = cells.iter().map(|cell| cell.label.as_str()).collect();
        assert_eq!(
            told,
            [
                "10.0.3.0, not of this pool",
                "10.0.3.1, held by web-1",
                "10.0.3.2, free",
                "10.0.3.3, free",
                "10.0.3.4, reserved for web-1",
                "10.0.3.5, reserved for web-1",
                "10.0.3.6, free",
                "10.0.3.7, not of this pool",
            ]
        );
        assert_eq!(cells.iter().position(|cell| cell.is_first), Some(2), "Tab reaches the first free one");
        let gaps = gaps(&ranges, &listed, "10.0.3.0/29".parse::<Cidr>().unwrap().into());
        let gaps: Vec<_> = gaps.iter().map(|gap| format!("{}-{}", gap.first, gap.last)).collect();
        assert_eq!(gaps, ["10.0.3.2-10.0.3.3", "10.0.3.6-10.0.3.6"]);
    }
}
