//! Types that take only right values, and errors that help.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod addresses;
mod clocks;
mod errors;
mod name_sets;
mod names_and_keys;
mod no_panic;
mod ranges;
mod records;
mod strategies;
