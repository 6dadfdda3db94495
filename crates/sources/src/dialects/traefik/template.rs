//! Default rules: the part of Go's templates that people use to make a rule of a container's name and labels.

mod functions;
mod lexer;
mod parser;
mod value;

use std::{collections::BTreeMap, fmt, str::FromStr};

use netstead_model::ParseError;

use self::{
    parser::{Node, Term},
    value::Value,
};

/// A rule is never longer.
const LONGEST: usize = 8192;

/// The rule of routers that have none, as Traefik's `defaultRule`: ``Host(`{{ normalize .Name }}.example.com`)``.
#[derive(Clone, PartialEq, Eq)]
pub struct DefaultRule {
    text: String,
    nodes: Vec<Node>,
}

/// The fields that a template can read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    /// Of a compose service `service-project`, else the container's own, normalised.
    pub(super) name: &'a str,
    pub(super) container: &'a str,
    pub(super) labels: &'a BTreeMap<String, String>,
}

impl DefaultRule {
    pub(super) fn fill(&self, subject: Subject<'_>) -> Result<String, String> {
        let mut out = String::new();
        render(&self.nodes, subject, &mut out)?;
        Ok(out)
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn render(nodes: &[Node], subject: Subject<'_>, out: &mut String) -> Result<(), String> {
    for node in nodes {
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Print(term) => out.push_str(&evaluate(term, subject)?.to_text()),
            Node::If { arms, otherwise } => {
                let mut taken = otherwise;
                for (condition, nodes) in arms {
                    if evaluate(condition, subject)?.is_true() {
                        taken = nodes;
                        break;
                    }
                }
                render(taken, subject, out)?;
            }
        }
        if out.len() > LONGEST {
            return Err(format!("it gets longer than {LONGEST} bytes"));
        }
    }
    Ok(())
}

fn evaluate<'a>(term: &Term, subject: Subject<'a>) -> Result<Value<'a>, String> {
    match term {
        Term::Text(text) => Ok(Value::Text(text.clone().into())),
        Term::Number(number) => Ok(Value::Number(*number)),
        Term::Bool(truth) => Ok(Value::Bool(*truth)),
        Term::Field(path) => field(path, subject),
        Term::Call { function, arguments } => {
            let arguments: Vec<Value<'a>> =
                arguments.iter().map(|argument| evaluate(argument, subject)).collect::<Result<_, _>>()?;
            functions::call(function, &arguments)
        }
    }
}

fn field<'a>(path: &[String], subject: Subject<'a>) -> Result<Value<'a>, String> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["Name"] => Ok(Value::Text(subject.name.into())),
        ["ContainerName"] => Ok(Value::Text(subject.container.into())),
        ["Labels"] => Ok(Value::Labels(subject.labels)),
        ["Labels", key] => Ok(Value::Labels(subject.labels).get(key)),
        _ => Err(format!(".{} is not known; there are .Name, .ContainerName and .Labels", path.join("."))),
    }
}

impl FromStr for DefaultRule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |reason: String| ParseError::new("default rule", text, None, reason);
        if text.len() > LONGEST {
            return Err(wrong(format!("it is longer than {LONGEST} bytes")));
        }
        let nodes = parser::parse(text).map_err(wrong)?;
        let rule = Self { text: text.to_owned(), nodes };
        let (name, labels) = ("name", BTreeMap::new());
        // Fields and functions that do not exist are told when the rule is written, not when a container starts.
        rule.fill(Subject { name, container: name, labels: &labels }).map_err(wrong)?;
        Ok(rule)
    }
}

impl fmt::Display for DefaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for DefaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DefaultRule({})", self.text)
    }
}

impl serde::Serialize for DefaultRule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Letters and digits of any script, with one hyphen for everything between.
pub(super) fn normalize(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("-")
}
