//! Questions to a person at a terminal, and the answers.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::Stdio,
    sync::mpsc::{Receiver, channel},
    thread,
};

use netstead_testkit::wait_until;
use nix::pty::openpty;

use crate::{
    resolve,
    sandbox::{SOON, Sandbox},
};

/// The screen, and how the command ended.
struct Typed {
    screen: String,
    code: i32,
}

/// Types `netstead LINE` at a terminal, and then `answer` once it is asked for.
fn type_at(sandbox: &Sandbox, line: &str, answer: &str) -> Typed {
    let terminal = openpty(None, None).unwrap();
    let far = || Stdio::from(File::from(terminal.slave.try_clone().unwrap()));
    let mut command = sandbox.command();
    command.args(line.split_whitespace()).stdin(far()).stdout(far()).stderr(far());
    let mut child = command.spawn().unwrap();
    // The screen ends when no process can write to it any more.
    drop(command);
    drop(terminal.slave);
    let mut near = File::from(terminal.master);
    let screen = watch(near.try_clone().unwrap());
    let mut seen = String::new();
    let mut read = || {
        seen.extend(screen.try_iter());
        seen.contains("type `yes`: ").then_some(())
    };
    assert!(wait_until(SOON, &mut read).is_some(), "nothing was asked:\n{seen}");
    near.write_all(answer.as_bytes()).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    seen.extend(screen.iter());
    Typed { screen: seen, code }
}

fn watch(mut near: File) -> Receiver<String> {
    let (says, hears) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = near.read(&mut buffer) {
            let _ = says.send(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
    });
    hears
}

fn with_a_record() -> Sandbox {
    let sandbox = Sandbox::with_server();
    sandbox.does("record set www.home.test A 10.0.3.9");
    resolve::until(&["10.0.3.9"], || resolve::a(sandbox.dns(), "www.home.test"));
    sandbox
}

#[test]
fn nothing_is_done_unless_a_person_types_yes() {
    let sandbox = with_a_record();
    // The last one ends the line without a word: Ctrl-D.
    for answer in ["no\n", "\n", "y\n", "yes please\n", "\u{4}"] {
        let typed = type_at(&sandbox, "clean --provider builtin", answer);
        assert_eq!(typed.code, 0, "{answer:?}: {}", typed.screen);
        assert!(typed.screen.contains("- www.home.test"), "it is shown first: {}", typed.screen);
        assert!(typed.screen.contains("nothing was done"), "{answer:?}: {}", typed.screen);
        assert_eq!(resolve::a(sandbox.dns(), "www.home.test").values, ["10.0.3.9"], "{answer:?}");
    }
    assert!(!sandbox.does("get providers").contains("paused"));
    // There is no terminal, so no person can agree.
    let alone = sandbox.fails("clean --provider builtin");
    assert!(alone.err.contains("this needs a person to agree") && alone.err.contains("--yes"), "{alone:?}");
}

#[test]
fn what_a_person_agreed_to_is_done() {
    let sandbox = with_a_record();
    sandbox.does("record set www.home.test A 10.0.3.10");
    resolve::until(&["10.0.3.10"], || resolve::a(sandbox.dns(), "www.home.test"));
    let newest = sandbox.does("get changes --name www.home.test -o csv");
    let generation: u64 = newest.lines().last().unwrap().split(',').nth(5).unwrap().parse().unwrap();
    let back = type_at(&sandbox, &format!("rollback --to {}", generation - 1), "yes\n");
    assert_eq!(back.code, 0, "{}", back.screen);
    assert!(back.screen.contains("is paused"), "{}", back.screen);
    resolve::until(&["10.0.3.9"], || resolve::a(sandbox.dns(), "www.home.test"));

    let cleaned = type_at(&sandbox, "clean --provider builtin", " YES \n");
    assert_eq!(cleaned.code, 0, "{}", cleaned.screen);
    resolve::until(&[], || resolve::a(sandbox.dns(), "www.home.test"));
}
