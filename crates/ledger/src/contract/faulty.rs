//! [`FaultyBackend`]: a pool backend in memory that loses answers, makes duplicates, goes away and comes back.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use netstead_model::{
    Address, BackendClaim, BackendError, BackendErrorKind, BackendObject, BackendPoolInfo, Family, GivenBack,
    ObjectPage, PoolBackend, Range, Want,
};

/// Objects of a page.
const PAGE: usize = 2;

/// The faults from now on.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub struct Faults {
    /// Requests are done and their answers lost, this many times.
    pub lost_answers: u32,
    /// No request arrives.
    pub away: bool,
    /// A claim makes a new object although its key has one.
    pub duplicates: bool,
    /// Claims and releases are done only after this time, whether the caller still waits or not.
    pub late: Option<Duration>,
    /// The answer of a look-up takes this long.
    pub slow_look_ups: Option<Duration>,
    /// Descriptions, lists and signs of change are refused.
    pub refuses_views: bool,
    /// A list is answered only once this is false again.
    pub holds_lists: bool,
    /// The next claims get these addresses, whatever stands against it.
    pub answers: Vec<Address>,
}

/// A pool `lan` with a range of addresses.
#[derive(Debug)]
pub struct FaultyBackend {
    range: Range,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    faults: Faults,
    objects: Vec<BackendObject>,
    made: u64,
    requests: Vec<String>,
    /// Objects made although their key had one.
    duplicates_made: u32,
    lists: u32,
    describes: u32,
    look_ups: u32,
    /// Claims under way, and the most there were.
    claiming: usize,
    most_claiming: usize,
}

impl FaultyBackend {
    pub const POOL: &str = "lan";

    pub fn new(range: Range) -> Self {
        Self { range, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    pub fn set(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.state().faults);
    }

    pub fn objects(&self) -> Vec<BackendObject> {
        self.state().objects.clone()
    }

    /// `address key` of each object, in order.
    pub fn held(&self) -> Vec<String> {
        let mut held: Vec<_> =
            self.state().objects.iter().map(|o| format!("{} {}", o.address, o.key)).collect();
        held.sort();
        held
    }

    /// The claims and releases that were done, in order.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    /// How many objects were made although their key had one.
    pub fn duplicates_made(&self) -> u32 {
        self.state().duplicates_made
    }

    /// Another user of the backend takes an address.
    pub fn take(&self, address: Address, key: &str) {
        let mut state = self.state();
        state.make(address, key);
    }

    /// Another user of the backend removes everything of a key.
    pub fn lose(&self, key: &str) {
        self.state().objects.retain(|object| object.key != key);
    }

    /// Another user of the backend gives the object of an address another key.
    pub fn rename(&self, address: Address, key: &str) {
        for object in self.state().objects.iter_mut().filter(|object| object.address == address) {
            key.clone_into(&mut object.key);
        }
    }

    /// How many pages were listed.
    pub fn lists(&self) -> u32 {
        self.state().lists
    }

    /// How often the pool was to be described.
    pub fn describes(&self) -> u32 {
        self.state().describes
    }

    /// How many keys were looked up.
    pub fn look_ups(&self) -> u32 {
        self.state().look_ups
    }

    /// The most claims that were under way at the same time.
    pub fn most_claiming(&self) -> usize {
        self.state().most_claiming
    }

    /// Does something when the request arrives. One that is under way arrives also if its caller waits no longer.
    async fn arrive<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut State) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        tokio::task::yield_now().await;
        let (away, late) = {
            let state = self.state();
            (state.faults.away, state.faults.late)
        };
        if away {
            return Err(BackendError::unavailable("it cannot be reached").hint("look at its network"));
        }
        let Some(late) = late else { return act(&mut self.state()) };
        let state = self.state.clone();
        let request = tokio::spawn(async move {
            tokio::time::sleep(late).await;
            act(&mut locked(&state))
        });
        request.await.unwrap_or_else(|_| Err(BackendError::unknown("the backend stopped")))
    }

    fn check(pool: &str) -> Result<(), BackendError> {
        if pool == Self::POOL {
            return Ok(());
        }
        Err(BackendError::new(BackendErrorKind::NoSuchPool, format!("there is no pool `{pool}`")))
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn answer<T>(&mut self, value: T) -> Result<T, BackendError> {
        if self.faults.lost_answers > 0 {
            self.faults.lost_answers -= 1;
            return Err(BackendError::unknown("the answer was lost"));
        }
        Ok(value)
    }

    fn is_open_to_views(&self) -> Result<(), BackendError> {
        if self.faults.away {
            return Err(BackendError::unavailable("it cannot be reached"));
        }
        if self.faults.refuses_views {
            return Err(BackendError::new(BackendErrorKind::Denied, "this token may not look at pools"));
        }
        Ok(())
    }

    fn make(&mut self, address: Address, key: &str) -> BackendObject {
        self.made += 1;
        let object = BackendObject {
            reference: format!("object-{}", self.made),
            key: key.to_owned(),
            holder: Some("branch".into()),
            address,
            length: None,
            since: None,
        };
        self.objects.push(object.clone());
        object
    }

    fn claim(&mut self, range: Range, claim: &BackendClaim) -> Result<BackendObject, BackendError> {
        let existing = self.objects.iter().find(|object| object.key == claim.key).cloned();
        if let Some(object) = existing {
            if !self.faults.duplicates {
                return Ok(object);
            }
            self.duplicates_made += 1;
        }
        let held = |address: Address| self.objects.iter().any(|object| object.address == address);
        let held_error = |address: Address| {
            BackendError::new(BackendErrorKind::Held, format!("{address} is held")).fact("address", address)
        };
        let address = match (self.faults.answers.first(), claim.want) {
            (Some(_), _) => self.faults.answers.remove(0),
            (None, Want::Exact(address) | Want::Prefer(address)) if held(address) => {
                return Err(held_error(address));
            }
            (None, Want::Exact(address) | Want::Prefer(address)) if !range.contains(address) => {
                let message = format!("{address} is not in the pool");
                return Err(BackendError::new(BackendErrorKind::NotHere, message));
            }
            (None, Want::Exact(address) | Want::Prefer(address)) => address,
            (None, Want::Any) => {
                let mut numbers = range.first().number()..=range.last().number();
                let free = numbers
                    .find_map(|number| Address::new(range.kind(), number).filter(|address| !held(*address)));
                let none = || BackendError::new(BackendErrorKind::Exhausted, "no address is free");
                free.ok_or_else(none)?
            }
        };
        Ok(self.make(address, &claim.key))
    }
}

