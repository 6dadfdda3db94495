//! Forms that are filled in as they should be: each does what its button says.

use std::time::Duration;

use netstead_testkit::{PowerDns, wait_until};

use super::{
    site::{PAGES, SCRIPT, Site},
    visitor::{Visitor, cookies},
};

/// The sentence that the next page says.
async fn said(visitor: &Visitor, answer: &reqwest::Response) -> String {
    let place = answer.headers()["location"].to_str().unwrap().split('#').next().unwrap();
    let cookie = cookies(answer.headers()).into_iter().find(|cookie| cookie.starts_with("netstead_said="));
    let mut cookie = cookie.unwrap_or_default();
    cookie.truncate(cookie.find(';').unwrap_or(cookie.len()));
    let own = visitor.cookie.split(';').next().unwrap_or_default();
    let request =
        visitor.http.get(format!("{}{place}", visitor.url)).header("cookie", format!("{own}; {cookie}"));
    let page = request.send().await.unwrap().text().await.unwrap();
    let text = page.split("<p class=\"said\">").nth(1).and_then(|rest| rest.split("</p>").next());
    text.unwrap_or_else(|| panic!("nothing is said at {place}: {page}")).to_owned()
}

async fn done(visitor: &Visitor, path: &str, fields: &[(&str, &str)]) -> String {
    let answer = visitor.post(path, fields).await;
    let status = answer.status();
    if status == 303 {
        return said(visitor, &answer).await;
    }
    panic!("{path} answered {status}: {}", answer.text().await.unwrap())
}

