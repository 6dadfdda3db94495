//! `[backend.NAME]`: another system that pools draw their addresses from.

use netstead_model::{Ident, PoolBackend, PoolSpec};
use netstead_providers::pool::BackendTraits;
use netstead_settings::{
    Kinds, Problems, Section, Table, ValueOrigin,
    macros::{Json, Map},
};

use super::kind_table::KindTable;

pub(crate) type BackendKinds = Kinds<dyn PoolBackend, BackendTraits>;

/// Every kind of pool backend.
pub(crate) fn kinds() -> BackendKinds {
    Kinds { section: "backend", kinds: netstead_providers::pool::KINDS.to_vec(), absent: &[] }
}

/// One backend as the file has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BackendConfig {
    pub(crate) name: Ident,
    pub(crate) table: KindTable<dyn PoolBackend, BackendTraits>,
}

impl serde::Serialize for BackendConfig {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown: Map<String, Json> = Map::new();
        self.table.shown_with(&self.name, &shown).serialize(serializer)
    }
}

/// The backend, unless what is written cannot be one.
pub(super) fn read(
    name: &str,
    place: &ValueOrigin,
    table: &Table,
    problems: &mut Problems,
) -> Option<BackendConfig> {
    let ident: Ident = problems.name(place, name, None)?;
    let path = format!("backend.{name}");
    let kinds = kinds();
    let mut section = Section::open(&path, table, problems).named(place);
    let kind = kinds.of(&mut section, name)?;
    super::refuse_unknown(&mut section, &kinds, kind, &[]);
    let table = KindTable::read(kind, &mut section, table, &[])?;
    Some(BackendConfig { name: ident, table })
}

/// Refuses a pool whose backend is not in the file.
pub(super) fn check_pools(
    pools: &[(&ValueOrigin, PoolSpec)],
    backends: &[(&ValueOrigin, BackendConfig)],
    problems: &mut Problems,
) {
    for (place, pool) in pools {
        let Some(upstream) = &pool.upstream else { continue };
        if !backends.iter().any(|(_, backend)| backend.name == upstream.backend) {
            let message = format!("pool.{}.backend: there is no backend `{}`", pool.name, upstream.backend);
            let hint = format!("add a table `[backend.{}]`", upstream.backend);
            problems.add(place, message, Some(hint));
        }
    }
}
