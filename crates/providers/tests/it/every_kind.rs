//! The same stories with every kind of server, told by the engine: one line in the table brings them all.

mod backend;
mod installation;
mod stories;

use std::collections::BTreeSet;

use netstead_providers::dns::KINDS;

use self::backend::Backend;

/// Gives each server one test per story, and fails for a kind that is in no line.
macro_rules! every_kind {
    ($($server:ident: $backend:ty,)*) => {
        $(mod $server {
            use super::{Backend as _, backend, stories};

            every_kind!(@stories $backend, start:
                names_come_change_and_go,
                values_of_others_stay,
                a_restart_with_the_store_writes_nothing_and_knows_what_is_ours,
                a_restart_without_the_store_touches_nothing_until_told,
                two_installations_leave_each_other_alone,
                a_listing_that_breaks_off_changes_nothing,
                a_change_that_fails_is_made_up_for,
                a_server_that_falls_silent_gets_what_it_missed,
                what_it_cannot_hold_is_refused_in_the_plan,
            );
            every_kind!(@stories $backend, start_with_access:
                revoked_credentials_lose_nothing,
                a_server_that_goes_and_comes_back_gets_what_it_missed,
                one_of_two_servers_may_die,
            );
        })*

        #[test]
        fn no_kind_is_missing() {
            let told = BTreeSet::from([$(<$backend as Backend>::KIND),*]);
            let here = KINDS.iter().map(|kind| kind.name);
            assert_eq!(told, here.chain([netstead_nameserver::builtin::KIND.name]).collect());
        }
    };
    (@stories $backend:ty, $start:ident: $($story:ident,)*) => {
        $(#[tokio::test]
        async fn $story() {
            let Some(mut server) = <$backend>::$start() else { return };
            stories::$story(&mut server).await;
        })*
    };
}

every_kind! {
    adguard: backend::RealAdGuard,
    adguard_that_pretends: backend::AdGuard,
    bind: backend::Bind,
    builtin: backend::OwnNameserver,
    cloudflare: backend::Cloudflare,
    dnsmasq: backend::Dnsmasq,
    external_dns: backend::ExternalDns,
    knot: backend::Knot,
    pihole_5: backend::PiHole<5>,
    pihole_6: backend::PiHole<6>,
    pihole_files: backend::PiHoleFiles,
    powerdns: backend::PowerDns,
    technitium: backend::Technitium,
    webhook: backend::Webhook,
    webhook_for_dnsweaver: backend::WebhookForDnsweaver,
}
