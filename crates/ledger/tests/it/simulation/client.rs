//! Clients: they claim, repeat, renew, move and release, on whatever machine answers, and never give up too early.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use netstead_ledger::{Caller, Command, Done, Freshness, LedgerError, ReadAnswer, Reply};
use netstead_model::{Claim, ClaimRequest, Key, Span, Want};
use netstead_store::simulated::Dice;
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use super::{
    history::Claims,
    judge::{ADDRESSES, Attempt, Judge, claims_in},
    machine::{Call, Calls, What},
};
use crate::support::{claim, key, target};

/// Where the machines are called, and the number of the process that answers there.
pub(super) type Directory = Arc<Mutex<Vec<(u64, Calls)>>>;

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(4);
/// How often it tries before it forgets about it, without knowing what became of it.
const TRIES: u32 = 40;

pub(super) struct Client {
    pub name: String,
    pub dice: Dice,
    pub judge: Arc<Mutex<Judge>>,
    pub machines: Directory,
    /// When to stop beginning anything.
    pub end: Duration,
    pub mine: BTreeMap<Key, Claim>,
    /// The machine that answered last.
    last: usize,
    names: u32,
}

impl Client {
    pub fn new(
        name: String,
        dice: Dice,
        judge: Arc<Mutex<Judge>>,
        machines: Directory,
        end: Duration,
    ) -> Self {
        Self { name, dice, judge, machines, end, mine: BTreeMap::new(), last: 0, names: 0 }
    }

