//! A provider whose target is not known yet: nothing is planned until it is.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, ChangeSign, DnsProvider, Name, ProviderError, RecordData, RecordSet, RequestBudget,
    WriteGuard, WriteReply, WriteRequest, Zone, ZoneContent,
};

/// Fails with the reason wherever the server itself would be asked.
#[derive(Debug)]
pub(super) struct ProviderWithoutTarget {
    pub(super) provider: Arc<dyn DnsProvider>,
    /// `public`, `interface:eth0`.
    pub(super) target: String,
    pub(super) reason: String,
}

impl ProviderWithoutTarget {
    fn fails<T>(&self) -> Result<T, ProviderError> {
        let server = format!("the target `{}`", self.target);
        Err(ProviderError::Unreachable { server, reason: self.reason.clone() })
    }
}

#[async_trait]
impl DnsProvider for ProviderWithoutTarget {
    fn kind(&self) -> &'static str {
        self.provider.kind()
    }

    fn server(&self) -> String {
        self.provider.server()
    }

    fn capabilities(&self) -> Capabilities {
        self.provider.capabilities()
    }

    async fn prepare(&self) -> Result<(), ProviderError> {
        self.provider.prepare().await
    }

    fn zone_of(&self, name: &Name) -> Option<Name> {
        self.provider.zone_of(name)
    }

    fn makes_zones(&self) -> bool {
        self.provider.makes_zones()
    }

    fn reads_by_name(&self) -> bool {
        self.provider.reads_by_name()
    }

    fn adjust(&self, set: RecordSet, can: &Capabilities) -> RecordSet {
        self.provider.adjust(set, can)
    }

    fn cannot_hold(&self, name: &Name, data: &RecordData) -> Option<String> {
        self.provider.cannot_hold(name, data)
    }

    fn can_read_names(&self) -> bool {
        self.provider.can_read_names()
    }

    fn budget(&self) -> Option<RequestBudget> {
        self.provider.budget()
    }

    async fn close(&self) {
        self.provider.close().await;
    }

    fn moved_alone(&self, zone: &Name, before: &ChangeSign, after: &ChangeSign) -> bool {
        self.provider.moved_alone(zone, before, after)
    }

    async fn zones(&self, _: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        self.fails()
    }

    async fn read(&self, _: &Name) -> Result<ZoneContent, ProviderError> {
        self.fails()
    }

    async fn read_names(&self, _: &Name, _: &BTreeSet<Name>) -> Result<ZoneContent, ProviderError> {
        self.fails()
    }

    async fn may_write(&self, _: &Name) -> Result<(), ProviderError> {
        self.fails()
    }

    async fn fence(&self, _: &Name, _: &str) -> Result<Option<(u64, u64)>, ProviderError> {
        self.fails()
    }

    async fn write(&self, _: &Name, _: &WriteRequest) -> Result<WriteReply, ProviderError> {
        self.fails()
    }

    async fn left_by(&self, _: &str) -> Result<Vec<(Name, RecordData)>, ProviderError> {
        self.fails()
    }

    async fn move_from(
        &self,
        _: &str,
        _: &[(Name, RecordData)],
        _: &WriteGuard,
    ) -> Result<(), ProviderError> {
        self.fails()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        time::Duration,
    };

    use netstead_model::{Fence, RecordType};

    use super::*;

    /// A provider that answers every method otherwise than its default.
    #[derive(Debug, Default)]
    struct NoDefaults {
        closed: AtomicBool,
    }

    #[async_trait]
    impl DnsProvider for NoDefaults {
        fn kind(&self) -> &'static str {
            "no-defaults"
        }

        fn server(&self) -> String {
            "its server".into()
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities { proxies: true, ..Capabilities::all([RecordType::A]) }
        }

        async fn prepare(&self) -> Result<(), ProviderError> {
            Err(ProviderError::Unreachable { server: "prepared".into(), reason: String::new() })
        }

        fn zone_of(&self, name: &Name) -> Option<Name> {
            Some(name.clone())
        }

        fn makes_zones(&self) -> bool {
            true
        }

        fn reads_by_name(&self) -> bool {
            false
        }

        fn can_read_names(&self) -> bool {
            true
        }

        fn adjust(&self, mut set: RecordSet, _: &Capabilities) -> RecordSet {
            set.ttl = 7;
            set
        }

        fn cannot_hold(&self, name: &Name, _: &RecordData) -> Option<String> {
            Some(format!("{name} is too long"))
        }

        fn budget(&self) -> Option<RequestBudget> {
            Some(RequestBudget { made: 1, limit: 2, window: Duration::from_mins(5), wait: None })
        }

        async fn close(&self) {
            self.closed.store(true, Ordering::SeqCst);
        }

        fn moved_alone(&self, _: &Name, _: &ChangeSign, _: &ChangeSign) -> bool {
            true
        }

        async fn zones(&self, _: &[Name]) -> Result<Vec<Zone>, ProviderError> {
            unreachable!("the server is not asked while its target is not known")
        }

        async fn read(&self, _: &Name) -> Result<ZoneContent, ProviderError> {
            unreachable!("the server is not asked while its target is not known")
        }

        async fn read_names(&self, _: &Name, _: &BTreeSet<Name>) -> Result<ZoneContent, ProviderError> {
            unreachable!("the server is not asked while its target is not known")
        }

        async fn may_write(&self, _: &Name) -> Result<(), ProviderError> {
            unreachable!("the server is not asked while its target is not known")
        }

        async fn fence(&self, _: &Name, _: &str) -> Result<Option<(u64, u64)>, ProviderError> {
            unreachable!("the server is not asked while its target is not known")
        }

        async fn left_by(&self, _: &str) -> Result<Vec<(Name, RecordData)>, ProviderError> {
            unreachable!("the server is not asked while its target is not known")
        }

        async fn move_from(
            &self,
            _: &str,
            _: &[(Name, RecordData)],
            _: &WriteGuard,
        ) -> Result<(), ProviderError> {
            unreachable!("the server is not asked while its target is not known")
        }

        async fn write(&self, _: &Name, _: &WriteRequest) -> Result<WriteReply, ProviderError> {
            unreachable!("the server is not asked while its target is not known")
        }
    }

    #[tokio::test]
    async fn every_method_is_forwarded_or_fails_with_the_reason() {
        let inner = Arc::new(NoDefaults::default());
        let provider: Arc<dyn DnsProvider> = inner.clone();
        let outer = ProviderWithoutTarget { provider, target: "public".into(), reason: "no answer".into() };
        let name: Name = "a.test".parse().unwrap();
        let set = RecordSet::new(name.clone(), RecordType::A, 300, []);
        assert_eq!((outer.kind(), outer.server().as_str()), ("no-defaults", "its server"));
        assert_eq!(outer.capabilities(), inner.capabilities());
        assert_eq!(outer.prepare().await, inner.prepare().await);
        assert_eq!(outer.zone_of(&name), Some(name.clone()));
        assert!(outer.makes_zones() && outer.can_read_names() && !outer.reads_by_name());
        assert!(outer.moved_alone(&name, &1.into(), &2.into()));
        assert_eq!(outer.adjust(set, &inner.capabilities()).ttl, 7);
        let address = RecordData::address([192, 0, 2, 1].into());
        assert_eq!(outer.cannot_hold(&name, &address), Some("a.test is too long".to_owned()));
        assert_eq!(outer.budget(), inner.budget());
        let wanted =
            ProviderError::Unreachable { server: "the target `public`".into(), reason: "no answer".into() };
        let fence = Fence { owner: "it".into(), epoch: 1, generation: 1 };
        let request = WriteRequest { units: Vec::new(), fence, guard: WriteGuard::open() };
        assert_eq!(outer.zones(&[]).await.unwrap_err(), wanted);
        assert_eq!(outer.read(&name).await.unwrap_err(), wanted);
        assert_eq!(outer.read_names(&name, &BTreeSet::new()).await.unwrap_err(), wanted);
        assert_eq!(outer.may_write(&name).await.unwrap_err(), wanted);
        assert_eq!(outer.fence(&name, "it").await.unwrap_err(), wanted);
        assert_eq!(outer.write(&name, &request).await.unwrap_err(), wanted);
        assert_eq!(outer.left_by("dnsweaver").await.unwrap_err(), wanted);
        assert_eq!(outer.move_from("dnsweaver", &[], &request.guard).await.unwrap_err(), wanted);
        outer.close().await;
        assert!(inner.closed.load(Ordering::SeqCst));
    }

    /// The names of the methods in the first block of `source` that begins with `head`.
    fn methods(source: &str, head: &str) -> BTreeSet<String> {
        let (_, block) = source.split_once(head).unwrap();
        let (block, _) = block.split_once("\n}\n").unwrap();
        let named = |line: &str| {
            let line = line.strip_prefix("    ")?;
            let signature = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
            Some(signature.split('(').next()?.to_owned())
        };
        block.lines().filter_map(named).collect()
    }

    /// A method with a default would not be missed by the compiler.
    #[test]
    fn the_wrapper_has_every_method_of_the_trait() {
        let model = include_str!("../../../model/src/dns.rs");
        let all = methods(model, "pub trait DnsProvider");
        assert!(all.contains("close") && all.contains("write"), "{all:?}");
        let own =
            methods(include_str!("provider_without_target.rs"), "impl DnsProvider for ProviderWithoutTarget");
        assert_eq!(own, all);
    }
}
