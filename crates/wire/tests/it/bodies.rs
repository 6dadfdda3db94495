use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
};

use futures::stream;
use http_body_util::{Full, StreamBody};
use hyper::body::{Bytes, Frame};
use netstead_wire::{BodyError, read_body};

#[tokio::test]
async fn a_body_of_the_limit_is_read_and_one_byte_more_is_not() {
    let body = |length: usize| Full::new(Bytes::from(vec![b'x'; length]));
    assert_eq!(read_body(body(64), 64).await.unwrap(), [b'x'; 64]);
    let error = read_body(body(65), 64).await.unwrap_err();
    assert_eq!(error.to_string(), "its answer has more than 64 bytes, the most that is read");
}

#[tokio::test]
async fn a_body_that_never_says_how_long_it_is_ends_at_the_limit() {
    let sent = AtomicUsize::new(0);
    let flood = stream::repeat_with(|| {
        sent.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b'x'; 1000])))
    });
    let read = read_body(StreamBody::new(flood), 10_000).await;
    assert!(matches!(read, Err(BodyError::TooLarge { limit: 10_000 })), "{read:?}");
    assert_eq!(sent.into_inner(), 11);
}
