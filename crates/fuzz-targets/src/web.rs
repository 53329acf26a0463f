//! What a crawl reads of a site: pages, sitemaps, its rules.

use domesday_connectors::url::fuzz;

pub fn html(input: &[u8]) {
    fuzz::links(input);
}

pub fn sitemap(input: &[u8]) {
    fuzz::sitemap(&String::from_utf8_lossy(input));
}

pub fn robots(input: &[u8]) {
    fuzz::robots(&String::from_utf8_lossy(input));
}
