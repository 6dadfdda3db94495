//! Small steps with what was read.

use netstead_ledger::Seen;

/// `map` and `transpose`, as an `Option` has them.
pub(crate) trait MapValueExt<T>: Sized {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> Seen<U>;
}

impl<T> MapValueExt<T> for Seen<T> {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> Seen<U> {
        Seen { value: change(self.value), seq: self.seq, age: self.age }
    }
}

pub(crate) trait TransposeValueExt<T, E> {
    fn transpose(self) -> Result<Seen<T>, E>;
}

impl<T, E> TransposeValueExt<T, E> for Seen<Result<T, E>> {
    fn transpose(self) -> Result<Seen<T>, E> {
        let (seq, age) = (self.seq, self.age);
        self.value.map(|value| Seen { value, seq, age })
    }
}