/// The value of a hidden field.
fn hidden(page: &str, name: &str) -> String {
    let from = page.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap_or_default();
    from.split('"').next().unwrap_or_default().replace("&#34;", "\"").replace("&quot;", "\"")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_is_made_changed_and_deleted() {
    let site = Site::start();
    let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
    let fields = [("name", "iot"), ("network", "10.7.0.0/24"), ("ranges", "10.7.0.10-10.7.0.20 10.7.0.30")];
    assert_eq!(done(&visitor, "/pools/new", &fields).await, "pool iot is made");
    assert!(site.sandbox.does("get pools -o csv").contains("10.7.0.10-10.7.0.20"));
    // The same name again: said beside the field, and what was typed stays.
    let other = [("name", "iot"), ("network", "10.8.0.0/24"), ("ranges", "10.8.0.30")];
    let again = visitor.post("/pools/new", &other).await;
    assert_eq!(again.status(), 409);
    let page = again.text().await.unwrap();
    assert!(page.contains("there is a pool `iot` already") && page.contains("10.8.0.30"), "{page}");

    let page = visitor.page("/pools/iot/edit").await;
    let tag = hidden(&page, "tag");
    assert!(tag.contains('-'), "{page}");
    let change = |sure: &'static str| {
        vec![
            ("tag", tag.clone()),
            ("network", "10.7.0.0/24".to_owned()),
            ("ranges", "10.7.0.10-10.7.0.40".to_owned()),
            ("domain", "home.test".to_owned()),
            ("cooldown", "10m".to_owned()),
            ("order", "lowest".to_owned()),
            ("sure", sure.to_owned()),
        ]
    };
    // First it is shown, and nothing is done.
    let fields = change("");
    let borrowed: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let page = visitor.post("/pools/iot/edit", &borrowed).await.text().await.unwrap();
    assert!(page.contains("What would be otherwise") && page.contains("10.7.0.10-10.7.0.40"), "{page}");
    assert!(
        page.contains("netstead pool update iot --range=10.7.0.10-10.7.0.40 --domain=home.test"),
        "{page}"
    );
    assert!(!site.sandbox.does("get pools -o csv").contains("10.7.0.40"));
    let fields = change("1");
    let borrowed: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(done(&visitor, "/pools/iot/edit", &borrowed).await, "pool iot is changed");
    assert!(site.sandbox.does("get pools -o csv").contains("10.7.0.10-10.7.0.40"));
    // The version that was looked at is gone now.
    let mut late = fields.clone();
    late[3].1 = "late.test".to_owned();
    let borrowed: Vec<_> = late.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = visitor.post("/pools/iot/edit", &borrowed).await;
    assert_eq!(answer.status(), 412);
    assert!(answer.text().await.unwrap().contains("changed meanwhile"));

    site.sandbox.does("claim iot lamp");
    let tag = hidden(&visitor.page("/pools/iot/delete").await, "tag");
    let answer = visitor.post("/pools/iot/delete", &[("tag", &tag), ("name", "lan"), ("reason", "x")]).await;
    assert!(answer.text().await.unwrap().contains("type the name of the pool"));
    let answer = visitor.post("/pools/iot/delete", &[("tag", &tag), ("name", "iot")]).await;
    assert!(answer.text().await.unwrap().contains("give the reason"));
    let fields = [("tag", &*tag), ("name", "iot"), ("reason", "no lamps any more")];
    assert_eq!(done(&visitor, "/pools/iot/delete", &fields).await, "pool iot is deleted");
    assert!(!site.sandbox.does("get pools -o csv").contains("iot"));
    assert!(site.sandbox.does("get events -o json").contains("no lamps any more"));
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_claimed_reserved_and_released_also_many_at_once() {
    let site = Site::start();
    site.fill();
    let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
    let fields = [("reserve_key", "tv"), ("range", "10.0.3.180-10.0.3.182")];
    assert_eq!(
        done(&visitor, "/pools/lan/reserve", &fields).await,
        "10.0.3.180-10.0.3.182 is reserved for tv"
    );
    assert!(visitor.page("/pools/lan?pick=10.0.3.181").await.contains("End the reservation for tv"));
    assert_eq!(
        done(&visitor, "/pools/lan/unreserve", &[("key", "tv")]).await,
        "the reservation for tv has ended"
    );
    assert!(!site.sandbox.does("get reservations -o csv").contains("tv"));
    // It is refused where the page says why, and the page can go on from there.
    let answer = visitor
        .post("/pools/lan/claim", &[("key", "x"), ("address", "10.0.3.50"), ("pick", "10.0.3.50")])
        .await;
    assert_eq!(answer.status(), 409);
    let page = answer.text().await.unwrap();
    assert!(page.contains("data-place=\"/pools/lan?pick=10.0.3.50\" data-posted"), "{page}");

    // First what would end with them, then the act.
    let fields = [("line", "web-1"), ("line", "web-2"), ("act", "release")];
    let page = visitor.post("/pools/lan/many", &fields).await.text().await.unwrap();
    assert!(page.contains("Release 2 claims") && page.contains("web-2.home.test"), "{page}");
    assert!(site.sandbox.does("get claims -o csv").contains("web-2"));
    let lines: Vec<String> = page
        .split("name=\"line\" value=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().replace("&#9;", "\t"))
        .collect();
    let fields = [("line", &*lines[0]), ("line", &*lines[1]), ("act", "release"), ("sure", "1")];
    assert_eq!(done(&visitor, "/pools/lan/many", &fields).await, "2 claims are released");
    let claims = site.sandbox.does("get claims -o csv");
    assert!(!claims.contains("web-1") && !claims.contains("web-2") && claims.contains("db"), "{claims}");

    let fields = [("line", "db"), ("line", "git"), ("act", "label"), ("label", "site=ams")];
    assert_eq!(done(&visitor, "/pools/lan/many", &fields).await, "2 claims have site=ams now");
    let labelled: serde_json::Value =
        serde_json::from_str(&site.sandbox.does("get claims --pool lan -o json")).unwrap();
    assert_eq!(labelled.to_string().matches("\"site\":\"ams\"").count(), 2, "{labelled}");
    let answer = visitor.post("/pools/lan/many", &[("act", "release")]).await;
    assert_eq!(answer.status(), 422);
    assert!(answer.text().await.unwrap().contains("choose the claims first"));
}

#[tokio::test(flavor = "multi_thread")]
async fn records_pauses_tokens_and_rollbacks_are_made_and_end() {
    let site = Site::start();
    site.fill();
    let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
    let fields = [("type", "TXT"), ("values", "\"<script>alert(1)</script>\""), ("ttl", "300")];
    let told = done(&visitor, "/names/note.home.test/set", &fields).await;
    assert!(told.starts_with("note.home.test TXT is set"), "{told}");
    assert!(site.sandbox.does("get records -o csv").contains("note.home.test"));
    // It names the session, as events of the ledger do.
    let changes = wait_until(Duration::from_secs(20), || {
        let changes = site.sandbox.does("get changes -o json");
        (changes.contains("note.home.test") && changes.contains(" in session ")).then_some(changes)
    });
    assert!(changes.is_some(), "{}", site.sandbox.does("get changes -o json"));
    let answer = visitor.post("/names/note.home.test/set", &[("type", "A"), ("values", "nonsense")]).await;
    let page = answer.text().await.unwrap();
    assert!(page.contains("nonsense") && page.contains("class=\"wrong\""), "{page}");
    let told = done(&visitor, "/names/note.home.test/delete", &[("type", "TXT")]).await;
    assert!(told.contains("no longer set by hand"), "{told}");

    let told =
        done(&visitor, "/servers/pause", &[("provider", "own"), ("reason", "a test"), ("for", "2h")]).await;
    assert_eq!(told, "own is paused");
    assert!(visitor.page("/servers").await.contains("a test"));
    assert_eq!(done(&visitor, "/servers/resume", &[("provider", "own")]).await, "own is resumed");
    let answer =
        visitor.post("/servers/pause", &[("provider", "own"), ("reason", "x"), ("for", "soon")]).await;
    assert_eq!(answer.status(), 400);
    let page = answer.text().await.unwrap();
    assert!(page.contains("value=\"soon\" aria-invalid=\"true\""), "beside the field: {page}");

    let fields =
        [("subject", "ci"), ("role", "claim"), ("pools", "lan"), ("vrfs", "default"), ("expires_in", "1d")];
    let answer = visitor.post("/access", &fields).await;
    assert_eq!(answer.status(), 201);
    let page = answer.text().await.unwrap();
    assert!(
        page.contains("nst_") && page.contains(&format!("{}/api/v1/status", site.sandbox.url())),
        "{page}"
    );
    let listed = site.sandbox.does("token list -o csv");
    let id = listed.lines().find(|line| line.contains("ci")).unwrap().split(',').next().unwrap().to_owned();
    let told = done(&visitor, "/access/revoke", &[("id", &id)]).await;
    assert!(told.contains("is revoked"), "{told}");
    assert!(!site.sandbox.does("token list -o csv").contains(&id));

    // What would be taken back is shown, and exactly that is done.
    let page = visitor.page("/rollback?provider=own&to=0").await;
    assert!(page.contains("back to plan 0") && page.contains("nas.home.test"), "{page}");
    let hash = hidden(&page, "hash");
    let fields = [("provider", "own"), ("to", "0"), ("hash", "0000000000000000")];
    assert_eq!(visitor.post("/rollback", &fields).await.status(), 409, "another plan than was shown");
    let told = done(&visitor, "/rollback", &[("provider", "own"), ("to", "0"), ("hash", &hash)]).await;
    assert!(told.contains("taken back; own is paused"), "{told}");
    assert!(visitor.page("/history?of=names").await.contains("rolled-back"));
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_ignored_with_a_reason_and_reported_again() {
    let Some(server) = PowerDns::start(&["home.test"]) else { return };
    let site = Site::with(&format!(
        "[dns.lan]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"home.test\"]\n",
        server.api_url(),
        server.api_key()
    ));
    let listed = |what: &str, sign: &str| {
        let seen = wait_until(Duration::from_secs(20), || {
            site.sandbox.does("apply");
            site.sandbox.does(what).contains(sign).then_some(())
        });
        assert!(seen.is_some(), "{}", site.sandbox.does(what));
    };
    listed("get records --provider lan -o csv", "nas.home.test");
    listed("get records --provider lan -o csv", "tv.home.test");
    for (number, name) in [(1, "nas"), (2, "tv")] {
        let value = format!("192.0.2.{number}");
        let statement = format!(
            "INSERT INTO records (domain_id, name, type, content, ttl) \
             SELECT id, '{name}.home.test', 'A', '{value}', 300 FROM domains WHERE name = 'home.test'; \
             UPDATE records SET content = \
             'ns1.home.test hostmaster.home.test 202701010{number} 10800 3600 604800 300' WHERE type = 'SOA'"
        );
        server.sql(&statement).unwrap();
        listed("get drift", &value);
    }
    let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
    let line = [("provider", "lan"), ("name", "nas.home.test"), ("type", "A")];
    let with = |reason: &'static str| [line[0], line[1], line[2], ("reason", reason)];
    // Without a reason it is refused beside its line.
    let answer = visitor.post("/drift/ignore", &with(" ")).await;
    assert_eq!(answer.status(), 422);
    let page = answer.text().await.unwrap();
    assert!(page.contains("role=\"alert\">reason: ") && page.contains("give a reason of 1"), "{page}");
    assert!(page.contains("others put A 192.0.2.1 beside ours") && !page.contains("h-ignored"), "{page}");
    // Every form of this page has its line for the command line.
    for act in ["ignore", "adopt"] {
        assert!(page.contains(&format!("data-for=\"{act}\"")), "{act}: {page}");
    }

    let told = done(&visitor, "/drift/ignore", &with("<b>the</b> printer")).await;
    assert_eq!(told, "1 is ignored until it changes");
    let page = visitor.page("/drift").await;
    assert!(!page.contains("others put A 192.0.2.1") && page.contains("others put A 192.0.2.2"), "{page}");
    assert!(page.contains("h-ignored") && page.contains("A 192.0.2.1</td>"), "{page}");
    assert!(page.contains("data-for=\"report-again\"") && !page.contains("<b>the</b>"), "{page}");
    assert!(site.sandbox.does("get drift --ignored -o csv").contains("<b>the</b> printer"));
    assert_eq!(
        done(&visitor, "/drift/report-again", &line).await,
        "drift at nas.home.test is reported again"
    );
    let page = visitor.page("/drift").await;
    assert!(page.contains("others put A 192.0.2.1") && !page.contains("h-ignored"), "{page}");

    // Many at once, as they are ticked.
    let chosen = ["lan\tnas.home.test\tA", "lan\ttv.home.test\tA"].map(|line| ("line", line));
    let fields = [chosen[0], chosen[1], ("act", "ignore"), ("reason", "both")];
    assert_eq!(done(&visitor, "/drift/adopt-many", &fields).await, "2 are ignored until they change");
    let page = visitor.page("/drift").await;
    assert!(page.contains("Everything is as Netstead left it") && page.contains("both"), "{page}");
    assert_eq!(site.sandbox.does("get drift -o name"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_has_its_line_for_the_command_line_and_for_curl() {
    let site = Site::start();
    site.fill();
    site.park();
    site.sandbox.does("record set odd.home.test TXT hello");
    site.sandbox.does("pause --provider own --reason test");
    let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
    let mut lacking = Vec::new();
    let more = ["/names/odd.home.test", "/pools/lan?pick=10.0.3.50", "/pools/lan?pick=10.0.3.155"];
    for path in PAGES.into_iter().chain(more) {
        let page = visitor.page(path).await;
        for form in page.split("<form method=\"post\" action=\"").skip(1) {
            let action = form.split('"').next().unwrap();
            let act = action.rsplit('/').next().unwrap().trim_end_matches("-many");
            if !["theme", "logout"].contains(&act) && !page.contains(&format!("data-for=\"{act}\"")) {
                lacking.push(format!("{path}: {action}"));
            }
        }
    }
    assert!(lacking.is_empty(), "{lacking:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_call_themselves_is_text_on_every_page() {
    let site = Site::start();
    site.fill();
    // A token's subject, a value on a server, the text of a hosts file that is no name, and a pool's description.
    let made = site.sandbox.netstead(["token", "create", SCRIPT, "--role", "write"]);
    assert_eq!(made.code, 0, "{made:?}");
    let set = site.sandbox.netstead(["record", "set", "odd.home.test", "TXT", &format!("\"{SCRIPT}\"")]);
    assert_eq!(set.code, 0, "{set:?}");
    let pool = site.sandbox.netstead(["pool", "update", "big", "--description", SCRIPT]);
    assert_eq!(pool.code, 0, "{pool:?}");
    let hosts = site.sandbox.path().join("hosts");
    let more = format!("{}10.0.3.11 {SCRIPT}\n", std::fs::read_to_string(&hosts).unwrap());
    std::fs::write(&hosts, more).unwrap();
    let visitor = Visitor::logged_in(&site, made.out.trim()).await;
    let read = wait_until(Duration::from_secs(20), || {
        site.sandbox.does("get records -o csv").contains("script").then_some(())
    });
    assert!(read.is_some());
    let mut seen = 0;
    let query = "/search?q=%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    for path in
        PAGES.into_iter().chain(["/names/odd.home.test", query, "/history?by=script", "/names?text=script"])
    {
        let page = visitor.page(path).await;
        assert!(!page.contains("<script>alert"), "{path}: {page}");
        seen += usize::from(page.contains("&#60;script&#62;") || page.contains("&lt;script&gt;"));
    }
    // The subject stands in the frame of every page, so all of them have it as text.
    assert_eq!(seen, PAGES.len() + 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_sorted_and_downloaded() {
    let site = Site::start();
    site.fill();
    let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
    let listed = wait_until(Duration::from_secs(20), || {
        site.sandbox.does("get records -o csv").contains("nas.home.test").then_some(())
    });
    assert!(listed.is_some());
    // By a part of the name, and by the value.
    for text in ["nas", "10.0.3.10"] {
        let page = visitor.page(&format!("/names?text={text}")).await;
        assert!(page.contains("nas.home.test") && !page.contains("router.home.test"), "{text}: {page}");
        let page = visitor.page(&format!("/search?q=NA{}", if text == "nas" { "S" } else { "S.h" })).await;
        assert!(page.contains("nas.home.test"), "{page}");
    }
    let page = visitor.page("/workloads?text=10.0.3.61").await;
    assert!(page.contains("tv.home.test") && !page.contains("nas.home.test"), "{page}");
    let csv = visitor.get("/csv/claims?pool=lan").await;
    assert_eq!(csv.headers()["content-type"], "text/csv; charset=utf-8");
    let csv = csv.text().await.unwrap();
    assert!(csv.starts_with("pool,key,address,") && csv.contains("\r\nlan,web-1,10.0.3.50,"), "{csv}");
    assert!(!csv.contains("\r\nbig,"), "{csv}");
    for list in ["pools", "addresses?pool=lan", "records", "workloads", "events", "changes"] {
        assert!(visitor.page(&format!("/csv/{list}")).await.lines().count() > 1, "{list}");
    }
    assert_eq!(visitor.get("/csv/tokens").await.status(), 404);
    let keys = |page: &str| (page.find(">web-2</td>").unwrap(), page.find(">db</td>").unwrap());
    let page = visitor.page("/pools/lan?sort=key").await;
    let (web, db) = keys(&page);
    assert!(db < web, "{page}");
    let page = visitor.page("/pools/lan?sort=-key").await;
    let (web, db) = keys(&page);
    assert!(web < db && page.contains("aria-sort=\"descending\""), "{page}");
    // Who had it then, and by whom.
    let page = visitor.page("/history?address=10.0.3.50&until=0s").await;
    assert!(page.contains("web-1 of") && page.contains("had 10.0.3.50"), "{page}");
    let page = visitor.page("/history?by=no-such-person").await;
    assert!(page.contains("Nothing of that kind"), "{page}");
    // Free blocks stand in the tree.
    let page = visitor.page("/addresses").await;
    assert!(page.contains("10.16.64.0/18"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_full_block_is_small_and_its_table_goes_on() {
    let site = Site::start();
    site.sandbox.does("pool create tight --network 10.20.0.0/16");
    let lines: Vec<String> =
        (1..=300).map(|number| format!("tight,a-machine-with-a-long-name-{number}")).collect();
    std::fs::write(site.sandbox.path().join("many.csv"), lines.join("\n")).unwrap();
    site.sandbox.does("claim --file many.csv");
    let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
    let page = visitor.page("/pools/tight").await;
    assert!(page.len() < 200_000, "{} bytes", page.len());
    assert!(page.contains(">10.20.0.100</a></td>") && !page.contains(">10.20.0.200</a></td>"), "{page}");
    let more = page.split('"').find(|part| part.contains("after=128")).unwrap().replace("&#38;", "&");
    let page = visitor.page(more.split('#').next().unwrap()).await;
    assert!(page.contains(">10.20.0.200</a></td>") && !page.contains(">10.20.0.100</a></td>"), "{page}");
    // It is of the block that was looked at.
    let page = visitor.page("/pools/tight?at=10.20.1.0%2F24").await;
    assert!(page.contains(">10.20.1.20</a></td>") && !page.contains("after=128"), "{page}");
}
