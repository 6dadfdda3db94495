//! A cluster that is upgraded node by node while its source has several scopes: no name is lost, whichever node dies in between.

use std::{collections::BTreeMap, time::Duration};

use netstead_testkit::{KubeApiServer, skip, wait_until};
use reqwest::Method;
use serde_json::json;

use super::{nodes::run, raft};
use crate::{resolve, sandbox::SOON};

/// The format that a node takes for the highest one, if it was built for debugging.
const FORMAT: &str = "PRETEND_STORE_FORMAT";
/// The format of 0.1.0, which has no scopes, and one that has them.
const OLD: &str = "1";
const NEW: &str = "3";
/// Longer than every grace of this file.
const PAST_GRACE: Duration = Duration::from_secs(2);

const ALL: [&str; 4] = ["a.north.test", "a.south.test", "b.north.test", "b.south.test"];

/// Two namespaces of a cluster, each a scope of its own, with two Ingresses each.
struct Platform {
    server: &'static KubeApiServer,
    kubeconfig: String,
}

impl Platform {
    fn start() -> Self {
        let server = KubeApiServer::shared();
        for (namespace, number) in [("upgrade-north", 1), ("upgrade-south", 2)] {
            for (name, last) in [("a", 1), ("b", 2)] {
                let short = namespace.trim_start_matches("upgrade-");
                server.apply_in(
                    namespace,
                    &format!(
                        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{ name: {name} }}\nspec: {{ rules: [{{ host: \
                         {name}.{short}.test }}] }}\nstatus: {{ loadBalancer: {{ ingress: [{{ ip: 192.0.{number}.{last} }}] }} }}\n"
                    ),
                );
            }
            allow(server, namespace);
        }
        let kubeconfig = server.user("upgrader", &[]).kubeconfig.display().to_string();
        Self { server, kubeconfig }
    }

    fn forbid(&self, namespace: &str) {
        let path = "/apis/rbac.authorization.k8s.io/v1/namespaces";
        self.server.delete(&format!("{path}/{namespace}/rolebindings/upgrader"));
    }

    fn delete(&self, namespace: &str, ingress: &str) {
        let path = "/apis/networking.k8s.io/v1/namespaces";
        self.server.delete(&format!("{path}/{namespace}/ingresses/{ingress}"));
    }
}

/// Gives the source the right to look into a namespace.
fn allow(server: &KubeApiServer, namespace: &str) {
    let group = "rbac.authorization.k8s.io";
    server.apply_in(
        namespace,
        &format!(
            "apiVersion: {group}/v1\nkind: Role\nmetadata: {{ name: upgrader }}\nrules:\n- apiGroups: [networking.k8s.io]\n  \
             resources: [ingresses]\n  verbs: [get, list, watch]\n---\napiVersion: {group}/v1\nkind: RoleBinding\nmetadata: {{ \
             name: upgrader }}\nroleRef: {{ apiGroup: {group}, kind: Role, name: upgrader }}\nsubjects: [{{ apiGroup: {group}, kind: \
             User, name: upgrader }}]\n"
        ),
    );
}

struct Upgrade {
    platform: Platform,
    nodes: raft::Nodes,
}

impl Upgrade {
    fn start() -> Self {
        let platform = Platform::start();
        let more = format!(
            "[source.k8s]\ntype = \"kubernetes\"\nkubeconfig = \"{}\"\nkinds = [\"ingress\"]\nnamespaces = [\"upgrade-north\", \
             \"upgrade-south\"]\n[dns.own]\ntype = \"builtin\"\ndomains = [\"north.test\", \"south.test\"]\ngrace = \
             \"1s\"\nended_grace = \"1s\"\n",
            platform.kubeconfig
        );
        Self { platform, nodes: raft::Nodes::start_as((FORMAT, OLD), &more) }
    }

