//! Limits of how much a file may have, and the cost of reading a large file.

use super::*;

/// Pools that do not overlap, `network` by `network` through two VRFs.
fn pools(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let (a, b, vrf) = (number / 2 / 256, number / 2 % 256, number % 2);
        let _ = write!(text, "[pool.p{number}]\nnetwork=\"10.{a}.{b}.0/24\"\nvrf=\"v{vrf}\"\n");
    }
    text
}

/// Processor time of this thread in nanoseconds, without waiting; only Linux reports it.
fn processor_time() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

#[test]
fn four_times_as_many_pools_cost_less_than_eight_times_as_much() {
    let cost = |text: &str| {
        let before = processor_time()?;
        let read = read(Some((Path::new("x.toml"), text)), [], &[]);
        let cost = processor_time()? - before;
        assert!(read.is_ok());
        Some(cost)
    };
    let least = |text: &str| (0..3).filter_map(|_| cost(text)).min();
    let (Some(few), Some(many)) = (least(&pools(5000)), least(&pools(20_000))) else { return };
    assert!(many < 8 * few, "5000 pools cost {few} ns, and 20000 cost {many} ns");
}

#[test]
fn four_times_as_many_mistakes_cost_less_than_eight_times_as_much() {
    let cost = |count: usize| {
        let text = "[[\n".repeat(count);
        let before = processor_time()?;
        let problems = read(Some((Path::new("x.toml"), &text)), [], &[]).unwrap_err();
        let cost = processor_time()? - before;
        assert_eq!(problems.len(), 1001);
        let last = problems.last().unwrap();
        assert_eq!(last.to_string(), "x.toml: there are more problems than these");
        Some(cost)
    };
    let least = |count: usize| (0..3).filter_map(|_| cost(count)).min();
    let (Some(few), Some(many)) = (least(5000), least(20_000)) else { return };
    assert!(many < 8 * few, "5000 lines cost {few} ns, and 20000 cost {many} ns");
}

#[test]
fn pools_that_all_overlap_are_told_up_to_a_number() {
    let mut text = String::new();
    for number in 0..3000 {
        let _ = write!(text, "[pool.p{number:04}]\nnetwork=\"10.0.0.0/24\"\n");
    }
    let problems = read(Some((Path::new("x.toml"), &text)), [], &[]).unwrap_err();
    assert_eq!(problems.len(), 1001);
    assert_eq!(problems[0].to_string(), "x.toml:3:7: pool.p0001 and pool.p0000 overlap at `10.0.0.0/24`");
    assert_eq!(problems[1000].message, "there are more problems than these");
}

