//! Faults, and how long they last.

use std::time::Duration;

use netstead_store::simulated::{Cut, Dice, Network, Weather};

use super::{client::Directory, machine::Machine};

/// Something that will end.
#[derive(Debug, Clone, Copy)]
enum OngoingFault {
    Stopped { aware: bool },
    Cut,
    Down,
}

pub(super) struct Chaos {
    dice: Dice,
    network: Network,
    troubles: Vec<(Duration, usize, OngoingFault)>,
    processes: u64,
    seed: u64,
    /// Chances of something new in a step, out of a thousand.
    often: u64,
}

impl Chaos {
    pub fn new(seed: u64, mut dice: Dice, network: Network) -> Self {
        let often = dice.pick(&[1, 2, 4, 8]).unwrap_or_default();
        Self { often, dice, network, troubles: Vec::new(), processes: 0, seed }
    }

    pub fn start(&mut self, machine: &mut Machine) -> (u64, super::machine::Calls) {
        self.processes += 1;
        let seed = self.seed.wrapping_mul(0x1_0000_0001).wrapping_add(self.processes);
        (self.processes, machine.start(seed, self.processes))
    }

    /// Foul weather of some kind.
    pub fn weather(&mut self) -> Weather {
        let dice = &mut self.dice;
        let one = |dice: &mut Dice, of: &[u64]| dice.pick(of).unwrap_or_default();
        Weather {
            delay: one(dice, &[2, 2, 10, 60, 300]),
            lost: one(dice, &[0, 0, 5, 20, 80]),
            late: one(dice, &[0, 10, 50]),
            late_by: Duration::from_millis(3000 + dice.below(12_000)),
            refused: one(dice, &[0, 0, 10, 50]),
            watch_lag: one(dice, &[2, 50, 1500]),
            watch_lost: one(dice, &[0, 0, 10, 60]),
        }
    }

    /// Something new may happen in each step.
    pub fn stir(&mut self, now: Duration, machines: &mut [Machine]) -> Option<String> {
        if !self.dice.hits(self.often) {
            return None;
        }
        let number = usize::try_from(self.dice.below(machines.len() as u64)).unwrap();
        let lasting = now + Duration::from_millis(100 + self.dice.below(7000));
        let machine = &mut machines[number];
        let free = machine.is_up() && !machine.is_stopped();
        let what = match self.dice.below(12) {
            0..=2 if free => {
                let (holding, aware) = (self.dice.hits(500), self.dice.hits(500));
                machine.stop();
                self.network.stop(number, holding);
                self.troubles.push((lasting, number, OngoingFault::Stopped { aware }));
                format!("{number} stops until {lasting:?}, holding {holding}, aware {aware}")
            }
            3..=5 => {
                let kind = self.dice.below(3);
                let cut = Cut { questions: kind != 1, answers: kind != 2 };
                self.network.cut(number, cut);
                self.troubles.push((lasting, number, OngoingFault::Cut));
                format!("{number} is cut off until {lasting:?}: {cut:?}")
            }
            6 | 7 if free => {
                machine.kill();
                self.troubles.push((lasting, number, OngoingFault::Down));
                format!("{number} dies until {lasting:?}")
            }
            8 => {
                let seconds = i64::try_from(self.dice.below(2 * 365 * 24 * 3600)).unwrap() - 365 * 24 * 3600;
                machine.set_wall(seconds);
                format!("{number} is {seconds} s off")
            }
            9 => {
                machine.rate = 970 + self.dice.below(61);
                format!("{number} goes at {}", machine.rate)
            }
            10 => {
                let weather = self.weather();
                self.network.set_weather(weather.clone());
                format!("{weather:?}")
            }
            _ => {
                self.network.lose_watches(number);
                self.network.compact();
                format!("{number} loses its watches, and the past is gone")
            }
        };
        Some(what)
    }

    /// Ends the faults that have lasted long enough; with `all`, every one.
    pub fn heal(&mut self, now: Duration, all: bool, machines: &mut [Machine], directory: &Directory) {
        let (over, going): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.troubles).into_iter().partition(|(until, ..)| all || *until <= now);
        self.troubles = going;
        for (_, number, trouble) in over {
            match trouble {
                OngoingFault::Stopped { aware } => {
                    self.network.go_on(number);
                    machines[number].go_on(aware);
                }
                OngoingFault::Cut => self.network.cut(number, Cut::default()),
                OngoingFault::Down => {
                    let started = self.start(&mut machines[number]);
                    directory.lock().unwrap()[number] = started;
                }
            }
        }
        if all {
            self.network.set_weather(Weather::fair());
        }
    }
}
