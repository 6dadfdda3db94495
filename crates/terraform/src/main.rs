//! The binary that Terraform starts.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use netstead_terraform::{
    protocol::{Handshake, Plugin, serve},
    provider,
};

#[tokio::main]
async fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("--version") {
        println!("terraform-provider-netstead {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    let served = match Handshake::from_environment() {
        Ok(handshake) => serve(Plugin::new(provider()), handshake).await,
        Err(error) => Err(error),
    };
    let Err(error) = served else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    let mut cause = std::error::Error::source(&error);
    while let Some(reason) = cause {
        eprintln!("  because: {reason}");
        cause = reason.source();
    }
    eprintln!("hint: docs/guide/terraform.md shows how Terraform finds and starts it");
    ExitCode::FAILURE
}
