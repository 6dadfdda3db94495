//! Leaders that end, stand still, or are cut off.

use std::time::Duration;

use tokio::{task::block_in_place, time::sleep};

use super::{AHEAD, LONG};
use crate::faults::{clients::Load, cluster::Cluster, fault_effects::Lead, report::Gap};

/// So long after it was stopped a process answers nothing that begins then.
const STILL: Duration = Duration::from_millis(500);

pub(super) async fn killed(cluster: &Cluster, load: &Load) -> Gap {
    kill(cluster, load, cluster.lead().await).await.0
}

/// Kills this leader; who led while it was gone.
async fn kill(cluster: &Cluster, load: &Load, before: Lead) -> (Gap, Lead) {
    let at = load.history.now();
    cluster.nodes()[before.node].kill();
    let took = load.next_change_after(at).await;
    let next = cluster.another_leads(before).await;
    sleep(Duration::from_secs(1)).await;
    cluster.nodes()[before.node].start();
    (Gap::led_by_another(at, took, before), next)
}

/// The only node is killed, and comes back with this time of day.
pub(super) async fn only_one_killed(cluster: &Cluster, load: &Load, clock: Option<&'static str>) -> Gap {
    let before = cluster.lead().await;
    let at = load.history.now();
    cluster.nodes()[before.node].kill();
    sleep(Duration::from_secs(1)).await;
    if cluster.nodes()[before.node].clock() != clock {
        cluster.nodes()[before.node].set_clock(clock);
    }
    cluster.nodes()[before.node].start();
    let took = load.next_change_after(at).await;
    cluster.led_anew(before).await;
    cluster.tells_time(before.node, clock.is_some()).await;
    Gap::led_by_another(at, took, before)
}

/// The only node stands still. When it wakes, its callers have given up, and ask again.
pub(super) async fn only_one_stopped(cluster: &Cluster, load: &Load) -> Gap {
    let before = cluster.lead().await;
    let at = load.history.now();
    cluster.nodes()[before.node].process().signal("STOP").unwrap();
    sleep(LONG).await;
    assert!(load.first_change_after(at + STILL).is_none(), "it did not stand still");
    repeat_as_it_wakes(cluster, load, before).await;
    Gap::plain(at, load.next_change_after(at + STILL).await + STILL)
}

pub(super) async fn stopped(cluster: &Cluster, load: &Load) -> Gap {
    let before = cluster.lead().await;
    let at = load.history.now();
    cluster.nodes()[before.node].process().signal("STOP").unwrap();
    let took = load.next_change_after(at).await;
    cluster.another_leads(before).await;
    // Meanwhile what it knows goes to others.
    sleep(LONG.saturating_sub(took).max(Duration::from_secs(1))).await;
    repeat_as_it_wakes(cluster, load, before).await;
    Gap::led_by_another(at, took, before)
}

/// Wakes a node that stands still, and asks it for what it may still believe.
async fn repeat_as_it_wakes(cluster: &Cluster, load: &Load, before: Lead) {
    let node = cluster.clients(Duration::from_secs(10)).swap_remove(before.node);
    let queued = load.repeat_at(&node);
    let wake = async {
        sleep(Duration::from_millis(200)).await;
        cluster.nodes()[before.node].process().signal("CONT").unwrap();
        // These begin after it woke, so they may not be answered from before.
        load.repeat_at(&node).await;
        load.repeat_at(&node).await;
    };
    tokio::join!(queued, wake);
}

pub(super) async fn cut_off(cluster: &Cluster, load: &Load) -> Gap {
    silenced(cluster, load, |leader| cluster.lan.cut_off(leader, &cluster.beside()).unwrap()).await
}

/// First the leader is not heard, then one does not hear.
pub(super) async fn heard_one_way(cluster: &Cluster, load: &Load) -> Vec<Gap> {
    let (lan, beside) = (&cluster.lan, cluster.beside());
    let mute = silenced(cluster, load, |leader| lan.mute(leader, &beside).unwrap()).await;
    load.next_change_after(load.history.now()).await;
    let deaf = silenced(cluster, load, |leader| lan.deafen(leader, &beside).unwrap()).await;
    load.next_change_after(load.history.now()).await;
    vec![mute, deaf]
}

/// Cuts ways of the leader until another one leads. It was so long until the first change that was asked for when all of
/// them were cut.
async fn silenced(cluster: &Cluster, load: &Load, cut: impl FnOnce(usize)) -> Gap {
    let election = cluster.election();
    let before = cluster.lead().await;
    let at = load.history.now();
    cut(before.node);
    let cut = load.history.now();
    let took = load.next_change_after(cut).await + cut.saturating_sub(at);
    let election = cluster.election() != election;
    cluster.another_leads(before).await;
    sleep(LONG.saturating_sub(took).max(Duration::from_secs(1))).await;
    cluster.lan.heal().unwrap();
    Gap { election, ..Gap::led_by_another(at, took, before) }
}

pub(super) async fn follower_cut_off(cluster: &Cluster, load: &Load) -> Gap {
    let election = cluster.election();
    let follower = cluster.follower().await;
    let at = load.history.now();
    cluster.lan.cut_off(follower, &cluster.beside()).unwrap();
    let cut = load.history.now();
    let took = load.next_change_after(cut).await + cut.saturating_sub(at);
    let election = cluster.election() != election;
    let alone = async || cluster.readiness(follower).await.filter(|said| said.starts_with("HTTP/1.1 503"));
    cluster.wait_for("the node that is cut off says that it is", alone).await;
    sleep(LONG.saturating_sub(took)).await;
    cluster.lan.heal().unwrap();
    Gap { election, ..Gap::plain(at, took) }
}

/// The leader is killed, and the clock of the next leader differs by an hour.
pub(super) async fn followed_by_another_clock(cluster: &Cluster, load: &Load) -> Gap {
    let before = others_have_another_clock(cluster).await;
    let ahead = cluster.nodes()[before.node].clock().is_some();
    cluster.tells_time(before.node, ahead).await;
    let (gap, next) = kill(cluster, load, before).await;
    cluster.tells_time(next.node, !ahead).await;
    gap
}

/// Those that do not lead are started anew with another time of day, where they have that of the leader; who leads.
async fn others_have_another_clock(cluster: &Cluster) -> Lead {
    // Who leads may change meanwhile, on a machine that has much else to do.
    for _ in 0..5 {
        let lead = cluster.lead().await;
        let other = if cluster.nodes()[lead.node].clock().is_some() { None } else { AHEAD };
        for number in (0..cluster.count()).filter(|number| *number != lead.node) {
            if cluster.nodes()[number].clock() != other {
                block_in_place(|| {
                    let mut nodes = cluster.nodes();
                    nodes[number].stop();
                    nodes[number].set_clock(other);
                    nodes[number].start();
                });
                cluster.serves(number).await;
            }
        }
        if cluster.lead().await.epoch == lead.epoch {
            return lead;
        }
    }
    panic!("the lead does not stay where it is");
}