#[test]
fn more_than_a_file_may_have_is_refused_with_the_number() {
    let many = |count: usize, line: &str| {
        let lines = (0..count).map(|number| line.replace('#', &number.to_string()));
        lines.collect::<String>()
    };
    let dns = |domains: usize, domain: &str| {
        let list: Vec<String> =
            (0..domains).map(|n| format!("'{}'", domain.replace('#', &n.to_string()))).collect();
        format!("[dns.a]\ntype = \"builtin\"\ndomains = [{}]\n", list.join(", "))
    };
    let told = |text: &str| match read(Some((Path::new("x.toml"), text)), [], &[]) {
        Ok(_) => "fine".to_owned(),
        Err(problems) => {
            let told = problems.iter().map(|one| format!("{one} ({})", one.hint.as_deref().unwrap_or("-")));
            told.collect::<Vec<_>>().join("\n")
        }
    };
    let pattern = "a domain means all names below it; `*` in a domain means any text";
    for (text, wanted) in [
        (pools(25_000), "fine".to_owned()),
        (
            pools(25_001),
            "x.toml:1:2: there are 25001 `[pool.NAME]`, and a file may have at most 25000 \
             (make the others with `netstead pool create`)"
                .into(),
        ),
        (
            many(501, "[source.s#]\ntype = \"hosts\"\npath = \"x\"\n"),
            "x.toml:1:2: there are 501 `[source.NAME]`, and a file may have at most 500 (-)".into(),
        ),
        (
            many(501, "[dns.d#]\ntype = \"builtin\"\n"),
            "x.toml:1:2: there are 501 `[dns.NAME]`, and a file may have at most 500 (-)".into(),
        ),
        (
            many(1001, "[domain.\"d#.test\"]\n"),
            "x.toml:1:2: there are 1001 `[domain.NAME]`, and a file may have at most 1000 (-)".into(),
        ),
        (dns(5000, "d#.test"), "fine".into()),
        (
            dns(5001, "d#.test"),
            format!("x.toml:1:2: there are 5001 domains, and a file may have at most 5000 ({pattern})"),
        ),
        (dns(100, "/^web#[.]/"), "fine".into()),
        (
            dns(101, "/(a{90}){90}#/"),
            format!(
                "x.toml:1:2: there are 101 regular expressions among the domains, and a file may have at most 100 \
                 ({pattern})"
            ),
        ),
        (
            // Those of sources count too.
            dns(60, "/^web#[.]/")
                + &dns(60, "/^web#[.]/")
                    .replace("[dns.a]\ntype = \"builtin\"", "[source.a]\ntype = \"hosts\"\npath = \"x\""),
            format!(
                "x.toml:1:2: there are 120 regular expressions among the domains, and a file may have at most 100 \
                 ({pattern})"
            ),
        ),
    ] {
        assert_eq!(told(&text), wanted);
    }
    let large = told(&dns(1, "/(a{90}){90}0/"));
    assert!(large.contains("the regular expression takes more than 64 KiB"), "{large}");
}

/// Overlaps as they were found before: by comparing each pool with each.
fn compared(pools: &[PoolSpec]) -> Vec<String> {
    let mut told = Vec::new();
    for (number, spec) in pools.iter().enumerate() {
        for other in pools.iter().take(number).filter(|other| other.vrf == spec.vrf) {
            let nested = (spec.family == netstead_model::Family::Prefix)
                != (other.family == netstead_model::Family::Prefix);
            let (ours, theirs) = (spec.extent(), other.extent());
            let common = ours.iter().find_map(|one| theirs.iter().find_map(|two| one.intersect(*two)));
            if let Some(common) = common.filter(|_| !nested) {
                told.push(format!("pool.{} and pool.{} overlap at `{common}`", spec.name, other.name));
            }
        }
    }
    told
}

proptest! {
    #[test]
    fn overlaps_are_told_as_they_were(
        written in prop::collection::vec(
            (0u8..2, any::<bool>(), prop::collection::vec((0u8..40, 0u8..3), 1..4)), 0..14,
        )
    ) {
        let mut pools: Vec<PoolSpec> = Vec::new();
        for (number, (vrf, prefixes, ranges)) in written.iter().enumerate() {
            let family = if *prefixes { netstead_model::Family::Prefix } else { netstead_model::Family::Ipv4 };
            let mut spec = PoolSpec::new(format!("p{number:02}").parse().unwrap(), family);
            spec.vrf = format!("v{vrf}").parse().unwrap();
            let range = |(block, more): &(u8, u8)| {
                format!("10.0.{block}.0-10.0.{}.255", block + more).parse().unwrap()
            };
            spec.ranges = ranges.iter().map(range).collect();
            pools.push(spec);
        }
        let place = ValueOrigin::Variable("X".into());
        let placed: Vec<(&ValueOrigin, PoolSpec)> = pools.iter().map(|pool| (&place, pool.clone())).collect();
        let mut problems = Problems::new(Path::new("x.toml"), "");
        pool::check_together(&placed, &mut problems);
        let told: Vec<String> = match problems.none_or(()) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.into_iter().map(|problem| problem.message).collect(),
        };
        prop_assert_eq!(told, compared(&pools));
    }
}
