//! Questions and answers on their way.

use std::{collections::BTreeMap, time::Duration};

use super::{Cut, World};

/// How soon it is tried again to get through to a machine that is cut off.
const AGAIN: Duration = Duration::from_millis(100);

/// Which way something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    There,
    Back,
}

pub(super) type Deliver = Box<dyn FnOnce(&mut World) + Send>;

struct QueuedMessage {
    machine: usize,
    way: Direction,
    deliver: Deliver,
}

/// Messages on their way, by the time of arrival and in the order of sending.
pub(super) struct MessageQueue {
    queued: BTreeMap<(Duration, u64), QueuedMessage>,
    sent: u64,
    machines: Vec<MachineLink>,
}

#[derive(Default)]
struct MachineLink {
    cut: Cut,
    /// It stands still; with `true`, what it sent does too.
    stopped: Option<bool>,
    held: Vec<QueuedMessage>,
}

impl MessageQueue {
    pub fn new(machines: usize) -> Self {
        let machines = std::iter::repeat_with(MachineLink::default).take(machines).collect();
        Self { queued: BTreeMap::new(), sent: 0, machines }
    }

    pub fn cut(&mut self, machine: usize, cut: Cut) {
        if let Some(road) = self.machines.get_mut(machine) {
            road.cut = cut;
        }
    }

    pub fn stop(&mut self, machine: usize, holding: bool) {
        if let Some(road) = self.machines.get_mut(machine) {
            road.stopped = Some(holding);
        }
    }

    pub fn is_cut(&self, machine: usize, way: Direction) -> bool {
        let cut = self.machines.get(machine).map(|road| road.cut).unwrap_or_default();
        match way {
            Direction::There => cut.questions,
            Direction::Back => cut.answers,
        }
    }

    fn add(&mut self, due: Duration, letter: QueuedMessage) {
        self.sent += 1;
        self.queued.insert((due, self.sent), letter);
    }

    fn next_due(&mut self, now: Duration) -> Option<(Duration, QueuedMessage)> {
        let first = self.queued.first_entry().filter(|first| first.key().0 <= now)?;
        let ((due, _), letter) = first.remove_entry();
        Some((due, letter))
    }
}

impl World {
    pub fn advance(&mut self, now: Duration) {
        while let Some((due, letter)) = self.messages.next_due(now) {
            self.now = self.now.max(due);
            self.arrive(letter);
        }
        self.now = self.now.max(now);
        self.deliver_to_watchers();
    }

    /// Puts something on its way; it may be lost.
    pub fn send(&mut self, machine: usize, way: Direction, deliver: Deliver) {
        let weather = &self.weather;
        if self.dice.hits(weather.lost) {
            return;
        }
        let mut delay = Duration::from_micros(100 + self.dice.below(weather.delay * 1000));
        if way == Direction::There && self.dice.hits(weather.late) {
            let most = u64::try_from(weather.late_by.as_millis()).unwrap_or(u64::MAX);
            delay += Duration::from_millis(self.dice.below(most));
        }
        self.messages.add(self.now + delay, QueuedMessage { machine, way, deliver });
    }

    fn arrive(&mut self, letter: QueuedMessage) {
        if self.messages.is_cut(letter.machine, letter.way) {
            // The other half is sent again by those below us until it gets through.
            if self.dice.hits(500) {
                self.messages.add(self.now + AGAIN, letter);
            }
            return;
        }
        if letter.way == Direction::There
            && let Some(road) = self.messages.machines.get_mut(letter.machine)
            && road.stopped == Some(true)
        {
            road.held.push(letter);
            return;
        }
        (letter.deliver)(self);
    }

    pub fn go_on(&mut self, machine: usize) {
        let Some(road) = self.messages.machines.get_mut(machine) else { return };
        road.stopped = None;
        for letter in std::mem::take(&mut road.held) {
            let delay = Duration::from_millis(1 + self.dice.below(self.weather.delay * 4));
            self.messages.add(self.now + delay, letter);
        }
    }
}
