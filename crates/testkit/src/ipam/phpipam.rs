//! [`FakePhpIpam`]: phpIPAM's REST API with its state in memory, as version 1.7.4 was measured to behave.
//!
//! - Statuses are its own: a bad password is 500, an empty list is 404, a subnet that does not exist is 400, an address
//!   outside of its subnet is 500, a read-only app is 401.
//! - Numbers are numbers, or texts with [`FakePhpIpam::stringify`]; some are always texts. Values have HTML entities with
//!   [`FakePhpIpam::escape`], and custom fields an object of their own with [`FakePhpIpam::nest_custom_fields`].
//! - `POST addresses/first_free` is one step, as with phpIPAM's row lock.
//! - Time stands still unless a test moves it ([`FakePhpIpam::pass`]): tokens end after 6 hours without use, and an address
//!   with more than 10 refused logins is blocked for 5 minutes.
//! - Where the measurements are silent (the words of most messages, unknown fields, filters, the tag that a PATCH without one
//!   sets), it follows phpIPAM's public source; calls that Netstead does not send are answered 501.

mod access;
mod addresses;
mod answer;
mod subnets;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write as _},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Map, Value, json};

use self::{
    access::{App, Token},
    answer::{Answer, Habits},
    subnets::Network,
};
use crate::fake_http::{FakeHttp, HttpRequest, HttpResponse};

/// The user of a new installation, and its password.
const USER: (&str, &str) = ("Admin", "ipamadmin");
/// The characters of an app's code.
const CODE: &str = "0123456789abcdef0123456789ABCDEF";

/// The security of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhpIpamSecurity {
    SslToken,
    SslCode,
    None,
    Crypt,
}

/// A running phpIPAM with the app `netstead`, whose security is `none`. It ends with its value.
pub struct FakePhpIpam {
    http: FakeHttp,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    /// The API is switched off.
    off: bool,
    /// Requests count as sent through TLS, as behind a proxy that ends it.
    https: bool,
    /// `api_allow_unsafe` of `config.php`.
    allow_unsafe: bool,
    apps: BTreeMap<String, App>,
    user: (String, String),
    /// A user has one token, whichever app it logs in to.
    token: Option<Token>,
    /// When logins were refused.
    refused: Vec<u64>,
    logins: usize,
    /// Seconds since it was started.
    now: u64,
    habits: Habits,
    sections: BTreeMap<u64, String>,
    vrfs: BTreeMap<u64, String>,
    subnets: BTreeMap<u64, Subnet>,
    addresses: BTreeMap<u64, Row>,
    custom_fields: BTreeSet<String>,
    newest: u64,
    changes: usize,
}

#[derive(Debug)]
struct Subnet {
    section: u64,
    network: Network,
    folder: bool,
    pool: bool,
    vrf: Option<u64>,
    description: String,
}

/// An address. A field that is empty is not there.
#[derive(Debug)]
struct Row {
    subnet: u64,
    ip: IpAddr,
    gateway: bool,
    tag: u64,
    fields: BTreeMap<String, String>,
}

impl FakePhpIpam {
    /// Starts one with a section `Lab`, which has no subnets.
    pub fn start() -> Self {
        let held = Held {
            allow_unsafe: true,
            user: (USER.0.to_owned(), USER.1.to_owned()),
            sections: BTreeMap::from([(1, "Lab".to_owned())]),
            newest: 1,
            ..Held::default()
        };
        let held = Arc::new(Mutex::new(held));
        let inside = Arc::clone(&held);
        let http = FakeHttp::start(move |request| locked(&inside).answer(request));
        let fake = Self { http, held };
        fake.add_app("netstead", PhpIpamSecurity::None, 2);
        fake
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        locked(&self.held)
    }

    /// The address of the web interface.
    pub fn url(&self) -> String {
        self.http.url()
    }

    /// The server below, to plan faults and to look at requests.
    pub fn http(&self) -> &FakeHttp {
        &self.http
    }

    pub const fn user() -> (&'static str, &'static str) {
        USER
    }

