//! The smallest provider: one resource whose address follows from its name, and no store behind it.
//!
//! `cargo xtask bench terraform` measures it beside Netstead's: what it takes is Terraform's own work and that of the protocol.

use std::process::ExitCode;

use async_trait::async_trait;
use netstead_terraform::protocol::{
    Attribute, Change, Diagnostic, Failed, Fields as _, Handshake, Kind, Object, Plugin, Provider, Resource,
    Schema, serve,
};

/// The provider's configuration leads to nothing.
#[derive(Debug)]
struct NoSession;

struct Bare;

fn object(key: &str) -> Object {
    [("key".to_owned(), key.into()), ("address".to_owned(), format!("address of {key}").into())].into()
}

#[async_trait]
impl Resource<NoSession> for Bare {
    fn name(&self) -> &'static str {
        "netstead_bare"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "An address that no store has.",
            vec![
                Attribute::required("key", Kind::Text, "Its name.").replaces(),
                Attribute::computed("address", Kind::Text, "What follows from the name."),
            ],
        )
    }

    fn identity(&self) -> &'static [&'static str] {
        &["key"]
    }

    fn import_form(&self) -> &'static str {
        "KEY"
    }

    fn import(&self, id: &str) -> Option<Object> {
        Some([("key".to_owned(), id.into())].into())
    }

    fn example(&self) -> &'static str {
        ""
    }

    async fn plan(&self, _: Option<&NoSession>, _: Change<'_>) -> Vec<Diagnostic> {
        Vec::new()
    }

    async fn create(&self, _: &NoSession, planned: &Object, _: &Object) -> Result<Object, Failed> {
        Ok(object(planned.text("key").unwrap_or_default()))
    }

    async fn read(&self, _: &NoSession, state: &Object) -> Result<Option<Object>, Failed> {
        Ok(Some(object(state.text("key").unwrap_or_default())))
    }

    async fn update(
        &self,
        _: &NoSession,
        _: &Object,
        planned: &Object,
        _: &Object,
    ) -> Result<Object, Failed> {
        Ok(object(planned.text("key").unwrap_or_default()))
    }

    async fn delete(&self, _: &NoSession, _: &Object) -> Result<(), Failed> {
        Ok(())
    }
}

fn provider() -> Provider<NoSession> {
    Provider {
        schema: Schema::new("A provider without a store.", Vec::new()),
        validate: |_| Vec::new(),
        configure: |_| Ok(NoSession),
        close: |_| Box::pin(async {}),
        resources: vec![Box::new(Bare)],
        data_sources: Vec::new(),
        ephemerals: Vec::new(),
        functions: Vec::new(),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let served = match Handshake::from_environment() {
        Ok(handshake) => serve(Plugin::new(provider()), handshake).await,
        Err(error) => Err(error),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
