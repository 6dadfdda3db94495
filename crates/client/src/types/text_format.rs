//! Formats of texts in lists, for the `OpenAPI` document. A single text has its `format` at the field.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr,
        schema::{Schema, SchemaFormat, Type},
    },
};

macro_rules! text_formats {
    ($($(#[$meta:meta])* $name:ident = $format:literal,)+) => {$(
        $(#[$meta])*
        pub(super) enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let format = SchemaFormat::Custom($format.to_owned());
                ObjectBuilder::new().schema_type(Type::String).format(Some(format)).build().into()
            }
        }

        impl ToSchema for $name {}
    )+};
}

text_formats! {
    /// An IPv4, IPv6 or MAC address, or a prefix with its length.
    Address = "address",
    /// `a-b`, a CIDR or one address.
    Range = "range",
    /// A DNS name, without the dot at its end.
    DnsName = "dns-name",
    /// Name of a pool, a VRF, a source or a provider.
    Identifier = "identifier",
}
