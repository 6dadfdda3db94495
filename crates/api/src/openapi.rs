//! The `OpenAPI` document, which comes from the handlers themselves, and the page that shows it.

use std::collections::BTreeMap;

use netstead_client::types::{Problem, ProviderKind, SourceKind};
use utoipa::{
    IntoResponses, Modify, OpenApi, ToSchema as _,
    openapi::{
        Content, Ref, RefOr, Required, Response, ResponseBuilder, Schema,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use crate::{KindNames, problem::CONTENT_TYPE};

/// Parts that all paths share.
#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "Netstead",
        description = "An address and a name for everything you run.\n\nEvery request needs a token: \
                       `Authorization: Bearer nst_…`. Every error is a problem (RFC 9457). Requests with unknown fields \
                       are refused; answers may grow.\n\n`Netstead-Timeout` is the seconds a request has (default 30, at \
                       most 600); a waiting claim's own wait counts on top. `X-Request-Id` is yours or made here, and \
                       goes into events. `Netstead-Seq` in an answer is the sequence number it was computed at.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    components(schemas(Problem)),
    modifiers(&Security),
    security(("token" = [])),
    tags(
        (name = "pools", description = "What there is to hand out, and by which rules"),
        (name = "claims", description = "Who holds which address"),
        (name = "addresses", description = "What is known of single addresses"),
        (name = "names", description = "Where names come from, where they go, and what is done about it"),
        (name = "events", description = "What happened"),
        (name = "server", description = "The server itself, its tokens and its store"),
    ),
)]
pub(crate) struct Document;

#[derive(Debug)]
struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer =
            HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("nst_<id>_<secret>").build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

/// The operations to which a request without a body is the same as one with `{}`. All others need one.
const BODY_IS_OPTIONAL: [&str; 6] =
    ["put_claim", "renew_claim", "apply", "apply_parked", "resume", "check_store"];

/// Says of each body whether it may be left out.
pub(crate) fn mark_optional_bodies(document: &mut utoipa::openapi::OpenApi) {
    let items = document.paths.paths.values_mut();
    let operations = items.flat_map(|item| [&mut item.put, &mut item.post]).flatten();
    for operation in operations {
        let optional = operation.operation_id.as_deref().is_some_and(|id| BODY_IS_OPTIONAL.contains(&id));
        if let Some(RefOr::T(body)) = &mut operation.request_body {
            body.required = Some(if optional { Required::False } else { Required::True });
        }
    }
}

/// Writes the names of the kinds into their types. The lists of kinds are the only place that has them.
pub(crate) fn name_kinds(document: &mut utoipa::openapi::OpenApi, kinds: &KindNames) {
    let sources = kinds.sources.iter().copied().chain([SourceKind::DETACHED]);
    set_enum(document, &SourceKind::name(), sources.filter(|_| !kinds.sources.is_empty()));
    set_enum(document, &ProviderKind::name(), kinds.providers.iter().copied());
}

fn set_enum(
    document: &mut utoipa::openapi::OpenApi,
    name: &str,
    texts: impl IntoIterator<Item = &'static str>,
) {
    let texts: Vec<_> = texts.into_iter().map(Into::into).collect();
    let schemas = document.components.as_mut().map(|components| &mut components.schemas);
    if let Some(RefOr::T(Schema::Object(schema))) = schemas.and_then(|schemas| schemas.get_mut(name))
        && !texts.is_empty()
    {
        schema.enum_values = Some(texts);
    }
}

fn problems(statuses: &[(u16, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let always = [
        (400, "The request cannot be read; `field` says where"),
        (401, "No token, or one that is not known"),
        (403, "The token may not do this, or the request comes from a foreign page"),
        (421, "The request calls the server by a name that is not its own"),
        (503, "The ledger cannot answer now; nothing was done"),
        (504, "It is unknown whether it was done, or the deadline passed"),
    ];
    let content = || Content::new(Some(Ref::from_schema_name("Problem")));
    let problem =
        |description: &str| ResponseBuilder::new().description(description).content(CONTENT_TYPE, content());
    let all = always.iter().chain(statuses);
    all.map(|(status, description)| (status.to_string(), problem(description).build().into())).collect()
}

macro_rules! problem_sets {
    ($($(#[$meta:meta])* $name:ident: [$($status:literal $description:literal),*];)*) => {$(
        $(#[$meta])*
        #[derive(Debug)]
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                problems(&[$(($status, $description)),*])
            }
        }
    )*};
}

problem_sets! {
    /// Of requests that list.
    Listing: [];
    /// Of requests that look at one thing.
    Looking: [404 "There is no such thing"];
    /// Of requests that look at events.
    Following: [410 "The cursor is of another ledger, or older than what is kept"];
    /// Of requests that change something.
    Changing: [
        404 "There is no such thing",
        409 "It conflicts with something that is there: `type` says what, `facts` by whom",
        410 "The named claim is gone",
        413 "The body is too large",
        415 "The body is not JSON",
        422 "It can be read, but never done; `field` says where"
    ];
    /// Of requests that end something.
    Ending: [
        404 "There is no such thing",
        409 "It conflicts with something that is there: `type` says what, `facts` by whom"
    ];
    /// Of requests that end a pool.
    EndingPools: [
        404 "There is no such pool",
        409 "It conflicts with something that is there: `type` says what, `facts` by whom",
        412 "The pool changed meanwhile",
        422 "It can be read, but never done; `field` says where"
    ];
    /// Of requests that change a pool.
    ChangingPools: [
        404 "There is no such pool",
        409 "It conflicts with something that is there: `type` says what, `facts` by whom",
        412 "The pool changed meanwhile",
        413 "The body is too large",
        415 "The body is not JSON",
        422 "It can be read, but never done; `field` says where"
    ];
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn kinds(names: &KindNames) -> Value {
        let (_, mut document) = crate::routes::documented().split_for_parts();
        name_kinds(&mut document, names);
        let all = serde_json::to_value(document).unwrap();
        let schemas = &all["components"]["schemas"];
        json!([schemas["SourceKind"], schemas["ProviderKind"]])
    }

    #[test]
    fn the_document_has_the_kinds_of_the_lists_that_it_is_given() {
        let names = KindNames { sources: vec!["ledger", "hosts"], providers: vec!["builtin", "jsonfile"] };
        let source = "Type of a source of names; `unknown` if the source is no longer configured.";
        assert_eq!(
            kinds(&names),
            json!([
                {"type": "string", "enum": ["ledger", "hosts", "unknown"], "description": source},
                {"type": "string", "enum": ["builtin", "jsonfile"], "description": "Type of a DNS provider."},
            ])
        );
        assert_eq!(
            kinds(&KindNames::default()),
            json!([
                {"type": "string", "description": source},
                {"type": "string", "description": "Type of a DNS provider."},
            ])
        );
    }
}
