//! Commands through a real sshd.

use std::{os::unix::fs::PermissionsExt as _, time::Duration};

use netstead_testkit::Sshd;
use netstead_wire::ssh::{Ssh, SshError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn ssh(server: &Sshd) -> Ssh {
    Ssh::new(server.url().parse().unwrap()).config_file(server.config_file())
}

fn known() -> Option<Sshd> {
    let server = Sshd::start(&[])?;
    server.make_known().unwrap();
    Some(server)
}

#[tokio::test]
async fn a_command_gets_its_words_and_its_input_as_they_are() {
    let Some(server) = known() else { return };
    let odd = "it's $HOME; `id`  \"two\"\nlines";
    let printed = ssh(&server).run(&["printf", "%s|", odd, ""], b"").await.unwrap();
    assert_eq!(String::from_utf8(printed).unwrap(), format!("{odd}||"));
    let input: Vec<u8> = (0..200_000_u32).flat_map(u32::to_be_bytes).collect();
    assert!(ssh(&server).run(&["cat"], &input).await.unwrap() == input);
}

#[tokio::test]
async fn each_way_to_fail_is_told_apart() {
    let Some(server) = Sshd::start(&[]) else { return };
    let machine = ssh(&server);
    let stranger = machine.run(&["true"], b"").await.unwrap_err();
    assert!(
        matches!(&stranger, SshError::Unreachable { reason, .. } if reason.contains("Host key verification failed")),
        "{stranger}"
    );
    server.make_known().unwrap();
    let failed = machine.run_shell("echo no such zone >&2; exit 3", b"unread").await.unwrap_err();
    assert_eq!(
        failed.to_string(),
        format!("{}: `echo no such zone >&2; exit 3` ends with exit status: 3: no such zone", server.url())
    );
    let large = machine.clone().limit(10).run(&["printf", "12345678901"], b"").await.unwrap_err();
    assert!(matches!(large, SshError::TooLarge { limit: 10, .. }), "{large}");
    assert_eq!(machine.clone().limit(10).run(&["printf", "1234567890"], b"").await.unwrap(), b"1234567890");
    let late = machine.clone().timeout(Duration::from_secs(2)).run(&["sleep", "600"], b"").await.unwrap_err();
    assert!(matches!(late, SshError::Late { .. }), "{late}");
    server.forbid().unwrap();
    let denied = machine.run(&["true"], b"").await.unwrap_err();
    assert!(
        matches!(&denied, SshError::Unreachable { reason, .. } if reason.contains("Permission denied")),
        "{denied}"
    );
}

#[tokio::test]
async fn a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
    let Some(server) = known() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("it's a file.conf");
    let shown = path.to_str().unwrap();
    ssh(&server).write_file(shown, b"one\n").await.unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"one\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    ssh(&server).write_file(shown, b"").await.unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!((std::fs::read(&path).unwrap(), mode), (Vec::new(), 0o640));
    let nowhere = dir.path().join("missing/file");
    let error = ssh(&server).write_file(nowhere.to_str().unwrap(), b"x").await.unwrap_err();
    assert!(matches!(error, SshError::Failed { .. }), "{error}");
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["it's a file.conf"]);
}

#[tokio::test]
async fn a_command_can_be_a_connection() {
    let Some(server) = known() else { return };
    let (command, mut stream) = ssh(&server).open("head -n 1").unwrap();
    stream.write_all(b"hello\nthere\n").await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "hello\n");
    command.reap();
    server.forbid().unwrap();
    let (command, mut stream) = ssh(&server).open("cat").unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    let words = command.last_words().await.unwrap();
    assert!(words.contains("Permission denied"), "{words}");
}