    /// The names that the nameserver of a node answers for; `None` while it cannot say.
    fn published(&self, node: usize) -> Option<Vec<&'static str>> {
        let port = self.nodes.sandboxes[node].dns();
        let answers: Option<Vec<_>> =
            ALL.into_iter().map(|name| Some((name, resolve::try_a(port, name)?))).collect();
        let answers = answers.filter(|all| all.iter().all(|(_, answer)| matches!(answer.code, 0 | 3)))?;
        Some(
            answers
                .into_iter()
                .filter(|(_, answer)| !answer.values.is_empty())
                .map(|(name, _)| name)
                .collect(),
        )
    }

    fn until(&self, node: usize, wanted: &[&str]) {
        let there = wait_until(SOON, || (self.published(node)? == wanted).then_some(()));
        assert!(there.is_some(), "{:?} instead of {wanted:?}", self.published(node));
    }

    /// The same names are there after several looks at the source, longer than each grace apart.
    fn stays(&self, node: usize, wanted: &[&str]) {
        self.until(node, wanted);
        for _ in 0..3 {
            self.nodes.done(node, &Method::POST, "/apply", &json!({}));
            let lost = wait_until(PAST_GRACE, || self.published(node).filter(|names| names != wanted));
            assert_eq!(lost, None);
        }
    }

    /// The view of each scope, as a node says.
    fn views(&self, node: usize) -> BTreeMap<String, String> {
        let (_, page) = self.nodes.ask(node, Method::GET, "/sources", None);
        let sources = page["items"].as_array().into_iter().flatten();
        let scopes =
            sources.filter(|source| source["name"] == "k8s").filter_map(|source| source["scopes"].as_array());
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        scopes.flatten().map(|scope| (text(&scope["name"]), text(&scope["view"]))).collect()
    }

    fn end(&mut self, node: usize) {
        let mut server = self.nodes.servers[node].take().unwrap();
        server.terminate().unwrap();
        assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
    }

    fn start_new(&mut self, node: usize) {
        self.nodes.sandboxes[node].set(FORMAT, NEW);
        self.nodes.servers[node] = Some(run(&self.nodes.sandboxes[node]));
        self.nodes.ready(node);
    }

    fn until_format(&self, node: usize, wanted: &str) {
        let format = || self.nodes.ask(node, Method::GET, "/cluster", None).1["format"].to_string();
        let raised = wait_until(SOON, || (format() == wanted).then_some(()));
        assert!(raised.is_some(), "the format is {}", format());
    }
}

#[test]
fn a_rolling_upgrade_with_several_scopes_and_nodes_that_die_in_between_loses_no_name() {
    if !cfg!(debug_assertions) {
        return skip("only a debug build can take itself for another version");
    }
    let mut upgrade = Upgrade::start();
    let old = upgrade.nodes.leader();
    upgrade.until(old, &ALL);
    upgrade.until_format(old, OLD);

    // 1. One follower is upgraded as the guide says, and the other dies and comes back as the new version. Neither may look into one of
    // both scopes any more; the old leader still watches it.
    let [first, second] = [(old + 1) % 3, (old + 2) % 3];
    upgrade.end(first);
    upgrade.platform.forbid("upgrade-south");
    upgrade.start_new(first);
    upgrade.nodes.kill(second);
    upgrade.start_new(second);
    upgrade.stays(first, &ALL);
    upgrade.until_format(first, OLD);

    // 2. The old leader dies. A new one takes over while the store has no scopes.
    upgrade.nodes.kill(old);
    let leader = upgrade.nodes.leader();
    upgrade.stays(leader, &ALL);
    upgrade.until_format(leader, OLD);
    let views = upgrade.views(leader);
    let of = |namespace: &str| views.get(&format!("ingress in {namespace}")).map(String::as_str);
    assert_eq!((of("upgrade-north"), of("upgrade-south")), (Some("complete"), Some("failed")), "{views:?}");

    // 3. The last node is upgraded, the format is raised, and the leader dies then.
    upgrade.start_new(old);
    upgrade.until_format(leader, NEW);
    upgrade.nodes.kill(leader);
    let next = upgrade.nodes.leader();
    upgrade.stays(next, &ALL);
    upgrade.start_new(leader);

    // 4. Only its own scope removes a name.
    upgrade.platform.delete("upgrade-north", "b");
    upgrade.platform.delete("upgrade-south", "b");
    upgrade.stays(next, &["a.north.test", "a.south.test", "b.south.test"]);
}
