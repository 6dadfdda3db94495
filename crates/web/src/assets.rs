//! The style and the script, inside the binary, below paths with a hash of their content.

use std::sync::LazyLock;

use axum::{
    body::Body,
    extract::Path,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// One file.
#[derive(Debug)]
struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const ASSETS: [Asset; 4] = [
    Asset {
        name: "style.css",
        kind: "text/css; charset=utf-8",
        bytes: include_bytes!("../assets/style.css"),
    },
    Asset { name: "pool.css", kind: "text/css; charset=utf-8", bytes: include_bytes!("../assets/pool.css") },
    Asset {
        name: "page.js",
        kind: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../assets/page.js"),
    },
    Asset { name: "icon.svg", kind: "image/svg+xml", bytes: include_bytes!("../assets/icon.svg") },
];

/// Over all files: a new program is asked for new ones.
static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for asset in &ASSETS {
        hash.update(asset.bytes);
    }
    HEXLOWER.encode(&hash.finalize()).chars().take(12).collect()
});

/// The path below which the files are.
pub(crate) fn root(base: &str) -> String {
    format!("{base}/assets/{}", *HASH)
}

pub(crate) async fn get(Path((hash, name)): Path<(String, String)>) -> Response {
    let found = ASSETS.iter().find(|asset| asset.name == name).filter(|_| hash == *HASH);
    let Some(asset) = found else { return StatusCode::NOT_FOUND.into_response() };
    let mut response = Body::from(asset.bytes).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    response
}
