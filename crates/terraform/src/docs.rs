//! The pages of the registry, from the schemas: `index.md`, `resources/`, `data-sources/` and `functions/`.

use std::fmt::Write as _;

use crate::protocol::{Attribute, Mode, Provider, Schema};

const USE: &str = r#"terraform {
  required_providers {
    netstead = {
      source = "netstead/netstead"
    }
  }
}

provider "netstead" {
  endpoint   = "https://ipam.example.net:5301"
  token_file = "~/.netstead-token"
}
"#;

/// Path and text of every page.
pub fn pages<S: Sync>(provider: &Provider<S>) -> Vec<(String, String)> {
    let mut pages = vec![("index.md".to_owned(), index(provider))];
    for resource in &provider.resources {
        let name = resource.name();
        let mut page = head(name, "Resource", resource.schema().description, resource.example());
        page.push_str(&attributes(&resource.schema()));
        let _ = write!(
            page,
            "\n## Import\n\nThe id has the form `{}`.\n\n```shell\nterraform import {name}.example ID\n```\n\nWith Terraform 1.12 or \
             later an `import` block can also name the identity: {}.\n",
            resource.import_form(),
            words(resource.identity()),
        );
        pages.push((format!("resources/{}.md", short(name)), page));
    }
    for source in &provider.data_sources {
        let mut page = head(source.name(), "Data Source", source.schema().description, source.example());
        page.push_str(&attributes(&source.schema()));
        pages.push((format!("data-sources/{}.md", short(source.name())), page));
    }
    for function in &provider.functions {
        let mut page = head(function.name, "Function", function.description, function.example);
        let _ = write!(page, "## Arguments\n\n");
        for (name, kind, description) in &function.parameters {
            let _ = writeln!(page, "- `{name}` ({}) {description}.", kind.words());
        }
        let _ = write!(page, "\nReturns: {}.\n", function.returns.words());
        pages.push((format!("functions/{}.md", function.name), page));
    }
    pages
}

/// The registry names a page without the name of the provider.
fn short(name: &str) -> &str {
    name.strip_prefix("netstead_").unwrap_or(name)
}

fn words(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
}

fn head(name: &str, kind: &str, description: &str, example: &str) -> String {
    format!(
        "---\npage_title: \"{name} ({kind})\"\ndescription: |-\n  {description}\n---\n\n\
         <!-- Written from the schema by `UPDATE_DOCS=1 cargo test -p netstead-terraform`. -->\n\n\
         # {name} ({kind})\n\n{description}\n\n## Example\n\n```terraform\n{example}```\n\n"
    )
}

fn index<S: Sync>(provider: &Provider<S>) -> String {
    let mut page = head("netstead", "Provider", provider.schema.description, USE);
    page.push_str(&attributes(&provider.schema));
    page
}

/// A heading, and the attributes below it.
type Group = (&'static str, fn(&Attribute) -> bool);

fn attributes(schema: &Schema) -> String {
    let mut text = "## Schema\n".to_owned();
    let groups: [Group; 3] = [
        ("Required", |one| one.mode == Mode::Required),
        ("Optional", |one| matches!(one.mode, Mode::Optional | Mode::OptionalComputed)),
        ("Read-Only", |one| one.mode == Mode::Computed),
    ];
    for (title, of_it) in groups {
        let mut all: Vec<&Attribute> = schema.attributes.iter().filter(|one| of_it(one)).collect();
        if all.is_empty() {
            continue;
        }
        all.sort_by_key(|one| one.name);
        let _ = write!(text, "\n### {title}\n\n");
        for attribute in all {
            let sensitive = if attribute.sensitive { ", Sensitive" } else { "" };
            let replaces = if attribute.replaces { " A change makes a new resource." } else { "" };
            let kind = attribute.kind.words();
            let _ = writeln!(
                text,
                "- `{}` ({kind}{sensitive}) {}{replaces}",
                attribute.name, attribute.description
            );
        }
    }
    text
}
