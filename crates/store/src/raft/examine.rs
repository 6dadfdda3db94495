//! Findings about the cluster for the doctor.

use super::{
    RaftStore,
    status::{MemberStatus, Role, Status},
    types::hex,
};
use crate::StoreFinding;

/// Milliseconds without an answer after which a node is held to be gone.
const GONE: u64 = 3000;

/// Entries a node may lack without anybody being told.
const BEHIND: u64 = 1000;

impl RaftStore {
    pub(super) async fn remarks(&self) -> Vec<StoreFinding> {
        of(&self.status().await)
    }
}

fn of(status: &Status) -> Vec<StoreFinding> {
    let mut remarks = Vec::new();
    match status.role {
        Role::Removed => {
            let hint = "move its directory away and start it with `--join` to bring it back as a new node";
            return vec![StoreFinding::problem("this node was removed from the cluster", hint)];
        }
        Role::Waiting => {
            let hint = "start the nodes named in `peers`; the log says which one does not answer";
            return vec![StoreFinding::problem("this node is in no cluster yet", hint)];
        }
        _ => {}
    }
    let silent = |member: &MemberStatus| member.last_contact_ms.is_none_or(|age| age > GONE);
    let voters = status.voters();
    let away = status.members.iter().filter(|member| member.voter && silent(member)).count();
    remarks.push(match voters {
        // How many more may fail; the problems below say who does not answer.
        3.. if away > 0 || status.leader.is_none() => {
            let text = match (voters.saturating_sub(1) / 2).checked_sub(away) {
                _ if status.leader.is_none() => {
                    format!("{voters} nodes, of which {} must answer", voters / 2 + 1)
                }
                None => format!("{voters} nodes, of which {away} do not answer: too many to go on"),
                Some(0) => format!("{voters} nodes, of which {away} answer no more: no other may fail"),
                Some(more) => format!("{voters} nodes, of which {away} answer no more: {more} more may fail"),
            };
            StoreFinding::note(text, "start those that do not answer")
        }
        0 | 1 => StoreFinding::note(
            "one node alone survives no failure",
            "start two more with `netstead run --join ADDRESS:5302`",
        ),
        2 => StoreFinding::note(
            "two nodes survive no failure: when one stops, the other cannot go on either",
            "start a third one with `netstead run --join ADDRESS:5302`",
        ),
        count if count % 2 == 0 => StoreFinding::note(
            format!("{count} nodes survive no more failures than {} do", count - 1),
            "an odd number is enough",
        ),
        count => StoreFinding::fine(format!("{count} nodes, of which {} may fail", (count - 1) / 2)),
    });
    if status.leader.is_none() {
        let hint = "start the other nodes: more than half of them are needed";
        remarks.push(StoreFinding::problem("no node leads the cluster", hint));
    }
    for member in &status.members {
        let (id, address) = (hex(member.id), &member.member.address);
        let name = format!("node {id} at {address}");
        let somebody_asks = status.leader.is_some() || status.role == Role::Leader;
        if somebody_asks && silent(member) {
            let hint =
                format!("start it, or remove it with `netstead cluster remove {id}` if it is gone for good");
            let other = member.other.map(|other| format!(": {address} is another node now ({})", hex(other)));
            let text = format!("{name} does not answer{}", other.unwrap_or_default());
            remarks.push(StoreFinding::problem(text, hint));
        } else if let Some(lag) = member.lag.filter(|lag| *lag > BEHIND) {
            let hint = "it catches up by itself unless its disk or network is too slow";
            remarks.push(StoreFinding::note(format!("{name} is {lag} entries behind"), hint));
        }
        if !member.voter {
            remarks.push(StoreFinding::note(
                format!("{name} does not vote yet"),
                "it does once it has everything",
            ));
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        StoreFindingGrade,
        raft::{Member, MemberStatus},
    };

    fn cluster(nodes: u64, silent: u64) -> Status {
        let members = (1..=nodes).map(|id| MemberStatus {
            id,
            member: Member { address: format!("10.0.0.{id}:5302"), ..Member::default() },
            voter: true,
            lag: Some(0),
            last_contact_ms: Some(if id > nodes - silent { 9000 } else { 10 }),
            ..MemberStatus::default()
        });
        Status { role: Role::Leader, leader: Some(1), members: members.collect(), ..Status::default() }
    }

    fn graded_texts(status: &Status) -> Vec<(StoreFindingGrade, String)> {
        of(status).into_iter().map(|remark| (remark.grade, remark.text)).collect()
    }

    #[test]
    fn how_many_may_fail_is_told() {
        let grades = |nodes| graded_texts(&cluster(nodes, 0)).remove(0);
        assert_eq!(grades(1).0, StoreFindingGrade::Note);
        assert!(grades(2).1.contains("two nodes survive no failure"));
        assert_eq!(grades(3), (StoreFindingGrade::Fine, "3 nodes, of which 1 may fail".into()));
        assert!(grades(4).1.contains("no more failures than 3"));
        assert_eq!(grades(5), (StoreFindingGrade::Fine, "5 nodes, of which 2 may fail".into()));
    }

    #[test]
    fn who_is_away_already_is_not_promised_again() {
        let first = |nodes, silent| graded_texts(&cluster(nodes, silent)).remove(0);
        assert_eq!(
            first(3, 1),
            (StoreFindingGrade::Note, "3 nodes, of which 1 answer no more: no other may fail".into())
        );
        assert_eq!(first(5, 1).1, "5 nodes, of which 1 answer no more: 1 more may fail");
        assert_eq!(first(3, 2).1, "3 nodes, of which 2 do not answer: too many to go on");
        let lost = Status { leader: None, ..cluster(3, 2) };
        assert_eq!(graded_texts(&lost)[0].1, "3 nodes, of which 2 must answer");
        assert!(graded_texts(&lost).iter().any(|(grade, _)| *grade == StoreFindingGrade::Problem));
    }

    #[test]
    fn who_does_not_answer_is_named() {
        let mut status = cluster(3, 1);
        let text = "node 0000000000000003 at 10.0.0.3:5302 does not answer";
        assert_eq!(graded_texts(&status)[1], (StoreFindingGrade::Problem, text.into()));
        status.members[2].other = Some(0xfe);
        let text = format!("{text}: 10.0.0.3:5302 is another node now (00000000000000fe)");
        assert_eq!(graded_texts(&status)[1], (StoreFindingGrade::Problem, text));
    }
}
