//! [`Schema`]: the attributes of a resource, a data source or the provider.

use super::{
    diagnostic::{Diagnostic, Step},
    kind::Kind,
    messages,
    value::{Fields as _, Object, Value},
};

#[derive(Debug, Clone)]
pub struct Schema {
    /// Grows when stored state must be converted.
    pub version: i64,
    pub description: &'static str,
    pub attributes: Vec<Attribute>,
}

/// How an attribute gets its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Required,
    Optional,
    /// The user may set it; else the provider does.
    OptionalComputed,
    Computed,
}

#[derive(Debug, Clone)]
pub struct Attribute {
    pub name: &'static str,
    pub kind: Kind,
    pub mode: Mode,
    pub description: &'static str,
    pub sensitive: bool,
    /// A change needs a new resource.
    pub replaces: bool,
    /// A computed value that any change of the resource may change.
    pub follows: bool,
    /// The planned value where the user says nothing.
    pub default: Option<Value>,
    /// Refuses a value before anything is sent.
    pub check: Option<Check>,
}

/// Says what is wrong with a text.
pub type Check = fn(&str) -> Result<(), String>;

impl Attribute {
    fn new(name: &'static str, kind: Kind, mode: Mode, description: &'static str) -> Self {
        let (sensitive, replaces, follows, default, check) = (false, false, false, None, None);
        Self { name, kind, mode, description, sensitive, replaces, follows, default, check }
    }

    pub fn required(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self::new(name, kind, Mode::Required, description)
    }

    pub fn optional(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self::new(name, kind, Mode::Optional, description)
    }

    pub fn computed(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self::new(name, kind, Mode::Computed, description)
    }

    /// Optional, and computed where the user says nothing.
    pub fn either(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self::new(name, kind, Mode::OptionalComputed, description)
    }

    #[must_use]
    pub fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    #[must_use]
    pub fn replaces(mut self) -> Self {
        self.replaces = true;
        self
    }

    #[must_use]
    pub fn follows(mut self) -> Self {
        self.follows = true;
        self
    }

    #[must_use]
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    pub fn is_computed(&self) -> bool {
        matches!(self.mode, Mode::Computed | Mode::OptionalComputed)
    }
}

impl Schema {
    pub fn new(description: &'static str, attributes: Vec<Attribute>) -> Self {
        Self { version: 0, description, attributes }
    }

    /// The type of the whole.
    pub fn kind(&self) -> Kind {
        Kind::Object(self.attributes.iter().map(|one| (one.name, one.kind.clone())).collect())
    }

    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|one| one.name == name)
    }

    /// Values that are wrong whatever the server says.
    pub fn problems(&self, config: &Object) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for attribute in &self.attributes {
            let Some(check) = attribute.check else { continue };
            let refuse = |text: &Value, steps: Vec<Step>| {
                let reason = check(text.as_text()?).err()?;
                let said =
                    Diagnostic::error(format!("`{}` is not usable", attribute.name), sentence(&reason));
                Some(steps.into_iter().fold(said.at(attribute.name), Diagnostic::step))
            };
            match config.value(attribute.name) {
                Value::List(items) => {
                    // An element of a set has no place.
                    let place = |index| match attribute.kind {
                        Kind::Set(_) => Vec::new(),
                        _ => vec![Step::Index(index)],
                    };
                    found.extend(
                        items.iter().enumerate().filter_map(|(index, item)| refuse(item, place(index))),
                    );
                }
                value => found.extend(refuse(value, Vec::new())),
            }
        }
        found
    }
}

/// A message as a sentence of its own.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    // A message that begins with a quoted or lower-case name keeps it.
    let begin = if text.starts_with('`') { text.chars().take(1).collect() } else { first };
    format!("{begin}{}{end}", letters.as_str())
}

impl From<&Schema> for messages::Schema {
    fn from(schema: &Schema) -> Self {
        let attributes = schema.attributes.iter().map(messages::Attribute::from).collect();
        let block = messages::Block {
            version: schema.version,
            attributes,
            description: schema.description.to_owned(),
            description_kind: 1,
        };
        Self { version: schema.version, block: Some(block) }
    }
}

impl From<&Attribute> for messages::Attribute {
    fn from(attribute: &Attribute) -> Self {
        Self {
            name: attribute.name.to_owned(),
            kind: attribute.kind.json().to_string().into_bytes(),
            description: attribute.description.to_owned(),
            required: attribute.mode == Mode::Required,
            optional: matches!(attribute.mode, Mode::Optional | Mode::OptionalComputed),
            computed: attribute.is_computed(),
            sensitive: attribute.sensitive,
            description_kind: 1,
        }
    }
}
