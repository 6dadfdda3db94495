use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use hickory_proto::op::Message;

use crate::fixture::{House, exchange, query};

/// Two names always change together, in a zone that takes many commits; every answer is of one generation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_under_load_lose_no_query_and_show_no_half() {
    let house = Arc::new(House::new(&["example.test"]).await);
    let zone = |generation: usize| {
        let mut lines = String::new();
        for n in 0..300 {
            writeln!(lines, "n{n}.example.test 300 A 10.0.0.{generation}").unwrap();
        }
        writeln!(lines, "alias.example.test 300 CNAME target{generation}.example.test").unwrap();
        writeln!(lines, "target{generation}.example.test 300 A 10.0.0.{generation}").unwrap();
        lines
    };
    house.fill("example.test", &zone(0)).await;
    let done = Arc::new(AtomicBool::new(false));
    let client = tokio::spawn({
        let (house, done) = (Arc::clone(&house), Arc::clone(&done));
        async move {
            let mut asked = 0;
            let packet = query("alias.example.test.", "A").to_vec().unwrap();
            while !done.load(Ordering::Relaxed) {
                let answer = exchange(house.address(), &packet).await.expect("an answer was lost");
                // The alias and its target, which has no address in any other generation.
                assert_eq!(Message::from_vec(&answer).unwrap().answers.len(), 2);
                asked += 1;
            }
            asked
        }
    });
    for generation in 1..20 {
        house.fill("example.test", &zone(generation)).await;
    }
    done.store(true, Ordering::Relaxed);
    let asked = client.await.unwrap();
    assert!(asked > 50, "{asked}");
}
