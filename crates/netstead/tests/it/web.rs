//! The web page, over plain HTTP and in a real Chromium.

mod accessible;
mod in_a_browser;
mod over_http;
mod screenshots;
mod site;