    /// The code of every app with [`PhpIpamSecurity::SslCode`].
    pub const fn code() -> &'static str {
        CODE
    }

    /// Makes an app, or changes it. Permissions: 0 off, 1 read, 2 read and write.
    pub fn add_app(&self, id: &str, security: PhpIpamSecurity, permissions: u8) {
        self.held().apps.insert(id.to_owned(), App { security, permissions });
    }

    /// Lets requests count as sent through TLS, or no longer.
    pub fn behind_tls(&self, is: bool) {
        self.held().https = is;
    }

    /// Switches the API off, or on again.
    pub fn switch_off(&self, off: bool) {
        self.held().off = off;
    }

    /// Gives the one user another name and password, and forgets its token.
    pub fn set_user(&self, name: &str, password: &str) {
        let mut held = self.held();
        held.user = (name.to_owned(), password.to_owned());
        held.token = None;
    }

    /// Lets time pass.
    pub fn pass(&self, seconds: u64) {
        self.held().now += seconds;
    }

    /// Logins so far, with those that were refused.
    pub fn logins(&self) -> usize {
        self.held().logins
    }

    /// Requests that changed something.
    pub fn changes(&self) -> usize {
        self.held().changes
    }

    /// Numbers become texts, as with PHP below 8.1.
    pub fn stringify(&self, is: bool) {
        self.held().habits.stringify = is;
    }

    /// Values have HTML entities.
    pub fn escape(&self, is: bool) {
        self.held().habits.escape = is;
    }

    /// Custom fields have an object of their own.
    pub fn nest_custom_fields(&self, is: bool) {
        self.held().habits.nest = is;
    }

    /// Adds a field to addresses: `custom_netstead`.
    pub fn add_custom_field(&self, name: &str) {
        self.held().custom_fields.insert(name.to_owned());
    }

    pub fn add_section(&self, name: &str) -> u64 {
        let mut held = self.held();
        let id = held.next();
        held.sections.insert(id, name.to_owned());
        id
    }

    /// Makes a subnet: `10.7.7.0/24`.
    ///
    /// # Panics
    ///
    /// If that is no network.
    #[expect(clippy::expect_used, reason = "this is how a test fails")]
    pub fn add_subnet(&self, section: u64, cidr: &str) -> u64 {
        let network = Network::parse(cidr).expect("a network");
        let mut held = self.held();
        let id = held.next();
        let description = String::new();
        let subnet = Subnet { section, network, folder: false, pool: false, vrf: None, description };
        held.subnets.insert(id, subnet);
        id
    }

    pub fn add_vrf(&self, name: &str) -> u64 {
        let mut held = self.held();
        let id = held.next();
        held.vrfs.insert(id, name.to_owned());
        id
    }

    /// Puts a subnet into a VRF.
    pub fn set_vrf(&self, subnet: u64, vrf: u64) {
        if let Some(subnet) = self.held().subnets.get_mut(&subnet) {
            subnet.vrf = Some(vrf);
        }
    }

    /// Gives a subnet a description.
    pub fn describe(&self, subnet: u64, text: &str) {
        if let Some(subnet) = self.held().subnets.get_mut(&subnet) {
            text.clone_into(&mut subnet.description);
        }
    }

    /// Removes a subnet with its addresses.
    pub fn remove_subnet(&self, id: u64) {
        let mut held = self.held();
        held.subnets.remove(&id);
        held.addresses.retain(|_, row| row.subnet != id);
    }

    /// Turns a subnet into a folder, which has no addresses to hand out.
    pub fn make_folder(&self, id: u64) {
        if let Some(subnet) = self.held().subnets.get_mut(&id) {
            subnet.folder = true;
        }
    }

    /// The subnets as `CIDR of SECTION`.
    pub fn subnets(&self) -> Vec<String> {
        let held = self.held();
        let line = |subnet: &Subnet| {
            let section = held.sections.get(&subnet.section).map_or("", String::as_str);
            format!("{} of {section}", subnet.network)
        };
        held.subnets.values().map(line).collect()
    }

    /// Makes an address, as a person would, and gives its id.
    ///
    /// # Panics
    ///
    /// If `ip` is no address.
    #[expect(clippy::expect_used, reason = "this is how a test fails")]
    pub fn put(&self, subnet: u64, ip: &str, fields: &[(&str, &str)]) -> u64 {
        let ip = ip.parse().expect("an address");
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let row = Row { subnet, ip, gateway: false, tag: 2, fields: fields.collect() };
        let mut held = self.held();
        let id = held.next();
        held.addresses.insert(id, row);
        id
    }

    /// Makes an address the gateway of its subnet.
    pub fn make_gateway(&self, id: u64) {
        if let Some(row) = self.held().addresses.get_mut(&id) {
            row.gateway = true;
        }
    }

    /// Gives an address another tag: 1 Offline, 2 Used, 3 Reserved, 4 DHCP.
    pub fn set_tag(&self, id: u64, tag: u64) {
        if let Some(row) = self.held().addresses.get_mut(&id) {
            row.tag = tag;
        }
    }

    /// Changes a field of an address, as a person would; an empty text empties it.
    pub fn set(&self, id: u64, field: &str, value: &str) {
        if let Some(row) = self.held().addresses.get_mut(&id) {
            row.set(field, value);
        }
    }

    /// Removes an address, as a person would.
    pub fn remove(&self, id: u64) {
        self.held().addresses.remove(&id);
    }

    /// A field of an address.
    pub fn field(&self, id: u64, field: &str) -> Option<String> {
        self.held().addresses.get(&id)?.fields.get(field).cloned()
    }

    /// The ids of all addresses, in the order of creation.
    pub fn ids(&self) -> Vec<u64> {
        self.held().addresses.keys().copied().collect()
    }

    /// Each address in one line, with its tag and its fields, in the order of addresses.
    pub fn lines(&self) -> Vec<String> {
        let held = self.held();
        let mut rows: Vec<&Row> = held.addresses.values().collect();
        rows.sort_by_key(|row| (row.subnet, row.ip));
        let line = |row: &Row| {
            let mut line = format!("{} tag={}", row.ip, row.tag);
            for (name, value) in &row.fields {
                let _ = write!(line, " {name}={value}");
            }
            line
        };
        rows.into_iter().map(line).collect()
    }

    pub fn stop(&self) {
        self.http.stop();
    }

    pub fn restart(&self) {
        self.http.restart();
    }
}

