//! Bodies of HTTP messages, up to a limit.

use http_body_util::BodyExt as _;
use hyper::body::{Body, Buf as _};

/// The most of an answer with data in it: a zone of about a million names.
pub const MOST_OF_ANSWER: usize = 256 << 20;

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError<E> {
    /// Nothing of it is kept, and the rest is not read: the connection is closed.
    #[error("its answer has more than {} bytes, the most that is read", .limit)]
    TooLarge { limit: usize },
    #[error(transparent)]
    Broken(E),
}

/// Reads a body whose sender decides how long it is: at most `limit` bytes of it.
///
/// How long it may take is the caller's to say.
pub async fn read_body<B>(body: B, limit: usize) -> Result<Vec<u8>, BodyError<B::Error>>
where
    B: Body + Unpin,
{
    let mut body = body;
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge { limit });
    }
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(mut data) = frame.map_err(BodyError::Broken)?.into_data() else { continue };
        if data.remaining() > limit - bytes.len() {
            return Err(BodyError::TooLarge { limit });
        }
        while data.has_remaining() {
            bytes.extend_from_slice(data.chunk());
            data.advance(data.chunk().len());
        }
    }
    Ok(bytes)
}
