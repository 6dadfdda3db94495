//! [`Resource`]: a kind of object and its paths.

use std::fmt::Write as _;

/// A kind as the API server serves it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    /// `ingresses`
    pub plural: String,
    /// `Ingress`
    pub kind: String,
    pub namespaced: bool,
}

/// Which objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Of this namespace only.
    pub namespace: Option<String>,
    pub labels: Option<String>,
}

/// How much of a list, and from where on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing<'a> {
    pub limit: u32,
    /// Of the page before.
    pub next: Option<&'a str>,
}

impl Resource {
    /// `networking.k8s.io/v1`, or `v1` of the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path of its group and version, where the server lists the kinds.
    pub fn group_path(&self) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        format!("/{root}/{}", self.api_version())
    }

    /// The path of its objects, in a namespace or in all.
    pub fn path(&self, namespace: Option<&str>) -> String {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => {
                format!("{}/namespaces/{}/{}", self.group_path(), encoded(namespace), self.plural)
            }
            None => format!("{}/{}", self.group_path(), self.plural),
        }
    }

    /// The path of one object.
    pub fn object_path(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{}", self.path(namespace), encoded(name))
    }

    pub(super) fn list_path(&self, selection: &Selection, listing: &Listing<'_>) -> String {
        let mut path = self.path(selection.namespace.as_deref());
        let _ = write!(path, "?limit={}", listing.limit);
        if let Some(next) = listing.next {
            let _ = write!(path, "&continue={}", encoded(next));
        }
        selection.add_to(&mut path);
        path
    }

    pub(super) fn watch_path(&self, selection: &Selection, version: &str, seconds: u64) -> String {
        let mut path = self.path(selection.namespace.as_deref());
        let _ = write!(
            path,
            "?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={}",
            encoded(version)
        );
        selection.add_to(&mut path);
        path
    }
}

impl Selection {
    fn add_to(&self, path: &mut String) {
        if let Some(labels) = &self.labels {
            let _ = write!(path, "&labelSelector={}", encoded(labels));
        }
    }
}

/// Everything but letters, digits and `-._~` is written as `%XX`.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api_server() {
        let ingress = Resource {
            group: "networking.k8s.io".into(),
            version: "v1".into(),
            plural: "ingresses".into(),
            kind: "Ingress".into(),
            namespaced: true,
        };
        let node = Resource {
            group: String::new(),
            version: "v1".into(),
            plural: "nodes".into(),
            kind: "Node".into(),
            namespaced: false,
        };
        let all = Selection::default();
        let some = Selection { namespace: Some("shop".into()), labels: Some("app in (web, api)".into()) };
        let first = Listing { limit: 500, next: None };
        assert_eq!(
            [
                ingress.list_path(&all, &first),
                ingress.list_path(&some, &Listing { limit: 5, next: Some("a+b=") }),
                ingress.watch_path(&some, "17", 290),
                node.list_path(&some, &first),
                ingress.object_path(Some("shop"), "web"),
            ],
            [
                "/apis/networking.k8s.io/v1/ingresses?limit=500",
                "/apis/networking.k8s.io/v1/namespaces/shop/ingresses?limit=5&continue=a%2Bb%3D&labelSelector=app%20in%20%28web%2C%20api%29",
                "/apis/networking.k8s.io/v1/namespaces/shop/ingresses?watch=true&allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion=17&labelSelector=app%20in%20%28web%2C%20api%29",
                "/api/v1/nodes?limit=500&labelSelector=app%20in%20%28web%2C%20api%29",
                "/apis/networking.k8s.io/v1/namespaces/shop/ingresses/web",
            ]
        );
    }
}
