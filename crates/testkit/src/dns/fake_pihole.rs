//! [`FakePiHole`]: the local DNS records of Pi-hole 5 and 6 as their APIs have them, with the limit of sessions.

mod five;
mod six;

use std::sync::{Arc, Mutex, PoisonError};

use crate::fake_http::{FakeHttp, HttpResponse};

/// The password of the web interface.
const PASSWORD: &str = "netstead-test";
/// An app password, which may only read unless `app_sudo` is set.
const APP_PASSWORD: &str = "netstead-app";
/// The password as version 5 wants it: `sha256(sha256(password))`, both in hexadecimal.
const TOKEN: &str = "959d6a641ba5780ff9b4b8696b7dd84a0e4d2f6c602b925bfdc891d27e26ec25";
/// So many sessions there are, for everyone.
const SEATS: usize = 16;

/// A Pi-hole that only has local DNS records.
#[derive(Debug)]
pub struct FakePiHole {
    http: FakeHttp,
    held: Arc<Mutex<PiHoleState>>,
}

/// Entries, sessions and settings of the fake.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent settings of the server")]
pub struct PiHoleState {
    /// 5 or 6.
    pub version: u8,
    /// `192.0.2.1 name`
    pub hosts: Vec<String>,
    /// `alias,target`
    pub aliases: Vec<String>,
    /// The aliases that are answered: those at the last restart.
    pub answered: Vec<String>,
    pub restarts: usize,
    /// Id, and whether it is that of an app.
    pub sessions: Vec<(String, bool)>,
    /// The most sessions that there were at one time.
    pub most_sessions: usize,
    pub logins: usize,
    pub failures: usize,
    /// It takes another password now.
    pub revoked: bool,
    pub without_password: bool,
    pub second_factor: bool,
    pub app_sudo: bool,
    pub allow_destructive: bool,
}

impl FakePiHole {
    pub fn start(version: u8) -> Self {
        let state = PiHoleState {
            version,
            hosts: Vec::new(),
            aliases: Vec::new(),
            answered: Vec::new(),
            restarts: 0,
            sessions: Vec::new(),
            most_sessions: 0,
            logins: 0,
            failures: 0,
            revoked: false,
            without_password: false,
            second_factor: false,
            app_sudo: false,
            allow_destructive: true,
        };
        let held = Arc::new(Mutex::new(state));
        let inside = Arc::clone(&held);
        let http = FakeHttp::start(move |request| {
            let mut held = inside.lock().unwrap_or_else(PoisonError::into_inner);
            match (held.version, request.path.starts_with("/api/")) {
                (6, true) => six::answer(request, &mut held),
                (5, false) if request.path == "/admin/api.php" => five::answer(request, &mut held),
                _ => HttpResponse::new(404, "<html>404 Not Found</html>"),
            }
        });
        Self { http, held }
    }

    /// The server itself: its address, and the faults that it is told to have.
    pub fn http(&self) -> &FakeHttp {
        &self.http
    }

    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    pub fn app_password(&self) -> &'static str {
        APP_PASSWORD
    }

    /// A copy of its entries, sessions and settings.
    pub fn state(&self) -> PiHoleState {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes its entries, sessions or settings.
    pub fn change(&self, change: impl FnOnce(&mut PiHoleState)) {
        change(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl PiHoleState {
    fn restart(&mut self) {
        self.answered = self.aliases.clone();
        self.restarts += 1;
    }
}

/// Whether it takes a text for a name: no wildcard is one.
fn valid_name(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !label.is_empty() && label.len() < 64 && label.chars().all(inner)
    };
    text.len() < 254 && text.split('.').all(label)
}