#[async_trait]
impl PoolBackend for FaultyBackend {
    async fn claim(&self, claim: &BackendClaim) -> Result<BackendObject, BackendError> {
        Self::check(&claim.pool)?;
        {
            let mut state = self.state();
            state.claiming += 1;
            state.most_claiming = state.most_claiming.max(state.claiming);
        }
        let (range, claim) = (self.range, claim.clone());
        let answer = self.arrive(move |state| {
            let object = state.claim(range, &claim)?;
            state.requests.push(format!("claim {}", claim.key));
            state.answer(object)
        });
        let answer = answer.await;
        self.state().claiming -= 1;
        answer
    }

    async fn release(&self, pool: &str, object: &BackendObject) -> Result<GivenBack, BackendError> {
        Self::check(pool)?;
        let object = object.clone();
        let answer = self.arrive(move |state| {
            let before = state.objects.len();
            state.objects.retain(|other| other.reference != object.reference || other.key != object.key);
            let gone = state.objects.len() < before;
            state.requests.push(format!("release {}", object.key));
            state.answer(if gone { GivenBack::Done } else { GivenBack::AlreadyGone })
        });
        answer.await
    }

    async fn look_up(&self, pool: &str, key: &str) -> Result<Vec<BackendObject>, BackendError> {
        Self::check(pool)?;
        tokio::task::yield_now().await;
        let (found, slow) = {
            let mut state = self.state();
            if state.faults.away {
                return Err(BackendError::unavailable("it cannot be reached"));
            }
            state.look_ups += 1;
            let found: Vec<_> = state.objects.iter().filter(|object| object.key == key).cloned().collect();
            (found, state.faults.slow_look_ups)
        };
        if let Some(slow) = slow {
            tokio::time::sleep(slow).await;
        }
        Ok(found)
    }

    async fn list(&self, pool: &str, prefix: &str, after: Option<&str>) -> Result<ObjectPage, BackendError> {
        Self::check(pool)?;
        while self.state().faults.holds_lists {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut state = self.state();
        state.is_open_to_views()?;
        state.lists += 1;
        let skip: usize = after.and_then(|after| after.parse().ok()).unwrap_or(0);
        let ours = state.objects.iter().filter(|object| object.key.starts_with(prefix));
        let objects: Vec<_> = ours.skip(skip).take(PAGE).cloned().collect();
        let next = (objects.len() == PAGE).then(|| (skip + PAGE).to_string());
        Ok(ObjectPage { objects, next })
    }

    async fn describe(&self, pool: &str) -> Result<BackendPoolInfo, BackendError> {
        Self::check(pool)?;
        let mut state = self.state();
        state.describes += 1;
        state.is_open_to_views()?;
        let size = self.range.last().number() - self.range.first().number() + 1;
        Ok(BackendPoolInfo {
            family: Family::Ipv4,
            network: None,
            ranges: vec![self.range],
            exclude: Vec::new(),
            gateway: None,
            use_reserved: false,
            length: None,
            size,
            free: size.saturating_sub(state.objects.len() as u128),
            installations: Vec::new(),
        })
    }

    async fn changed(&self, pool: &str) -> Result<Option<String>, BackendError> {
        Self::check(pool)?;
        let state = self.state();
        state.is_open_to_views()?;
        Ok(Some(format!("{}/{}", state.made, state.objects.len())))
    }
}
