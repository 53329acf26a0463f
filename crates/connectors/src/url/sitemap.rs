//! Sitemaps: lists of a site's addresses, and lists of such lists.

use super::html::decode;

/// Bytes of a sitemap, unpacked; the protocol allows 50 MB.
pub(super) const SITEMAP_BYTES_MAX: u64 = 64 << 20;

/// Addresses of one sitemap; the protocol has no more.
pub(super) const LOCATIONS_MAX: usize = 50_000;

/// What a sitemap has, at most one location beyond [`LOCATIONS_MAX`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Sitemap {
    Addresses(Vec<String>),
    /// Addresses of further sitemaps.
    Index(Vec<String>),
}

/// Reads the XML form, or a text file with an address on each line. `None` for what is neither.
pub(super) fn parse(text: &str) -> Option<Sitemap> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('<') {
        return text
            .starts_with("http")
            .then(|| Sitemap::Addresses(lines(text).map(str::to_owned).take(LOCATIONS_MAX + 1).collect()));
    }
    let root = root(text)?;
    let (prefix, name) = root.rsplit_once(':').unwrap_or(("", root));
    // Pictures and videos have locations too, with other prefixes.
    let tag = if prefix.is_empty() { "<loc>".to_owned() } else { format!("<{prefix}:loc>") };
    let parts = text.split(tag.as_str()).skip(1).filter_map(|part| part.split("</").next());
    let found = parts.map(|part| decode(plain(part.trim()))).take(LOCATIONS_MAX + 1);
    match name {
        "urlset" => Some(Sitemap::Addresses(found.collect())),
        "sitemapindex" => Some(Sitemap::Index(found.collect())),
        _ => None,
    }
}

/// The lines of a list that count.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.trim_start_matches('\u{feff}').lines();
    lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The name of the first element.
fn root(text: &str) -> Option<&str> {
    let mut tags = text.split('<').skip(1);
    let tag = tags.find(|tag| tag.starts_with(|first: char| first.is_ascii_alphabetic()))?;
    tag.split(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/')).next()
}

fn plain(text: &str) -> &str {
    text.strip_prefix("<![CDATA[").map_or(text, |text| text.trim_end_matches("]]>").trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_read_and_others_are_refused() {
        let addresses =
            |found: &[&str]| Some(Sitemap::Addresses(found.iter().map(|&a| a.to_owned()).collect()));
        for (text, expected) in [
            (
                "<?xml version='1.0'?><!-- a map --><urlset xmlns='x'><url><loc> http://a/?x=1&amp;y </loc>\
                 <image:image><image:loc>http://a/p.png</image:loc></image:image></url>\
                 <url><loc><![CDATA[http://a/b]]></loc></url></urlset>",
                addresses(&["http://a/?x=1&y", "http://a/b"]),
            ),
            (
                "\u{feff}<s:urlset xmlns:s='x'><s:url><s:loc>http://a/</s:loc></s:url>",
                addresses(&["http://a/"]),
            ),
            ("http://a/1\n\n# no\nhttp://a/2\r\n", addresses(&["http://a/1", "http://a/2"])),
            (
                "<sitemapindex><sitemap><loc>http://a/s.xml</loc></sitemap></sitemapindex>",
                Some(Sitemap::Index(vec!["http://a/s.xml".to_owned()])),
            ),
            ("<urlset></urlset>", addresses(&[])),
            ("<html><loc>http://a/</loc>", None),
            ("not found", None),
            ("<", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
