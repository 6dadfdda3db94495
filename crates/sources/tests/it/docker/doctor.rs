//! Checks for `netstead doctor`, and calls as metrics count them.

use std::sync::Mutex;

use netstead_model::{Call, CallObserver, Diagnosis};

use super::*;

#[tokio::test]
async fn a_docker_says_its_version_or_why_it_cannot_be_reached() {
    let mut fake = Fake::start();
    fake.answers("/version", &json!({ "Version": "27.3.1", "ApiVersion": "1.47", "Os": "linux" }));
    let docker = docker(config(&fake.socket()));
    let at = fake.socket().display().to_string();
    let text = format!("unix://{at} is Docker 27.3.1, API 1.47");
    assert_eq!(docker.diagnose().await, [Diagnosis::fine(text)]);
    fake.says("/version", 403, "no");
    let text = format!("unix://{at} answers, and does not show its version");
    assert_eq!(docker.diagnose().await, [Diagnosis::fine(text)]);
    fake.stop().await;
    let text = format!("there is no {at}: is Docker installed and running?");
    let hint = "start Docker; in a container, mount the socket into it; or correct `host`";
    assert_eq!(docker.diagnose().await, [Diagnosis::problem(&text, hint)]);
    // The last report says the same, so that the doctor shows it once.
    assert_eq!(docker.report().await.view(), View::Failed { reason: text });
}

#[derive(Debug, Default)]
struct Calls(Mutex<Vec<String>>);

impl CallObserver for Calls {
    fn called(&self, call: Call) {
        self.0.lock().unwrap().push(format!("{} {}", call.operation, call.outcome.as_str()));
    }
}

#[tokio::test]
async fn every_call_is_counted_with_its_outcome() {
    let mut fake = Fake::start();
    fake.says("/networks", 403, "no");
    let calls = Arc::<Calls>::default();
    let context = BuildContext::new("dock".parse().unwrap()).with_calls(Arc::<Calls>::clone(&calls));
    let docker = Docker::new(config(&fake.socket()), &context).unwrap();
    let counted = || {
        let mut counted = std::mem::take(&mut *calls.0.lock().unwrap());
        // The watch asks at its own time.
        counted.retain(|call| !call.starts_with("events"));
        counted
    };
    docker.report().await;
    assert_eq!(counted(), ["info answered", "networks refused", "containers answered"]);
    fake.stop().await;
    docker.report().await;
    assert_eq!(counted(), ["info failed"]);
}
