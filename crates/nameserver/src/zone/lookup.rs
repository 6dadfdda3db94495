//! Finds a name in a zone, as RFC 1034 section 4.3.2 and RFC 4592 say.

use super::{Node, Zone};
use crate::wire::{MOST_OF_NAME, kind, suffixes};

/// The facts of a zone about a name.
#[derive(Debug)]
pub(crate) enum LookupResult<'a> {
    /// The name is there, or a wildcard stands for it.
    Node(&'a Node),
    /// The last `length` bytes of the name are a name that was given to other servers.
    Cut {
        length: usize,
        node: &'a Node,
    },
    Missing,
}

impl Zone {
    /// Looks up `name`, which lies in this zone. `at_cut` asks for what the upper side of a cut knows.
    pub(crate) fn find(&self, name: &[u8], at_cut: bool) -> LookupResult<'_> {
        if self.cuts > 0
            && let Some((length, node)) = self.highest_cut(name, at_cut)
        {
            return LookupResult::Cut { length, node };
        }
        if let Some(node) = self.nodes.get(name) {
            return LookupResult::Node(node);
        }
        // The closest name that exists; the apex always does. Only its own wildcard speaks for names below it.
        let encloser = suffixes(name).find(|above| self.nodes.get(above).is_some());
        match encloser.and_then(|encloser| self.wildcard(encloser)) {
            Some(node) => LookupResult::Node(node),
            None => LookupResult::Missing,
        }
    }

    fn wildcard(&self, encloser: &[u8]) -> Option<&Node> {
        let mut name = [0; MOST_OF_NAME];
        let place = name.get_mut(..encloser.len() + 2)?;
        let (star, rest) = place.split_at_mut_checked(2)?;
        star.copy_from_slice(b"\x01*");
        rest.copy_from_slice(encloser);
        self.nodes.get(place)
    }

    fn highest_cut(&self, name: &[u8], at_cut: bool) -> Option<(usize, &Node)> {
        let below_apex = suffixes(name).take_while(|above| above.len() > self.apex.len());
        let cuts = below_apex.filter_map(|above| {
            let node = self.nodes.get(above).filter(|node| node.set(kind::NS).is_some())?;
            let wildcard = above.starts_with(b"\x01*");
            (!(wildcard || at_cut && above.len() == name.len())).then_some((above.len(), node))
        });
        cuts.last()
    }
}
