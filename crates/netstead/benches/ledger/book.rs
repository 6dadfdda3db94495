//! The Book alone: claim and release pairs per second on one core.

use std::time::Duration;

use netstead_ledger::{Book, Caller, Command, Moment, Reply, book::Batch, record::Head};
use netstead_model::{ClaimRef, ClaimRequest, Clock as _, Family, Ident, Key, PoolSpec, Span, SystemClock};

use crate::report::{Report, median};

const PAIRS: u64 = 300_000;

pub fn measure(report: &mut Report) {
    let cases = [
        ("empty /16", "10.0.0.0/16", Family::Ipv4, 0),
        ("99 % full /16", "10.0.0.0/16", Family::Ipv4, 64_880),
        ("/8", "10.0.0.0/8", Family::Ipv4, 0),
        ("IPv6 /64", "fd00::/64", Family::Ipv6, 0),
    ];
    let mut rounds: Vec<Vec<f64>> = vec![Vec::new(); cases.len()];
    // Interleaved, so that a busy moment of the machine hits all of them.
    for _ in 0..3 {
        for ((_, range, family, filled), rates) in cases.iter().zip(&mut rounds) {
            rates.push(pairs_per_second(range, *family, *filled));
        }
    }
    let rates: Vec<f64> = rounds.into_iter().map(median).collect();
    for ((name, ..), rate) in cases.iter().zip(&rates) {
        report.judge(format!("Book, claim+release in {name}"), *rate, "pairs/s", "over 1 M", *rate > 1e6);
    }
    let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let fastest = rates.iter().copied().fold(0.0, f64::max);
    report.judge("Book, fastest to slowest", fastest / slowest, "x", "at most 2", fastest / slowest <= 2.0);
}

fn pairs_per_second(range: &str, family: Family, filled: u64) -> f64 {
    let clock = SystemClock;
    let wall = clock.wall();
    let moment = |number: u64| Moment { now: 1 + number / 1000, wall, random: number };
    let caller = Caller::new("bench");
    let head =
        Head { ledger: 1, seq: 0, epoch: 1, batch: 1, time: 0, paused: false, oldest: 0, calendar: None };
    let mut book = Book::new(&head);
    let pool: Ident = "pool".parse().expect("a name");
    let mut spec = PoolSpec::new(pool.clone(), family);
    spec.ranges = vec![range.parse().expect("a range")];
    spec.cooldown = Span::ZERO;
    let mut batch = Batch::default();
    let mut run = |number: u64, command: &Command| -> Reply {
        // As the writer does: many commands, one batch.
        if batch.len() >= 64 {
            batch = Batch::default();
        }
        book.run(&mut batch, moment(number), &caller, command).expect("room")
    };
    run(0, &Command::CreatePool(Box::new(spec)));
    let claim = |key: Key| Command::Claim(Box::new(ClaimRequest::any(pool.clone(), key)));
    for number in 0..filled {
        run(0, &claim(format!("filler-{number}").parse().expect("a key")));
    }
    // The caller's side of the work is done before the clock starts.
    let commands: Vec<(Command, Command)> = (0..1000)
        .map(|number| {
            let key: Key = format!("machine-{number}").parse().expect("a key");
            (claim(key.clone()), Command::Release(ClaimRef { pool: pool.clone(), key, id: None }))
        })
        .collect();
    let start = clock.monotonic();
    for number in 0..PAIRS {
        let (claim, release) = &commands[usize::try_from(number % 1000).expect("small")];
        run(number, claim);
        run(number, release);
    }
    rate(PAIRS, clock.monotonic() - start)
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
pub fn rate(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}
