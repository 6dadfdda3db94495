//! Names of claims.

use insta::assert_snapshot;

use crate::support::{House, any, claim};

#[tokio::test]
pub(crate) async fn a_name_is_the_hostname_else_the_key_else_there_is_none_with_a_reason() {
    let house = House::new().await;
    house
        .make_so("lan", "10.0.3.50-10.0.3.59", |spec| spec.domain = Some("home.test".parse().unwrap()))
        .await;
    let named = |hostnames: &[&str]| {
        let hostnames = hostnames.iter().map(|name| name.parse().unwrap()).collect();
        claim("lan", "web", move |request| request.hostnames = Some(hostnames))
    };
    let mut shown = String::new();
    house.ask("ann", any("lan", "default/web")).await.unwrap();
    house.ask("ann", any("lan", "web")).await.unwrap();
    for name in ["default/web", "web"] {
        shown += &names(&house, name).await;
    }
    house.ask("ann", named(&["app", "www.example.com"])).await.unwrap();
    shown += &names(&house, "web").await;
    assert_snapshot!(shown, @r"
    default/web: [] its key is not a host label and it has no hostname
    web: [web.home.test] its key is a host label
    web: [app.home.test www.example.com] its hostnames
    ");
}

async fn names(house: &House, name: &str) -> String {
    let domain = house.pool("lan").await.pool.spec.domain;
    let names = house.holder("lan", name).await.unwrap().names(domain.as_ref());
    let list: Vec<&str> = names.names.iter().map(netstead_model::Name::as_str).collect();
    format!("{name}: [{}] {}\n", list.join(" "), names.reason)
}
