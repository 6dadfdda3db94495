//! Keys and values of the engine in the store. `docs/reference/store.md` describes them.
//!
//! Keys are text; a value is one version byte and JSON, as in the ledger.

use netstead_model::{Ident, Name, RecordType};
use serde::{Serialize, de::DeserializeOwned};

use crate::EngineError;

/// Every key of the engine begins with this.
pub const PREFIX: &str = "engine/";
/// The installation's id.
pub(crate) const OWNER: &str = "engine/owner";
/// Engine time.
pub(crate) const TIME: &str = "engine/time";
/// `engine/head/<writer>`: replaced by every commit of one writer.
pub(crate) const HEAD: &str = "engine/head/";
/// `engine/source/<name>`: one source without its workloads.
pub(crate) const SOURCE: &str = "engine/source/";
/// `engine/workload/<source>/<id>`.
pub(crate) const WORKLOAD: &str = "engine/workload/";
/// `engine/provider/<name>`: that there is, or was, such a provider.
pub(crate) const PROVIDER: &str = "engine/provider/";
/// `engine/owned/<provider>/<name>`: our values at one name.
pub(crate) const OWNED: &str = "engine/owned/";
/// `engine/guard/<provider>`.
pub(crate) const GUARD: &str = "engine/guard/";
/// `engine/plan/<provider>/<generation>/<part>`: plans that were carried out.
pub(crate) const PLAN: &str = "engine/plan/";
/// `engine/history/<number>`: what happened.
pub(crate) const HISTORY: &str = "engine/history/";
/// `engine/doubt/<provider>/<zone>`: a former leader may have written there.
pub(crate) const DOUBT: &str = "engine/doubt/";
/// `engine/lately/<provider>/<name>`: values that were ours a moment ago, on a server that cannot refuse a late write.
pub(crate) const LATELY: &str = "engine/lately/";
/// `engine/pause/<scope>`.
pub(crate) const PAUSE: &str = "engine/pause/";
/// `engine/ignored/<provider>/<name>`: drift that a person chose to ignore.
pub(crate) const IGNORED: &str = "engine/ignored/";
/// `engine/manual/<name>/<type>`.
pub(crate) const MANUAL: &str = "engine/manual/";
/// `engine/pushed/<source>/<name>/<type>`: records that another program sent.
pub(crate) const PUSHED: &str = "engine/pushed/";

/// The format of the store, which the cluster raises once every member understands the next.
pub(crate) const STORE_FORMAT: &str = "meta/format";
/// The format from which on scopes of sources are written.
pub(crate) const SCOPES_SINCE: u32 = 2;

/// Everything of IPAM providers is below this, so that a release that does not know them never reads it.
const IPAM: &str = "engine/ipam/";

/// The kind of server that a provider writes to. Each has its own keys; names are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Dns,
    Ipam,
}

impl Class {
    /// A key of this class: `prefix` is one of the above.
    pub(crate) fn key(self, prefix: &str, rest: &(impl std::fmt::Display + ?Sized)) -> String {
        match self {
            Self::Dns => format!("{prefix}{rest}"),
            Self::Ipam => format!("{IPAM}{}{rest}", prefix.strip_prefix(PREFIX).unwrap_or(prefix)),
        }
    }
}

const FORMAT: u8 = b'1';

pub(crate) fn owned(provider: &Ident, name: &Name) -> Vec<u8> {
    format!("{OWNED}{provider}/{name}").into_bytes()
}

pub(crate) fn lately(provider: &Ident, name: &Name) -> Vec<u8> {
    format!("{LATELY}{provider}/{name}").into_bytes()
}

pub(crate) fn plan(class: Class, provider: &Ident, generation: u64, part: usize) -> Vec<u8> {
    class.key(PLAN, &format!("{provider}/{generation:016x}/{part:04x}")).into_bytes()
}

pub(crate) fn manual(name: &Name, kind: RecordType) -> Vec<u8> {
    format!("{MANUAL}{name}/{kind}").into_bytes()
}

pub(crate) fn pushed(source: &Ident, place: &str) -> String {
    format!("{PUSHED}{source}/{place}")
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(FORMAT);
    // Our own types have string keys and no failing serialiser; what could not be written would be refused at reading.
    let _ = serde_json::to_writer(&mut bytes, value);
    bytes
}

pub(crate) fn decode<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, EngineError> {
    let damaged =
        |reason: String| EngineError::Damaged { key: String::from_utf8_lossy(key).into_owned(), reason };
    match value.split_first() {
        Some((&FORMAT, json)) => serde_json::from_slice(json).map_err(|error| damaged(error.to_string())),
        Some((version, _)) => Err(damaged(format!(
            "its format is `{}`, which this version does not know",
            char::from(*version)
        ))),
        None => Err(damaged("it is empty".into())),
    }
}
