//! HTTPS records beside addresses, on providers that are set to make them.
//!
//! A client that asks a private server for the address and finds no HTTPS record there may use one of the public zone, whose
//! keys the private service does not have.

use netstead_model::{RecordData, RecordType};

use super::candidate::Candidate;
use crate::{Cause, Settings, inventory::GraceVerdict};

/// Adds the companions of the addresses at one name. A name for which another HTTPS record is asked has none.
pub(super) fn add_companions<'a>(
    live: &mut Vec<Candidate<'a>>,
    gone: &mut Vec<Candidate<'a>>,
    settings: &Settings,
) {
    let mut companions: Vec<Candidate<'a>> =
        live.iter().filter_map(|candidate| companion(candidate, settings)).collect();
    if live.iter().any(|candidate| candidate.data.kind() == RecordType::Https) {
        for companion in &mut companions {
            let why = "another HTTPS record is asked for".into();
            companion.verdict = GraceVerdict::Gone(Cause::Updated, why);
        }
        gone.extend(companions);
    } else {
        live.extend(companions);
    }
}

/// The companion of an A or AAAA.
pub(super) fn companion<'a>(candidate: &Candidate<'a>, settings: &Settings) -> Option<Candidate<'a>> {
    candidate.data.to_address()?;
    let data = settings.companion.clone().filter(|data| settings.holds(data.kind()))?;
    Some(Candidate { data, proxied: None, rank: None, ..candidate.clone() })
}

/// Whether a value is one of those companions, as far as the value tells.
pub(crate) fn is_companion(data: &RecordData, settings: &Settings) -> bool {
    settings.companion.as_ref() == Some(data)
}
