//! [`Zones`]: all zones, as one value that is replaced as a whole.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use crate::{sharded::Sharded, wire::suffixes, zone::Zone};

/// The zones of one moment. A reader keeps the same zones for a whole query.
pub(crate) type ZoneMap = Sharded<Arc<Zone>>;

#[derive(Debug)]
pub(crate) struct Zones {
    picture: ArcSwap<ZoneMap>,
}

impl Zones {
    pub(crate) fn new() -> Self {
        Self { picture: ArcSwap::from_pointee(Sharded::new()) }
    }

    pub(crate) fn load(&self) -> Guard<Arc<ZoneMap>> {
        self.picture.load()
    }

    /// The picture for work that takes longer.
    pub(crate) fn load_full(&self) -> Arc<ZoneMap> {
        self.picture.load_full()
    }

    pub(crate) fn store(&self, picture: ZoneMap) {
        self.picture.store(Arc::new(picture));
    }
}

/// The zone `name` lies in: the longest of those that hold it.
pub(crate) fn zone_with<'a>(picture: &'a ZoneMap, name: &[u8]) -> Option<&'a Arc<Zone>> {
    suffixes(name).find_map(|above| picture.get(above))
}
