//! What a person who asks whether all is well should know of the cluster.

use super::{
    RaftStore,
    status::{Role, Status},
};
use crate::Remark;

/// Milliseconds without an answer after which a node is held to be gone.
const GONE: u64 = 3000;

/// Entries a node may lack without anybody being told.
const BEHIND: u64 = 1000;

impl RaftStore {
    pub(super) async fn remarks(&self) -> Vec<Remark> {
        of(&self.status().await)
    }
}

fn of(status: &Status) -> Vec<Remark> {
    let mut remarks = Vec::new();
    match status.role {
        Role::Removed => {
            let hint = "move its directory away and start it with `--join` to bring it back as a new node";
            return vec![Remark::problem("this node was removed from the cluster", hint)];
        }
        Role::Waiting => {
            let hint = "start the nodes named in `peers`; the log says which one does not answer";
            return vec![Remark::problem("this node is in no cluster yet", hint)];
        }
        _ => {}
    }
    let voters = status.voters();
    remarks.push(match voters {
        0 | 1 => Remark::note(
            "one node alone survives no failure",
            "start two more with `netstead run --join ADDRESS:5302`",
        ),
        2 => Remark::note(
            "two nodes survive no failure: when one stops, the other cannot go on either",
            "start a third one with `netstead run --join ADDRESS:5302`",
        ),
        count if count % 2 == 0 => Remark::note(
            format!("{count} nodes survive no more failures than {} do", count - 1),
            "an odd number is enough",
        ),
        count => Remark::fine(format!("{count} nodes, of which {} may fail", (count - 1) / 2)),
    });
    if status.leader.is_none() {
        let hint = "start the other nodes: more than half of them are needed";
        remarks.push(Remark::problem("no node leads the cluster", hint));
    }
    for member in &status.members {
        let name = format!("node {:x} at {}", member.id, member.member.address);
        if status.leader.is_some() && member.last_contact_ms.is_none_or(|age| age > GONE) {
            let hint = format!(
                "start it, or remove it with `netstead cluster remove {:x}` if it is gone for good",
                member.id
            );
            remarks.push(Remark::problem(format!("{name} does not answer"), hint));
        } else if let Some(lag) = member.lag.filter(|lag| *lag > BEHIND) {
            let hint = "it catches up by itself unless its disk or network is too slow";
            remarks.push(Remark::note(format!("{name} is {lag} entries behind"), hint));
        }
        if !member.voter {
            remarks.push(Remark::note(format!("{name} does not vote yet"), "it does once it has everything"));
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        RemarkGrade,
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

    fn told(status: &Status) -> Vec<(RemarkGrade, String)> {
        of(status).into_iter().map(|remark| (remark.grade, remark.text)).collect()
    }

    #[test]
    fn how_many_may_fail_is_told() {
        let grades = |nodes| told(&cluster(nodes, 0)).remove(0);
        assert_eq!(grades(1).0, RemarkGrade::Note);
        assert!(grades(2).1.contains("two nodes survive no failure"));
        assert_eq!(grades(3), (RemarkGrade::Fine, "3 nodes, of which 1 may fail".into()));
        assert!(grades(4).1.contains("no more failures than 3"));
        assert_eq!(grades(5), (RemarkGrade::Fine, "5 nodes, of which 2 may fail".into()));
    }

    #[test]
    fn who_does_not_answer_is_named() {
        let told = told(&cluster(3, 1));
        assert_eq!(told[1], (RemarkGrade::Problem, "node 3 at 10.0.0.3:5302 does not answer".into()));
    }
}
