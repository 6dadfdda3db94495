//! [`Reading`]: the result of reading the labels of one workload.

use netstead_model::{Address, Ident, Wish};

use super::{
    NameRequest, RequestedContent, TargetSpec, diagnostics::Diagnostics, name_request::AddressesByTarget,
};

/// The result of reading one workload's labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// In order of name.
    pub requests: Vec<NameRequest>,
    /// Why something gave no name, one sentence each.
    pub why_not: Vec<String>,
    /// The pool in which the workload's address shall be claimed.
    pub pool: Option<Ident>,
    /// A label that asks for names cannot be read, so it is unknown which names are no longer wanted.
    pub unclear: bool,
    /// A label says that nothing of this workload shall be read.
    pub silenced: bool,
}

impl Reading {
    /// The wishes, and the reasons why something gave none. `resolve` is asked once for each target; that of
    /// addresses or a name needs no asking.
    pub fn wishes(
        self,
        resolve: impl Fn(&TargetSpec) -> Result<Vec<Address>, String>,
    ) -> (Vec<Wish>, Vec<String>) {
        let mut found = AddressesByTarget::new();
        let mut notes = Diagnostics::default();
        for sentence in self.why_not {
            notes.add(sentence);
        }
        let mut wishes = Vec::new();
        for ask in self.requests {
            if let RequestedContent::Points { target, .. } = &ask.content
                && !found.contains_key(target)
            {
                let addresses = match target {
                    TargetSpec::Addresses(addresses) => Ok(addresses.clone()),
                    TargetSpec::Name(_) => Ok(Vec::new()),
                    target => resolve(target),
                };
                if let (TargetSpec::Source, Err(why)) = (target, &addresses) {
                    notes.add(format!("its own address is not known: {why}"));
                }
                found.insert(target.clone(), addresses);
            }
            let name = ask.name.clone();
            match ask.wishes(&found) {
                Ok(more) => wishes.extend(more),
                Err(why) => notes.add(format!("{name}: {why}")),
            }
        }
        (wishes, notes.into_sentences())
    }
}
