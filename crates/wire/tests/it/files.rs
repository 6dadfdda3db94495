use std::{
    io::ErrorKind,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use netstead_wire::files;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_file_of_the_limit_is_read_and_one_byte_more_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hosts");
    std::fs::write(&path, "12345").unwrap();
    assert_eq!(files::read_text(&path, 5).unwrap(), "12345");
    let error = files::read_text(&path, 4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    assert_eq!(error.to_string(), "it has more than 4 bytes, the most that is read");
    std::fs::write(&path, b"\xff").unwrap();
    assert_eq!(files::read_text(&path, 4).unwrap_err().to_string(), "it is not text in UTF-8");
}

#[test]
fn only_a_regular_file_or_a_link_to_one_is_a_setting() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("file"), "text").unwrap();
    symlink(at("file"), at("link")).unwrap();
    symlink("/dev/zero", at("zero")).unwrap();
    nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(files::read_text(&at("link"), 100).unwrap(), "text");
    let refused = |name: &str| files::read(&at(name), 100).unwrap_err().to_string();
    assert_eq!(refused("zero"), "it is not a regular file");
    // No program writes into it, and still this returns.
    assert_eq!(refused("pipe"), "it is not a regular file");
    assert_eq!(refused("."), "it is a directory");
    assert_eq!(files::read(&at("none"), 100).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn what_a_person_names_may_be_a_pipe_and_has_a_limit_too() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, "[api]\n")
    });
    assert_eq!(files::read_named_text(&pipe, 100).unwrap(), "[api]\n");
    writer.join().unwrap().unwrap();
    let endless = files::read_named_text(Path::new("/dev/zero"), 100).unwrap_err();
    assert_eq!(endless.kind(), ErrorKind::FileTooLarge);
    assert_eq!(files::read_text_from(&b"abc"[..], 2).unwrap_err().kind(), ErrorKind::FileTooLarge);
}

#[test]
fn what_is_private_is_so_for_old_files_too() {
    let dir = tempfile::tempdir().unwrap();
    let (file, folder) = (dir.path().join("old"), dir.path().join("folder"));
    std::fs::write(&file, "secret").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o664)).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    files::close_to_others(&file).unwrap();
    files::close_to_others(&folder).unwrap();
    files::close_to_others(&dir.path().join("none")).unwrap();
    assert_eq!((mode(&file), mode(&folder)), (0o600, 0o700));
    let new = dir.path().join("new");
    files::private().write(true).create_new(true).open(&new).unwrap();
    files::create_private_dir(&dir.path().join("a/b")).unwrap();
    assert_eq!((mode(&new), mode(&dir.path().join("a/b"))), (0o600, 0o700));
}
