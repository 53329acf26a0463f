//! Network addresses, mail addresses and subscribers of mobile networks.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::text::{digits, number, uniform};
use super::{Table, Verdict};
use crate::parts::Parts;

pub(super) const TABLE: Table = &[
    ("ipv4", |v| match parse::<Ipv4Addr>(v).filter(|ip| ipv4_of_a_host(*ip)) {
        None => Verdict::Fail,
        Some(ip) => Verdict::doubt_unless(!is_numbering(ip), "may be a version or a section"),
    }),
    ("ipv6", |v| match parse::<Ipv6Addr>(v).filter(|ip| ipv6_of_a_host(*ip)) {
        None => Verdict::Fail,
        Some(ip) => {
            Verdict::doubt_unless(ip.segments().iter().any(|&part| part > 0xff), "small numbers only")
        }
    }),
    ("mac", |v| Verdict::pass_if(mac(v))),
    ("email", email),
    ("imsi", |v| Verdict::pass_if(imsi(v))),
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

/// Whether the parts are as small as those of versions, sections and object identifiers.
fn is_numbering(ip: Ipv4Addr) -> bool {
    const SMALL: u8 = 32;
    ip.octets()[0] != 10 && ip.octets().iter().all(|&part| part < SMALL)
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
    let (mut nibbles, mut len) = ([0; 12], 0);
    for nibble in value.iter().filter_map(|&byte| char::from(byte).to_digit(16)) {
        let Some(place) = nibbles.get_mut(len) else { return false };
        (*place, len) = (nibble as u8, len + 1);
    }
    let counting = nibbles.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 16);
    let paired = nibbles.chunks_exact(2).all(|pair| pair[0] == pair[1]);
    len == nibbles.len() && !uniform(&nibbles) && !counting && !paired && nibbles[2..] != [0; 10]
}

/// A subscriber: a country code of mobile networks (2 to 7), then network and subscriber.
fn imsi(value: &[u8]) -> bool {
    digits(value).is_some_and(|d| {
        matches!(d.len(), 14 | 15) && (202..=750).contains(&number(&d[..3])) && !uniform(&d[5..])
    })
}

/// Longest parts of a mail address, in bytes (RFC 5321).
const LOCAL_PART_MAX: usize = 64;
const DOMAIN_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// Ends of names that follow an `@` without being a domain: retina images, packages, reserved names.
static NOT_TOP_LEVEL: Parts = Parts::in_any_case(&[
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
]);

/// Domains reserved for documents.
const RESERVED_DOMAINS: &[&str] = &["example.com", "example.org", "example.net", "domain.com", "email.com"];

fn email(value: &[u8]) -> Verdict {
    let at = memchr::memrchr(b'@', value).filter(|_| std::str::from_utf8(value).is_ok());
    let Some(at) = at else { return Verdict::Fail };
    let (local, domain) = (&value[..at], &value[at + 1..]);
    let local_ok = (1..=LOCAL_PART_MAX).contains(&local.len())
        && local.split(|&byte| byte == b'.').all(|part| !part.is_empty())
        // `git@host` is a way to clone, not a mailbox.
        && !local.eq_ignore_ascii_case(b"git");
    let label = |label: &[u8]| {
        (1..=LABEL_MAX).contains(&label.len()) && !label.starts_with(b"-") && !label.ends_with(b"-")
    };
    let top = memchr::memrchr(b'.', domain).map_or(&[][..], |dot| &domain[dot + 1..]);
    let top_ok = (2..=24).contains(&top.len()) && top.iter().all(u8::is_ascii_alphabetic);
    let address = local_ok
        && domain.len() <= DOMAIN_MAX
        && domain.split(|&byte| byte == b'.').all(label)
        && top_ok
        && !NOT_TOP_LEVEL.has(top);
    if !address {
        return Verdict::Fail;
    }
    let reserved = RESERVED_DOMAINS.iter().any(|known| {
        let rest = domain.len().checked_sub(known.len()).map(|len| domain.split_at(len));
        rest.is_some_and(|(rest, end)| {
            end.eq_ignore_ascii_case(known.as_bytes()) && (rest.is_empty() || rest.ends_with(b"."))
        })
    });
    Verdict::doubt_unless(!reserved, "domain set aside for documents")
}
