//! The pages of the registry, from the schemas: `index.md`, `resources/`, `data-sources/`, `ephemeral-resources/`, `functions/`
//! and `guides/`.

use std::fmt::Write as _;

use crate::protocol::{Attribute, Mode, Provider, Schema};

/// Guides of the repository that are pages of the registry too, with their titles there.
const GUIDES: [(&str, &str, &str); 2] = [
    ("terraform", "Getting started", include_str!("../../../docs/guide/terraform.md")),
    ("from-netaddr", "Coming from netaddr", include_str!("../../../docs/guide/from-netaddr.md")),
];
/// Where the other guides are.
const REPOSITORY: &str = "https://github.com/netstead/netstead/blob/main/docs/guide/";

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
    for ephemeral in &provider.ephemerals {
        let (name, schema) = (ephemeral.name(), ephemeral.schema());
        let mut page = head(name, "Ephemeral Resource", schema.description, ephemeral.example());
        page.push_str("It needs Terraform 1.10 or OpenTofu 1.11, or later.\n\n");
        page.push_str(&attributes(&schema));
        pages.push((format!("ephemeral-resources/{}.md", short(name)), page));
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
    for (name, title, text) in GUIDES {
        pages.push((format!("guides/{name}.md"), guide(title, text)));
    }
    pages
}

/// A guide as a page: its links lead to other pages, or into the repository.
fn guide(title: &str, text: &str) -> String {
    let mut page = format!("---\npage_title: \"{title}\"\n---\n\n");
    for (place, part) in text.split("](").enumerate() {
        if place > 0 {
            page.push_str("](");
            if let Some(rest) = part.strip_prefix("../../crates/terraform/docs/") {
                page.push_str("../");
                page.push_str(rest);
                continue;
            }
            let target = part.split([')', '#']).next().unwrap_or_default();
            let is_page = GUIDES.iter().any(|(name, ..)| target.strip_suffix(".md") == Some(name));
            if !is_page && target.strip_suffix(".md").is_some_and(|name| !name.contains("://")) {
                page.push_str(REPOSITORY);
            }
        }
        page.push_str(part);
    }
    page
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_guide_lead_to_pages_or_into_the_repository() {
        let page = guide(
            "A guide",
            "[a](../../crates/terraform/docs/index.md) [b](from-netaddr.md#x) [c](docker.md#y) [d](#z) [e](https://a.b/c.md)",
        );
        assert_eq!(
            page,
            "---\npage_title: \"A guide\"\n---\n\n[a](../index.md) [b](from-netaddr.md#x) \
             [c](https://github.com/netstead/netstead/blob/main/docs/guide/docker.md#y) [d](#z) [e](https://a.b/c.md)"
        );
    }
}
