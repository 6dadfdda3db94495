//! Filters of lists. `None` is not sent.

use serde::Serialize;

use crate::{
    pagination::Paged,
    types::{
        AddressOutput, AddressState, ChangeKind, ClaimOutput, EventKind, EventOutput, HistoryOutput,
        IgnoredDriftOutput, ListOrder, PlanOutput, PoolDriftOutput, PoolOutput, ProviderOutput, RecordOutput,
        RecordState, ReservationOutput, SourceOutput, WorkloadOutput, ZoneOutput,
    },
};

macro_rules! query {
    ($name:ident of $path:literal is $item:ty { $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)? }) => {
        #[doc = concat!("What to list of `", $path, "`.")]
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
        pub struct $name {
            $(
                $(#[$field_meta])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
            /// The `next` of the page before.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub after: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub limit: Option<u32>,
        }

        impl Paged for $name {
            type Item = $item;
            const PATH: &'static str = $path;

            fn go_on_after(&mut self, cursor: String) {
                self.after = Some(cursor);
            }

            fn ask_for_most(&mut self) {
                self.limit.get_or_insert(1000);
            }

            fn ask_for(&mut self, most: u32) {
                self.limit = Some(most);
            }
        }
    };
}

query!(IgnoredDriftQuery of "drift/ignored" is IgnoredDriftOutput {});
query!(PoolDriftQuery of "drift" is PoolDriftOutput {});
query!(PoolQuery of "pools" is PoolOutput { selector: String, vrf: String });
query!(ClaimQuery of "claims" is ClaimOutput { pool: String, owner: String, key: String, selector: String, vrf: String });
query!(AddressQuery of "addresses" is AddressOutput {
    pool: String,
    vrf: String,
    state: AddressState,
    /// Only addresses in this range.
    within: String,
});
query!(ReservationQuery of "reservations" is ReservationOutput { pool: String });
query!(ObservationQuery of "observations" is AddressOutput { source: String });
query!(EventQuery of "events" is EventOutput {
    address: String,
    key: String,
    pool: String,
    since: jiff::Timestamp,
    until: jiff::Timestamp,
    what: EventKind,
    order: ListOrder,
});
query!(ChangeQuery of "changes" is HistoryOutput {
    provider: String,
    zone: String,
    name: String,
    what: ChangeKind,
    since: jiff::Timestamp,
    until: jiff::Timestamp,
    order: ListOrder,
});
query!(SourceQuery of "sources" is SourceOutput {});
query!(ProviderQuery of "providers" is ProviderOutput {});
query!(PlanQuery of "plans" is PlanOutput {
    /// The text of each plan has everything, however much that is.
    all: bool,
});
query!(WorkloadQuery of "workloads" is WorkloadOutput {
    source: String,
    /// Only those that ask for a name and do not get it.
    problems: bool,
});
query!(ZoneQuery of "zones" is ZoneOutput { provider: String });
query!(RecordQuery of "records" is RecordOutput {
    /// Only those of this zone.
    zone: String,
    name: String,
    provider: String,
    state: RecordState,
});