impl fmt::Debug for FakePhpIpam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FakePhpIpam({})", self.url())
    }
}

fn locked(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Row {
    fn set(&mut self, field: &str, value: &str) {
        if value.is_empty() {
            self.fields.remove(field);
        } else {
            self.fields.insert(field.to_owned(), value.to_owned());
        }
    }
}

impl Held {
    fn next(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    fn answer(&mut self, request: &HttpRequest) -> HttpResponse {
        let answer = self.route(request).unwrap_or_else(|refused| refused);
        let stringify = request.header("api-stringify-results").is_some_and(|word| word != "0");
        answer.response(self.habits, stringify)
    }

    fn route(&mut self, request: &HttpRequest) -> Result<Answer, Answer> {
        let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
        let Some(("api", [app, controller, rest @ ..])) =
            parts.split_first().map(|(first, rest)| (*first, rest))
        else {
            return Err(Answer::refused(400, "Request is not valid"));
        };
        self.admit(request, app)?;
        let body = body(request)?;
        let method = request.method.as_str();
        if *controller == "user" {
            return self.user(request, app);
        }
        self.authorize(request, app)?;
        let answer = match *controller {
            "sections" => self.sections_call(method, rest),
            "subnets" => self.subnets_call(request, method, rest, &body),
            "addresses" => self.addresses_call(request, method, rest, &body),
            "vrf" => self.vrf_call(method, rest),
            _ => Err(Answer::refused(400, "Invalid controller")),
        }?;
        if method != "GET" {
            self.changes += 1;
        }
        Ok(answer)
    }
}

/// The body, JSON or a form.
fn body(request: &HttpRequest) -> Result<Map<String, Value>, Answer> {
    if request.header("content-type").is_some_and(|kind| kind.contains("json")) && !request.body.is_empty() {
        return match serde_json::from_slice(&request.body) {
            Ok(Value::Object(map)) => Ok(map),
            _ => Err(Answer::refused(400, "Invalid JSON: Syntax error")),
        };
    }
    Ok(request.form().into_iter().map(|(name, value)| (name, json!(value))).collect())
}

/// A value of a body as text; numbers and texts are alike to PHP.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
