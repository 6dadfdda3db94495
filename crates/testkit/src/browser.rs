//! [`Browser`]: a real Chromium without a window, driven through its driver.

#![expect(clippy::indexing_slicing, reason = "what JSON lacks is null")]

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    process::Command,
    time::Duration,
};

use data_encoding::BASE64;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Process, free_port, has_commands, skip, tools::tool, wait_until};

/// How long the browser may take to start, and a page to come.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long something on a page is waited for.
const SOON: Duration = Duration::from_secs(15);
/// The key of a reference to an element, in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The version is named in xtask too.
const AXE: &str = "axe-core-4.14.0";

/// The script of axe-core, unless it is not in the tool cache; then the test is skipped, and in the full run it fails.
pub fn axe() -> Option<String> {
    let script = tool(AXE, "axe.min.js").and_then(|path| std::fs::read_to_string(path).ok());
    if script.is_none() {
        skip("axe-core is not in the tool cache: `cargo xtask test` puts it there, out of npm's registry");
    }
    script
}

/// A browser with a profile of its own. Dropping it ends it.
#[derive(Debug)]
pub struct Browser {
    driver: Process,
    port: u16,
    session: String,
    profile: TempDir,
}

impl Browser {
    /// Starts one with a window of this size, unless the machine has none; then the test is skipped.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[expect(clippy::expect_used, reason = "this is how a test fails")]
    pub fn start(width: u32, height: u32) -> Option<Self> {
        if !has_commands(&["chromium", "chromedriver"]) {
            return None;
        }
        let port = free_port().expect("a free port");
        let mut driver =
            Process::start("chromedriver", Command::new("chromedriver").arg(format!("--port={port}")))
                .expect("chromedriver starts");
        driver.wait_for_port((Ipv4Addr::LOCALHOST, port).into(), PATIENCE).expect("chromedriver listens");
        let profile = tempfile::tempdir().expect("a directory");
        let mut browser = Self { driver, port, session: String::new(), profile };
        let arguments = [
            "--headless".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--window-size={width},{height}"),
            format!("--user-data-dir={}", browser.profile.path().display()),
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "timeouts": {"pageLoad": 60_000, "script": 30_000},
        }}});
        let session = browser.call("POST", "/session", &wanted);
        session["sessionId"].as_str().unwrap_or_default().clone_into(&mut browser.session);
        browser.resize(width, height);
        Some(browser)
    }

    /// Gives the page this many pixels, also fewer than a window can have.
    pub fn resize(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Lets the page see that the system has dark or light colours.
    pub fn prefer(&self, colours: &str) {
        let feature = json!({"features": [{"name": "prefers-color-scheme", "value": colours}]});
        self.devtools("Emulation.setEmulatedMedia", &feature);
    }

    pub fn open(&self, url: &str) {
        self.act("POST", "/url", &json!({"url": url}));
    }

    pub fn url(&self) -> String {
        self.act("GET", "/url", &Value::Null).as_str().unwrap_or_default().to_owned()
    }

    /// Opens another tab and goes there. Its handle, for [`Browser::switch`].
    pub fn open_tab(&self) -> String {
        let opened = self.act("POST", "/window/new", &json!({"type": "tab"}));
        let handle = opened["handle"].as_str().unwrap_or_default().to_owned();
        self.switch(&handle);
        handle
    }

    /// The handle of the tab that is looked at.
    pub fn tab(&self) -> String {
        self.act("GET", "/window", &Value::Null).as_str().unwrap_or_default().to_owned()
    }

    pub fn switch(&self, tab: &str) {
        self.act("POST", "/window", &json!({"handle": tab}));
    }

    /// The result of a function's body in the page.
    pub fn script(&self, body: &str) -> Value {
        self.act("POST", "/execute/sync", &json!({"script": body, "args": []}))
    }

    /// The result that a script gives to its last argument, later.
    pub fn async_script(&self, body: &str) -> Value {
        self.act("POST", "/execute/async", &json!({"script": body, "args": []}))
    }

    /// The text that a person sees of the first element that fits.
    pub fn text(&self, css: &str) -> String {
        let element = self.find(css);
        self.act("GET", &format!("/element/{element}/text"), &Value::Null)
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Whether something fits.
    pub fn has(&self, css: &str) -> bool {
        let found = self.act("POST", "/elements", &json!({"using": "css selector", "value": css}));
        found.as_array().is_some_and(|found| !found.is_empty())
    }

    /// Clicks the first element that fits. As a person would, it scrolls it out from below a bar that stays in view.
    pub fn click(&self, css: &str) {
        let element = self.find(css);
        let show = "arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })";
        self.act("POST", "/execute/sync", &json!({"script": show, "args": [{ ELEMENT: element }]}));
        self.act("POST", &format!("/element/{element}/click"), &json!({}));
    }

    /// Types into the first element that fits.
    pub fn type_into(&self, css: &str, text: &str) {
        let element = self.find(css);
        self.act("POST", &format!("/element/{element}/value"), &json!({"text": text}));
    }

    /// Types into whatever has the focus. Special keys are characters of their own: `\u{e014}` is the right arrow.
    pub fn press(&self, keys: &str) {
        let active = self.act("GET", "/element/active", &Value::Null);
        let active = active[ELEMENT].as_str().unwrap_or_default().to_owned();
        self.act("POST", &format!("/element/{active}/value"), &json!({"text": keys}));
    }

    /// Waits until the text of what fits has this in it.
    ///
    /// # Panics
    ///
    /// When it does not come.
    pub fn wait_for_text(&self, css: &str, part: &str) {
        let mut seen = String::new();
        let came = wait_until(SOON, || {
            let script = format!(
                "return [...document.querySelectorAll({})].map(e => e.innerText).join('\\n')",
                Value::from(css)
            );
            self.script(&script).as_str().unwrap_or_default().clone_into(&mut seen);
            seen.contains(part).then_some(())
        });
        assert!(came.is_some(), "`{css}` never said `{part}`; at {} it says:\n{seen}", self.url());
    }

    /// The whole page as a PNG, as long as it is.
    pub fn screenshot(&self) -> Vec<u8> {
        let shot = json!({"format": "png", "captureBeyondViewport": true});
        let shot = self.devtools("Page.captureScreenshot", &shot);
        BASE64.decode(shot["data"].as_str().unwrap_or_default().as_bytes()).unwrap_or_default()
    }

    fn find(&self, css: &str) -> String {
        let found = self.act("POST", "/element", &json!({"using": "css selector", "value": css}));
        found[ELEMENT].as_str().unwrap_or_default().to_owned()
    }

    fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.act("POST", "/goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    fn act(&self, method: &str, path: &str, body: &Value) -> Value {
        self.call(method, &format!("/session/{}{path}", self.session), body)
    }

    /// One call of the protocol.
    ///
    /// # Panics
    ///
    /// When the driver refuses it: this is how a test fails.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.send(method, path, body);
        let answer = answer.unwrap_or_else(|error| panic!("the browser does not answer {path}: {error}"));
        let value = answer["value"].clone();
        assert!(value["error"].is_null(), "{method} {path} {body}: {}", value["message"]);
        value
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> io::Result<Value> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(PATIENCE * 2))?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        stream.flush()?;
        let mut answer = BufReader::new(stream);
        // The driver keeps the connection open whatever is asked, so the answer ends where it says.
        let mut length = 0;
        loop {
            let mut line = String::new();
            if answer.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            let header = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            if let Some((_, value)) = header {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut json = Vec::new();
        answer.take(length).read_to_end(&mut json)?;
        serde_json::from_slice(&json).map_err(io::Error::other)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser with the session.
        let _ = self.send("DELETE", &format!("/session/{}", self.session), &Value::Null);
        let _ = self.driver.kill();
    }
}
