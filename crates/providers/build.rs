//! Makes the lists of kinds. A module that `src/dns.rs`, `src/ipam.rs` or `src/pool.rs` names, and whose file describes a kind, is in
//! the list `KINDS` there: so the line that names the module is all that a new kind needs beside its file.

use std::{env, fs, io, path::Path};

/// A file that describes a kind has such a line.
const DESCRIBES: &str = "pub const KIND: ";

fn main() -> io::Result<()> {
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets no OUT_DIR"))?;
    for room in ["dns", "ipam", "pool"] {
        fs::write(Path::new(&out).join(format!("{room}_kinds.rs")), list_of(room)?)?;
    }
    Ok(())
}

/// The kinds of a room as an expression, in the order of its modules.
fn list_of(room: &str) -> io::Result<String> {
    let source = format!("src/{room}.rs");
    println!("cargo::rerun-if-changed={source}");
    let text = fs::read_to_string(&source)?;
    let mut list = String::from("&[\n");
    let mut condition = "";
    for line in text.lines() {
        if line.starts_with("#[cfg(") {
            condition = line;
            continue;
        }
        let module = line.strip_prefix("pub mod ").and_then(|rest| rest.strip_suffix(';'));
        if let Some(module) = module {
            let file = format!("src/{room}/{module}.rs");
            println!("cargo::rerun-if-changed={file}");
            if fs::read_to_string(&file)?.lines().any(|line| line.starts_with(DESCRIBES)) {
                list.extend([condition, "\n&", module, "::KIND,\n"]);
            }
        }
        condition = "";
    }
    Ok(list + "]")
}
