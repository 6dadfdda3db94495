//! Whole stories with real DNS servers, told through the built binary.

pub(crate) mod lab;
mod late;
mod life;
mod marks;
#[cfg(feature = "docker")]
mod moved;
mod screens;
mod shared;
mod sources;
mod trouble;
mod typos;
