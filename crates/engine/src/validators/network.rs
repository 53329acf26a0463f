//! Network addresses, mail addresses and telephone numbers.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::text::{digits, number, sequential, uniform};
use super::{Table, Verdict};

pub(super) const TABLE: Table = &[
    ("ipv4", |v| Verdict::pass_if(parse::<Ipv4Addr>(v).is_some_and(ipv4_of_a_host))),
    ("ipv6", |v| Verdict::pass_if(parse::<Ipv6Addr>(v).is_some_and(ipv6_of_a_host))),
    ("mac", |v| Verdict::pass_if(mac(v))),
    ("email", |v| Verdict::pass_if(email(v))),
    ("phone_international", |v| Verdict::pass_if(phone_international(v))),
    ("phone_us", |v| Verdict::pass_if(phone_us(v))),
    ("phone_local", |v| Verdict::pass_if(phone_local(v))),
];

fn parse<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Not the loopback, nor a mask, nor reserved for documents. Private ranges stay: they tell of a network.
fn ipv4_of_a_host(ip: Ipv4Addr) -> bool {
    let [first, _, _, _] = ip.octets();
    let special = ip.is_loopback() || ip.is_documentation() || ip.is_multicast() || ip.is_link_local();
    first != 0 && first < 240 && !special
}

fn ipv6_of_a_host(ip: Ipv6Addr) -> bool {
    let [first, second, ..] = ip.segments();
    let documentation = first == 0x2001 && second == 0x0db8 || first == 0x3fff;
    let used = ip.segments().iter().filter(|&&segment| segment != 0).count();
    // Fewer than three groups in use is a prefix (`fe80::`) or something else with colons in it.
    used >= 3 && !documentation && !ip.is_multicast()
}

/// Twelve hexadecimal digits that are neither broadcast nor empty nor a counting example.
fn mac(value: &[u8]) -> bool {
    let hex: Vec<u8> = value.iter().copied().filter(u8::is_ascii_hexdigit).collect();
    let nibbles: Vec<u8> = hex.iter().filter_map(|&b| char::from(b).to_digit(16)).map(|n| n as u8).collect();
    let counting = nibbles.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 16);
    let paired = hex.chunks_exact(2).all(|pair| pair[0] == pair[1]);
    hex.len() == 12 && !uniform(&nibbles) && !counting && !paired && nibbles[2..] != [0; 10]
}

/// Longest parts of a mail address, in bytes (RFC 5321).
const LOCAL_PART_MAX: usize = 64;
const DOMAIN_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// Ends of names that follow an `@` without being a domain: retina images, packages, reserved names.
const NOT_TOP_LEVEL: &[&str] = &[
    "png",
    "jpg",
    "jpeg",
    "gif",
    "svg",
    "webp",
    "css",
    "scss",
    "js",
    "mjs",
    "ts",
    "tsx",
    "jsx",
    "json",
    "html",
    "htm",
    "xml",
    "yaml",
    "yml",
    "tgz",
    "gz",
    "zip",
    "service",
    "socket",
    "timer",
    "mount",
    "target",
    "local",
    "localdomain",
    "localhost",
    "example",
    "invalid",
    "test",
    "internal",
    "lan",
];

/// Domains reserved for documents.
const RESERVED_DOMAINS: &[&str] = &["example.com", "example.org", "example.net", "domain.com", "email.com"];

fn email(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return false };
    let lower = text.to_ascii_lowercase();
    let Some((local, domain)) = lower.rsplit_once('@') else { return false };
    let local_ok = (1..=LOCAL_PART_MAX).contains(&local.len())
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..")
        // `git@host` is a way to clone, not a mailbox.
        && local != "git";
    let label = |label: &str| {
        (1..=LABEL_MAX).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    let top = domain.rsplit('.').next().unwrap_or_default();
    let top_ok = (2..=24).contains(&top.len()) && top.bytes().all(|b| b.is_ascii_lowercase());
    let reserved = RESERVED_DOMAINS
        .iter()
        .any(|known| domain.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    local_ok
        && domain.len() <= DOMAIN_MAX
        && domain.contains('.')
        && domain.split('.').all(label)
        && top_ok
        && !NOT_TOP_LEVEL.contains(&top)
        && !reserved
}

/// Country calling codes of one and two digits; the rest of the numbering plan has three.
const SHORT_CODES: &[u64] = &[
    1, 7, 20, 27, 30, 31, 32, 33, 34, 36, 39, 40, 41, 43, 44, 45, 46, 47, 48, 49, 51, 52, 53, 54, 55, 56, 57,
    58, 60, 61, 62, 63, 64, 65, 66, 81, 82, 84, 86, 90, 91, 92, 93, 94, 95, 98,
];

/// Three-digit codes by their first two digits; the third may be any digit but those never assigned.
const LONG_CODES: &[u64] =
    &[21, 22, 23, 24, 25, 26, 29, 35, 37, 38, 42, 50, 59, 67, 68, 69, 85, 88, 96, 97, 99];

/// The number without the extension that may follow it (`x12`, `ext. 12`).
fn without_extension(value: &[u8]) -> &[u8] {
    let at = value.iter().position(|b| matches!(b.to_ascii_lowercase(), b'x' | b'e'));
    value[..at.unwrap_or(value.len())].trim_ascii_end()
}

/// Digits without the `(0)` that some write after the country code, and without parentheses.
fn phone_digits(value: &[u8]) -> Option<super::text::Symbols> {
    let value = without_extension(value);
    let at = value.windows(3).position(|w| w == b"(0)");
    let bytes = value.iter().enumerate().filter(|(i, _)| !at.is_some_and(|at| (at..at + 3).contains(i)));
    let plain: Vec<u8> = bytes.map(|(_, &b)| b).filter(|b| !b"()+".contains(b)).collect();
    digits(&plain)
}

fn phone_international(value: &[u8]) -> bool {
    let Some(d) = phone_digits(value) else { return false };
    let d = d.strip_prefix(&[0, 0]).unwrap_or(&d);
    if !(8..=15).contains(&d.len()) || uniform(&d[2..]) || sequential(d) {
        return false;
    }
    match number(&d[..2]) {
        10..=19 => nanp(&d[1..]),
        70..=79 => d.len() == 11,
        two => SHORT_CODES.contains(&two) || LONG_CODES.contains(&two) && d.len() >= 10,
    }
}

/// North America: area and exchange begin with 2 to 9, neither is a service code, and 555-01xx is fiction.
fn nanp(d: &[u8]) -> bool {
    let service = |code: &[u8]| code[1..] == [1, 1];
    d.len() == 10
        && d[0] >= 2
        && d[3] >= 2
        && !service(&d[..3])
        && d[1] != 9
        && !service(&d[3..6])
        && d[3..8] != [5, 5, 5, 0, 1]
        && !uniform(&d[3..])
}

fn phone_us(value: &[u8]) -> bool {
    phone_digits(value).is_some_and(|d| nanp(d.strip_prefix(&[1]).unwrap_or(&d)))
}

/// A number written as within one country; only its length and variety can be judged.
fn phone_local(value: &[u8]) -> bool {
    phone_digits(value).is_some_and(|d| (7..=13).contains(&d.len()) && !uniform(&d[1..]) && !sequential(&d))
}