    fn judge(&self) -> MutexGuard<'_, Judge> {
        self.judge.lock().unwrap()
    }

    pub async fn live(mut self) {
        while self.judge().now < self.end {
            sleep(Duration::from_millis(self.dice.below(600))).await;
            let held = self.dice.pick(&(0..self.mine.len()).collect::<Vec<_>>());
            let held = held.and_then(|place| self.mine.values().nth(place).cloned());
            match (held, self.dice.below(10)) {
                (_, 0 | 1) => self.read_all_claims(Freshness::Fresh).await,
                (_, 2) => self.read_all_claims(Freshness::Stale).await,
                (Some(held), 3) => self.repeat(&held).await,
                (Some(held), 4) => self.renew(&held).await,
                (Some(held), 5) => self.hand_over(&held).await,
                (Some(held), 6..=8) => self.release(&held).await,
                _ => self.ask_for_more().await,
            }
        }
    }

    /// Reads all claims of one machine.
    pub async fn read_all_claims(&mut self, freshness: Freshness) {
        let machine = self.any_machine();
        let Some((attempt, process, shown, seen)) = self.read(machine, freshness).await else { return };
        let mut judge = self.judge();
        judge.saw(&attempt, process, freshness == Freshness::Fresh, seen.seq, &seen.value);
        if seen.seq < shown {
            judge.wrong(format!("{} saw {}, and before it {shown}", attempt.request, seen.seq));
        }
    }

    /// All claims as every machine shows them in the end; what the last one showed.
    pub async fn see_all(&mut self) -> (u64, Claims) {
        let mut last = (0, Claims::new());
        let count = self.machines.lock().unwrap().len();
        for machine in 0..count {
            let (attempt, process, _, seen) = loop {
                if let Some(read) = self.read(machine, Freshness::Fresh).await {
                    break read;
                }
                sleep(Duration::from_millis(200)).await;
            };
            self.judge().saw(&attempt, process, true, seen.seq, &seen.value);
            last = (seen.seq, seen.value);
        }
        last
    }

    async fn read(
        &mut self,
        machine: usize,
        freshness: Freshness,
    ) -> Option<(Attempt, u64, u64, ReadAnswer<Claims>)> {
        let (process, calls) = self.machines.lock().unwrap()[machine].clone();
        let (attempt, shown) = {
            let mut judge = self.judge();
            (judge.attempt(&self.name), judge.shown(process))
        };
        let (answer, answered) = oneshot::channel();
        calls.send(Call { number: attempt.number, what: What::Read(freshness, answer) }).ok()?;
        let seen = timeout(PATIENCE, answered).await.ok()?.ok()?.ok()?;
        Some((attempt, process, shown, seen))
    }

    fn any_machine(&mut self) -> usize {
        let count = self.machines.lock().unwrap().len() as u64;
        usize::try_from(self.dice.below(count)).unwrap()
    }

    /// Sends a command to one machine. `None`: no answer came.
    async fn once(
        &mut self,
        machine: usize,
        command: &Command,
    ) -> (Attempt, Option<Result<Done, LedgerError>>) {
        let attempt = self.judge().attempt(&self.name);
        let mut caller = Caller::new(&self.name);
        caller.request = Some(attempt.request.clone());
        sleep(Duration::from_millis(self.dice.below(3))).await;
        let (answer, answered) = oneshot::channel();
        let calls = self.machines.lock().unwrap()[machine].1.clone();
        let patience = Duration::from_millis([500, 2000, 3000][usize::try_from(self.dice.below(3)).unwrap()]);
        let what = What::Submit(caller, command.clone(), patience, answer);
        let sent = calls.send(Call { number: attempt.number, what }).is_ok();
        let lost = !sent || self.dice.hits(30);
        // A claim that waits is answered later.
        let answer = timeout(PATIENCE * 2, answered).await;
        let answer = answer.ok().and_then(Result::ok).filter(|_| !lost);
        if let Some(answer) = &answer {
            self.judge().answered(&attempt, waits(command), answer);
        }
        (attempt, answer)
    }

    /// Tries until there is an answer: done, or refused.
    pub async fn insist(&mut self, command: &Command) -> Option<(Attempt, Result<Reply, LedgerError>)> {
        for _ in 0..TRIES {
            let machine = if self.dice.hits(700) { self.last } else { self.any_machine() };
            let (attempt, answer) = self.once(machine, command).await;
            match answer {
                Some(Ok(done)) => {
                    self.last = machine;
                    return Some((attempt, Ok(done.reply)));
                }
                Some(Err(error @ LedgerError::Refused(_))) => {
                    self.last = machine;
                    return Some((attempt, Err(error)));
                }
                _ => self.last = self.any_machine(),
            }
            sleep(Duration::from_millis(50 + self.dice.below(400))).await;
        }
        None
    }

    async fn ask_for_more(&mut self) {
        self.names += 1;
        let name = format!("{}-{}", self.name, self.names);
        let want = match self.dice.below(3) {
            0 => Want::Exact(format!("10.0.0.{}", 1 + self.dice.below(ADDRESSES)).parse().unwrap()),
            _ => Want::Any,
        };
        let ttl = self.dice.hits(300).then(|| Span::from_secs(6 + self.dice.below(10)));
        let wait = (want == Want::Any && self.dice.hits(200)).then(|| Span::from_secs(3));
        let wish = |request: &mut ClaimRequest| (request.want, request.ttl, request.wait) = (want, ttl, wait);
        let command = if self.dice.hits(100) {
            let both = [claim("lan", &name, wish), claim("lan", &format!("{name}-too"), |_| {})];
            Command::Bulk(both.into())
        } else {
            claim("lan", &name, wish)
        };
        self.claim(&command, &name, want).await;
    }

    async fn claim(&mut self, command: &Command, name: &str, want: Want) {
        let Some((attempt, answer)) = self.insist(command).await else { return };
        match answer {
            Ok(reply) => {
                for (claim, outcome) in claims_in(&reply) {
                    self.judge().claimed(&attempt, &claim, outcome, waits(command));
                    self.mine.insert(claim.key.clone(), Claim::clone(&claim));
                }
            }
            Err(LedgerError::Refused(refusal)) if !waits(command) && !matches!(command, Command::Bulk(_)) => {
                self.judge().refused(&attempt, &key(name), want, &refusal);
            }
            Err(_) => {}
        }
    }

    /// Asks for what it has, just so.
    async fn repeat(&mut self, held: &Claim) {
        let again = claim("lan", held.key.as_str(), |request| request.ttl = held.ttl);
        let relied = self.judge().relies(held);
        let Some((attempt, answer)) = self.insist(&again).await else { return };
        match answer {
            Ok(reply) => {
                for (claim, outcome) in claims_in(&reply) {
                    self.judge().claimed(&attempt, &claim, outcome, false);
                    self.mine.insert(claim.key.clone(), Claim::clone(&claim));
                }
            }
            Err(error) => self.lost(held, relied, &error),
        }
    }

    async fn renew(&mut self, held: &Claim) {
        let target = target("lan", held.key.as_str(), Some(held.id));
        let relied = self.judge().relies(held);
        let Some((attempt, answer)) = self.insist(&Command::Renew { target, ttl: None }).await else {
            return;
        };
        match answer {
            Ok(Reply::Renewed { claim, .. }) => {
                let mut judge = self.judge();
                judge.held(&attempt, &claim);
                judge.rely(&attempt, &claim);
            }
            Ok(other) => self.judge().wrong(format!("renewed: {other:?}")),
            Err(error) => self.lost(held, relied, &error),
        }
    }

    /// Gives what it holds another key.
    async fn hand_over(&mut self, held: &Claim) {
        self.names += 1;
        let to = key(&format!("{}-{}", self.name, self.names));
        let target = target("lan", held.key.as_str(), Some(held.id));
        let relied = self.judge().relies(held);
        let command = Command::Move { target, key: to, owner: None };
        self.mine.remove(&held.key);
        let Some((attempt, answer)) = self.insist(&command).await else {
            // It may have another key now, which is not known, and it is still held.
            return;
        };
        match answer {
            Ok(Reply::Moved(claim)) => {
                let mut judge = self.judge();
                judge.held(&attempt, &claim);
                // The end of a lease stays where it was.
                judge.moved(held, &claim);
                drop(judge);
                self.mine.insert(claim.key.clone(), Claim::clone(&claim));
            }
            Ok(other) => self.judge().wrong(format!("moved: {other:?}")),
            Err(error) => self.lost(held, relied, &error),
        }
    }

    async fn release(&mut self, held: &Claim) {
        self.judge().let_go(held);
        self.mine.remove(&held.key);
        let command = Command::Release(target("lan", held.key.as_str(), Some(held.id)));
        let Some((attempt, answer)) = self.insist(&command).await else { return };
        match answer {
            Ok(Reply::Released(how)) => self.judge().released(&attempt, held, &how),
            other => self.judge().wrong(format!("released: {other:?}")),
        }
    }

    /// The ledger says that a claim is not there.
    fn lost(&mut self, held: &Claim, relied: bool, error: &LedgerError) {
        self.mine.remove(&held.key);
        let mut judge = self.judge();
        if relied && judge.relies(held) {
            judge.wrong(format!("`{}` holds {} and was told: {error}", held.key, held.address));
        }
    }
}

fn waits(command: &Command) -> bool {
    match command {
        Command::Claim(request) => request.wait.is_some(),
        Command::Bulk(commands) => commands.iter().any(waits),
        _ => false,
    }
}
