//! Events of Docker, and their times.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use netstead_testkit::{Dockerd, wait_until};

use crate::SOON;

/// Follows starts until it is dropped.
pub struct Events {
    docker: Child,
    starts: Arc<Mutex<BTreeMap<String, f64>>>,
}

impl Events {
    pub fn follow(docker: &Dockerd) -> Self {
        let mut command = docker.command("docker");
        command.args([
            "events",
            "--filter",
            "event=start",
            "--format",
            "{{.Actor.Attributes.name}} {{.TimeNano}}",
        ]);
        let mut docker = command.stdout(Stdio::piped()).spawn().expect("docker events");
        let lines = BufReader::new(docker.stdout.take().expect("a pipe")).lines();
        let starts = Arc::<Mutex<BTreeMap<String, f64>>>::default();
        let heard = Arc::clone(&starts);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let Some((name, nanos)) = line.split_once(' ') else { continue };
                let Ok(nanos) = nanos.trim().parse::<f64>() else { continue };
                heard.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), nanos / 1e6);
            }
        });
        Self { docker, starts }
    }

    /// When a container started, in milliseconds of wall time.
    pub fn started(&self, name: &str) -> f64 {
        let told = || self.starts.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied();
        wait_until(SOON, told).expect("an event of its start")
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = self.docker.kill();
        let _ = self.docker.wait();
    }
}
