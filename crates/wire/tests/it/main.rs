//! One binary of tests: linking is what costs time.

mod bodies;
mod connections;
mod files;
