//! A person is told when one must act.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::{
    resolve::{self, Stopwatch},
    sandbox::Sandbox,
};

/// Hears what is posted; the first time it says that it cannot.
pub(crate) struct WebhookServer {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<String>>>,
    asked: Arc<AtomicUsize>,
}

impl WebhookServer {
    pub(crate) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/secret-topic", listener.local_addr().unwrap());
        let (heard, asked): (Arc<Mutex<Vec<String>>>, Arc<AtomicUsize>) = Default::default();
        let (own_heard, own_asked) = (Arc::clone(&heard), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
                let mut text = Vec::new();
                let _ = stream.read_to_end(&mut text);
                let first = own_asked.fetch_add(1, Ordering::SeqCst) == 0;
                let code = if first { "503 Busy" } else { "200 OK" };
                if !first {
                    own_heard.lock().unwrap().push(String::from_utf8_lossy(&text).into_owned());
                }
                let _ = write!(stream, "HTTP/1.1 {code}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        Self { url, heard, asked }
    }

    pub(crate) fn wait_for(&self, part: &str) -> String {
        let begun = Stopwatch::start();
        loop {
            let heard = self.heard.lock().unwrap().clone();
            if let Some(found) = heard.iter().find(|text| text.contains(part)) {
                return found.clone();
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "no `{part}` in {heard:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_guard_that_holds_changes_back_is_told_once_with_the_command_that_helps() {
    let ear = WebhookServer::open();
    let file = format!(
        "[notify]\nurl = \"{}\"\nformat = \"line\"\ntoken = \"hush\"\n\
         [source.office]\ntype = \"hosts\"\npath = \"hosts\"\n\
         [dns.own]\ntype = \"builtin\"\ndomains = [\"office.test\"]\nreverse = false\n",
        ear.url
    );
    let mut sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), &file).unwrap();
    std::fs::write(sandbox.path().join("hosts"), "10.0.7.1 printer.office.test\n").unwrap();
    sandbox.start(&[]);
    resolve::until(&["10.0.7.1"], || resolve::a(sandbox.dns(), "printer.office.test"));
    assert_eq!(ear.asked.load(Ordering::SeqCst), 0, "nothing is the matter");

    std::fs::write(sandbox.path().join("netstead.toml"), file.replace("office.test", "ofice.test")).unwrap();
    let told = ear.wait_for("netstead apply ");
    assert!(told.starts_with("POST /secret-topic ") && told.contains("Bearer hush"), "{told}");
    assert!(
        told.contains("A guard holds back 1 change on `own`. netstead plan own; netstead apply "),
        "{told}"
    );
    assert!(ear.asked.load(Ordering::SeqCst) >= 2, "it was tried again");

    // Neither time nor a restart tells it twice, and no secret is in the log.
    sandbox.stop();
    sandbox.start(&[]);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(ear.heard.lock().unwrap().len(), 1);
    assert!(!sandbox.server().log().contains("secret-topic"));
}
