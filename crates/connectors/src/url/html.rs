//! The links of a page. Not a parser of HTML: it finds what a browser would follow or load, in pages however
//! broken, in one pass.

use reqwest::Url;

use super::address;

/// Links of one page that count.
const LINKS_MAX: usize = 10_000;
/// Tags whose `href` or `src` leads to something with text in it. Pictures have none.
const TAGS: [&[u8]; 8] = [b"a", b"area", b"link", b"script", b"iframe", b"frame", b"embed", b"source"];
/// Elements whose content is no HTML.
const RAW: [&[u8]; 2] = [b"script", b"style"];

/// The addresses that a page at `page` links to, in their order; one may come more than once.
pub(super) fn links(html: &[u8], page: &Url) -> Vec<Url> {
    let (mut base, mut links) = (page.clone(), Vec::new());
    let mut rest = html;
    while let Some(at) = memchr(b'<', rest) {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix(b"!--") {
            rest = after(comment, b"-->");
            continue;
        }
        let name_len = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let name = rest[..name_len].to_ascii_lowercase();
        if name.is_empty() {
            continue;
        }
        let (target, end) = attributes(&rest[name_len..]);
        rest = &rest[name_len + end..];
        if RAW.contains(&name.as_slice()) {
            rest = skip_raw(rest, &name);
        }
        let Some(target) = target else { continue };
        if name == b"base" {
            base = base.join(&target).unwrap_or(base);
        } else if TAGS.contains(&name.as_slice()) && links.len() < LINKS_MAX {
            links.extend(base.join(&target).ok().and_then(address::normal));
        }
    }
    links
}

/// The value of the first `href` or `src` of a tag, and where the tag ends.
fn attributes(tag: &[u8]) -> (Option<String>, usize) {
    let (mut target, mut at) = (None, 0);
    while at < tag.len() && tag[at] != b'>' {
        if tag[at].is_ascii_whitespace() || tag[at] == b'/' {
            at += 1;
            continue;
        }
        let name_end = at + tag[at..].iter().take_while(|byte| !b"= \t\r\n\x0c>".contains(byte)).count();
        let name = &tag[at..name_end];
        at = name_end + spaces(&tag[name_end..]);
        if tag.get(at) != Some(&b'=') {
            // A name of no letters, such as a stray quote, must not stand still.
            at = at.max(name_end + usize::from(name.is_empty()));
            continue;
        }
        at += 1 + spaces(&tag[at + 1..]);
        let value = match tag.get(at) {
            Some(&quote @ (b'"' | b'\'')) => {
                let value = &tag[at + 1..];
                let value = &value[..memchr(quote, value).unwrap_or(value.len())];
                at = (at + value.len() + 2).min(tag.len());
                value
            }
            _ => {
                let value = &tag[at..];
                let len = value.iter().take_while(|byte| !b" \t\r\n\x0c>".contains(byte)).count();
                at += len;
                &value[..len]
            }
        };
        let is_link = name.eq_ignore_ascii_case(b"href") || name.eq_ignore_ascii_case(b"src");
        if is_link && target.is_none() && value.len() <= 4 * address::ADDRESS_MAX {
            target = Some(decode(&String::from_utf8_lossy(value)));
        }
    }
    (target, at)
}

fn spaces(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// What comes after an element of raw text.
fn skip_raw<'a>(mut rest: &'a [u8], name: &[u8]) -> &'a [u8] {
    while let Some(at) = memchr(b'<', rest) {
        let tail = &rest[at..];
        let closes = tail.get(1) == Some(&b'/')
            && tail.get(2..2 + name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
        if closes {
            return tail;
        }
        rest = &rest[at + 1..];
    }
    &[]
}

fn after<'a>(bytes: &'a [u8], end: &[u8]) -> &'a [u8] {
    let at = bytes.windows(end.len()).position(|window| window == end);
    at.map_or(&[], |at| &bytes[at + end.len()..])
}

fn memchr(byte: u8, bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|found| *found == byte)
}

/// Text without the character references that addresses have in them.
pub(super) fn decode(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        // The longest of these has ten characters.
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        let found = end.and_then(|end| Some((reference(&rest[1..end])?, end)));
        match found {
            Some((character, end)) => {
                decoded.push(character);
                rest = &rest[end + 1..];
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded + rest
}

fn reference(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(number)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, expected: &[&str]) {
        let page = Url::parse("https://example.com/dir/page").unwrap();
        let found: Vec<String> = links(html.as_bytes(), &page).into_iter().map(String::from).collect();
        let expected: Vec<String> =
            expected.iter().map(|path| format!("https://example.com{path}")).collect();
        assert_eq!(found, expected, "{html}");
    }

    #[test]
    fn links_are_found_in_pages_however_broken() {
        check("<a href='x'>", &["/dir/x"]);
        check("<A class=b HREF = \"/x?a=1&amp;b=2#part\" target=_blank>", &["/x?a=1&b=2"]);
        check("<a href=/x/>y</a><a href=../z>", &["/x/", "/z"]);
        check("<script src=app.js>if (a<b) '<a href=\"no\">'</script><a href=y>", &["/dir/app.js", "/dir/y"]);
        check("<!-- <a href=no> --><a\nhref=\"yes\"\n>", &["/dir/yes"]);
        check("<base href='/other/'><a href=x>", &["/other/x"]);
        check("<img src=no><a href='mailto:a@b'><a href='javascript:x()'><a>", &[]);
        check("<a href=\"&#x2f;a&#47;b&unknown;\">", &["/a/b&unknown;"]);
        check("<a \"'=='' href=x><a href=\"unclosed", &["/dir/x", "/dir/unclosed"]);
        check("< a href=no><a href", &[]);
        check("<a href=x <a href=y>", &["/dir/x"]);
        check("<link rel=next href=p2><iframe src=f>", &["/dir/p2", "/dir/f"]);
        check("<script>", &[]);
        check("<!--", &[]);
    }
}
