//! Sentences about names that a workload does not get.

/// Ends of sentences, and parts of them, with which sources say that something is left out on purpose.
const ON_PURPOSE: [&str; 4] = [" is false", " says `ignore`", " left out: ", "another tool shall read it"];

/// Whether a sentence of [`Workload::why_not`](crate::Workload::why_not) says that something is left out because a label, a
/// description or a setting asks for that. Everything else is a problem that a person may want to know.
pub fn is_on_purpose(sentence: &str) -> bool {
    ON_PURPOSE
        .iter()
        .any(|part| if part.ends_with(' ') { sentence.contains(part) } else { sentence.ends_with(part) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_on_purpose_is_no_problem() {
        for sentence in [
            "netstead.enabled is false",
            "the block in its description says `ignore`",
            "fe80::1 is left out: it is a link-local address",
            "the addresses of docker0 are left out: no network card of the guest has their MAC address",
        ] {
            assert!(is_on_purpose(sentence), "{sentence}");
        }
        for sentence in ["netstead.hostnme is no label of this dialect", "netstead.ttl: `x` is not a number"]
        {
            assert!(!is_on_purpose(sentence), "{sentence}");
        }
    }
}
