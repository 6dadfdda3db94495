//! [`Questions`]: the client's side of a stream.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

/// One question, and then silence: etcd takes the end of the questions for the end of the stream.
#[derive(Debug, Clone)]
pub struct Questions<T>(Option<T>);

impl<T> Questions<T> {
    pub fn one(question: T) -> Self {
        Self(Some(question))
    }
}

impl<T: Unpin> tokio_stream::Stream for Questions<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.take().map_or(Poll::Pending, |question| Poll::Ready(Some(question)))
    }
}
