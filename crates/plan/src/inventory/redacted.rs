//! A copy of the inventory in which every workload is changed, so that secrets can be taken out before it is shown.

use std::sync::Arc;

use netstead_model::Workload;

use super::Inventory;

impl Inventory {
    /// The same with every version of every workload changed by `change`, for output to other people.
    #[must_use]
    pub fn with_each(mut self, change: impl Fn(&mut Workload)) -> Self {
        for entry in self.sources.values_mut().flat_map(|state| state.entries.edit().values_mut()) {
            change(Arc::make_mut(&mut entry.workload));
            for former in &mut entry.former {
                change(Arc::make_mut(&mut former.workload));
            }
        }
        self
    }
}
