//! The parsers of what a site sends, for the fuzzer: each with what it promises of any input.

use reqwest::Url;

use super::robots::Robots;
use super::{address, html, sitemap};

/// The address of the page that is parsed.
const PAGE: &str = "https://example.com/folder/page?query";

fn page() -> Url {
    Url::parse(PAGE).expect("the address is one")
}

pub fn links(page_text: &[u8]) {
    for link in html::links(page_text, &page()) {
        check(&link);
    }
}

pub fn sitemap(text: &str) {
    let found = match sitemap::parse(text) {
        Some(sitemap::Sitemap::Addresses(found) | sitemap::Sitemap::Index(found)) => found,
        None => sitemap::lines(text).map(str::to_owned).collect(),
    };
    for link in found.iter().filter_map(|given| address::lenient(given)) {
        check(&link);
    }
}

pub fn robots(text: &str) {
    let _ = Robots::parse(text).allows(&page());
}

/// Addresses become keys: they have one form, and no secret of a user.
fn check(link: &Url) {
    assert!(link.username().is_empty() && link.password().is_none(), "an address has no password");
    assert!(link.as_str().len() <= address::ADDRESS_MAX, "an address is not too long");
    assert!(address::normal(link.clone()).as_ref() == Some(link), "an address has one form: {link}");
}
