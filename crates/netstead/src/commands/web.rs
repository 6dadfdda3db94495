//! `netstead web`

use std::process::{Command, Stdio};

use reqwest::Url;

use super::{Context, say};
use crate::{
    cli::{Format, admin::Web},
    node, output,
};

/// Programs that open a URL in the browser of the person, in the order they are tried.
const OPENERS: [&str; 3] = ["xdg-open", "wslview", "open"];

pub(crate) async fn web(context: &Context, args: &Web) -> anyhow::Result<()> {
    let link = context.client.create_login_link().await?;
    let own = context.client.url().as_str().trim_end_matches('/').to_owned();
    let page = link.url.clone().unwrap_or(own);
    let url = format!("{page}/login/{}", link.secret);
    if let Some(format @ (Format::Json | Format::Yaml)) = context.format {
        let document = serde_json::json!({ "url": url, "expires": link.expires });
        return output::document(&document, format);
    }
    output::emit(&format!("{url}\n"))?;
    let far = std::env::var_os("SSH_CONNECTION").is_some();
    if !args.print && !far && opened(&url) {
        say!("opened in your browser; the link works once, within a minute");
        return Ok(());
    }
    say!("open this link within a minute; it works once");
    if let Some(hint) = how_to_reach(&page, link.loopback) {
        say!("{hint}");
    }
    Ok(())
}

/// How a person at another machine opens a page whose URL only this machine can open. The server says whether it listens on
/// `loopback` only.
fn how_to_reach(page: &str, loopback: bool) -> Option<String> {
    if !is_loopback(page) {
        return None;
    }
    if loopback {
        return Some(tunnel(page));
    }
    let host = node::host_of(page).unwrap_or_default();
    Some(format!("at another machine, write an address of this one instead of `{host}`, or set `[web] url`"))
}

/// Only this machine can open it.
fn is_loopback(page: &str) -> bool {
    let Some(host) = node::host_of(page) else { return false };
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// How a person who is at another machine gets there.
fn tunnel(page: &str) -> String {
    let port = Url::parse(page).ok().and_then(|url| url.port_or_known_default()).unwrap_or(5301);
    let machine = node::machine_name();
    format!(
        "the page is on loopback of this machine only: on yours, type `ssh -L {port}:127.0.0.1:{port} {machine}` and then \
         open the link there, or set `[api] listen` and `[web] url`"
    )
}

/// Whether a browser was started. Without a display there is none, and a program in the terminal would be in the way.
fn opened(url: &str) -> bool {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !has_display && !cfg!(target_os = "macos") {
        return false;
    }
    OPENERS.iter().any(|opener| {
        let mut command = Command::new(opener);
        let command = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_on_loopback_is_reached_through_a_tunnel() {
        for page in ["http://127.0.0.1:5301", "http://[::1]:5301", "http://localhost:5301"] {
            assert!(is_loopback(page), "{page}");
        }
        let hint = |page, loopback| how_to_reach(page, loopback).unwrap_or_default();
        assert!(hint("http://127.0.0.1:5301", true).contains("ssh -L 5301:127.0.0.1:5301 "));
        let hint_of_lan = hint("http://127.0.0.1:5301", false);
        assert!(
            !hint_of_lan.contains("ssh") && hint_of_lan.contains("instead of `127.0.0.1`"),
            "{hint_of_lan}"
        );
        assert_eq!(hint("https://ipam.example.net/netstead", true), "", "a proxy shows it");
    }
}
