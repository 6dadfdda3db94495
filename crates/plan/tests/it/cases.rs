//! Every file in `tests/cases` is a test.
//!
//! `NETSTEAD_BLESS=1 cargo test -p netstead-plan cases` writes what plans say now into the files: read the diff.

use std::{fs, path::Path};

use netstead_plan::Case;

#[test]
fn every_case_gives_the_plan_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let bless = std::env::var_os("NETSTEAD_BLESS").is_some();
    let mut wrong = Vec::new();
    let mut count = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let mut case: Case = serde_json::from_str(&fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let plan: Vec<String> = case.plan().at(case.now).to_string().lines().map(str::to_owned).collect();
        count += 1;
        assert!(plan.iter().all(|line| line.chars().count() <= 80), "{}", path.display());
        if plan == case.expect {
            continue;
        }
        if bless {
            case.expect = plan;
            fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&case).unwrap())).unwrap();
        } else {
            wrong.push(format!("{}\n{}", path.file_name().unwrap().display(), plan.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(count >= 15);
}
