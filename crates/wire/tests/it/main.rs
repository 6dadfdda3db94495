//! One binary of tests: linking is what costs time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests are tests")]

mod bodies;
mod connections;
mod files;
mod http;
mod http_server;
mod ssh;
mod tls;
