//! The web page, over plain HTTP and in a real Chromium.

mod accessible;
mod at_work;
mod behind_proxies;
mod charts;
mod forms;
mod in_a_browser;
mod leader_lost;
mod over_http;
mod screenshots;
mod site;
mod visitor;
