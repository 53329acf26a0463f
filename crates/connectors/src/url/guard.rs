//! Which network addresses may be reached: by default those of the public network only, so that no page,
//! redirect or name can make this machine read what is behind its own firewall.
//!
//! Names are looked up here, and what may not be reached is taken out of the answer: the connection goes to
//! an address that was judged, not to what a second look-up gives. Addresses in place of names pass no
//! look-up and are judged before the request. What is not known to be public is refused, unless it is allowed
//! ([`AllowPrivate`]). Where clouds tell machines their credentials nothing is ever read: whoever can have a page read
//! that redirects there would be told them.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::private::AllowPrivate;

/// Where clouds answer machines that ask who they are: AWS (machines, containers, clusters), Azure (its own host, and the
/// common address), Google, Oracle, Alibaba.
const METADATA_V4: [Ipv4Addr; 6] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(100, 100, 100, 200),
];
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];
/// Their names, for where a proxy looks names up.
const METADATA_NAMES: [&str; 3] = ["metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"];

/// What was refused, and whether it may be allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refused {
    host: String,
    is_metadata: bool,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { host, is_metadata } = self;
        match is_metadata {
            true => {
                write!(f, "{host} is where a cloud tells its machines their credentials, which is never read")
            }
            false => write!(
                f,
                "{host} is not on the public network; --allow-private (`allow_private`) allows private networks and \
                 this machine, and --allow-private=RANGE anything else"
            ),
        }
    }
}

impl Error for Refused {}

/// Refuses an address that has a number in place of a name, in whatever form it was written, and it may not be reached.
pub(super) fn check(url: &Url, allowed: &AllowPrivate) -> Result<(), Refused> {
    let host = url.host_str().unwrap_or_default();
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let refused = |is_metadata| Err(Refused { host: host.to_owned(), is_metadata });
    match literal.parse::<IpAddr>() {
        Ok(ip) if is_metadata(ip) => refused(true),
        Ok(ip) if !may_be_reached(ip, allowed) => refused(false),
        Err(_) if METADATA_NAMES.contains(&host.trim_end_matches('.')) => refused(true),
        _ => Ok(()),
    }
}

fn may_be_reached(ip: IpAddr, allowed: &AllowPrivate) -> bool {
    !is_metadata(ip)
        && (is_public(ip) || allowed.allows(ip) || inner(ip).is_some_and(|ip| allowed.allows(ip)))
}

fn is_metadata(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => METADATA_V4.contains(&ip),
        IpAddr::V6(v6) => METADATA_V6.contains(&v6) || inner(ip).is_some_and(is_metadata),
    }
}

/// The address of IPv4 that one of IPv6 leads to.
fn inner(ip: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(ip) = ip else { return None };
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let (high, low) = match (a, b) {
        // Mapped, in the old form without a mark, and translated.
        (0, 0) if [c, d, e] == [0; 3] && matches!(f, 0 | 0xffff) && g != 0 => (g, h),
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => (g, h),
        // 6to4.
        (0x2002, _) => (b, c),
        _ => return None,
    };
    let ([x, y], [z, w]) = (high.to_be_bytes(), low.to_be_bytes());
    Some(Ipv4Addr::new(x, y, z, w).into())
}

/// Whether the error, or what caused it, is that an address was refused.
pub(super) fn refused_by<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Refused> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref() {
            return Some(refused);
        }
        cause = error.source();
    }
    None
}

/// Looks names up, and gives only addresses that may be reached.
pub(super) struct Guard(pub AllowPrivate);

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let is_metadata = found.iter().any(|found| is_metadata(found.ip()));
            let any = !found.is_empty();
            let reached: Vec<SocketAddr> =
                found.into_iter().filter(|found| may_be_reached(found.ip(), &allowed)).collect();
            if any && reached.is_empty() {
                return Err(Refused { host: name.as_str().to_owned(), is_metadata }.into());
            }
            Ok(Box::new(reached.into_iter()) as Addrs)
        })
    }
}

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

/// Everything but what the registry of special addresses has for other uses.
fn is_public_v4(ip: Ipv4Addr) -> bool {
    !matches!(
        ip.octets(),
        // This host, private, shared by a carrier, loopback, link-local (cloud metadata too), private.
        [0 | 10 | 127, ..] | [100, 64..=127, ..] | [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..]
        // Protocols, documentation, relays, measuring.
        | [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _]
        // Multicast and reserved, broadcast too.
        | [224..=255, ..]
    )
}

/// The global part, without its special uses; an address with one of IPv4 in it is as public as that.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = ip.segments();
    let v4 = |high: u16, low: u16| {
        let [x, y] = high.to_be_bytes();
        let [z, w] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(x, y, z, w))
    };
    match (a, b) {
        // Mapped from IPv4, and translated to it. The rest of ::/96 has loopback and nothing public.
        (0, 0) if [c, d, e, f] == [0, 0, 0, 0xffff] => v4(g, h),
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => v4(g, h),
        // 6to4.
        (0x2002, _) => v4(b, c),
        // Protocols (Teredo too), documentation.
        (0x2001, 0..=0x1ff | 0xdb8) | (0x3fff, 0..=0xfff) => false,
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(address: &str, allowed: &AllowPrivate) -> Option<String> {
        let url = Url::parse(&format!("http://{address}/")).unwrap();
        check(&url, allowed).err().map(|refused| refused.to_string())
    }

    #[test]
    fn what_tells_credentials_is_never_reached() {
        let ranges = ["0.0.0.0/0", "::/0"].map(|range| range.parse().unwrap()).to_vec();
        for allowed in [AllowPrivate::Nothing, AllowPrivate::Private, AllowPrivate::Ranges(ranges)] {
            for address in [
                "169.254.169.254",
                "169.254.170.2",
                "169.254.170.23",
                "100.100.100.200",
                "168.63.129.16",
                "192.0.0.192",
                "2852039166",
                "[fd00:ec2::254]",
                "[::ffff:169.254.169.254]",
                "[::169.254.169.254]",
                "[64:ff9b::169.254.169.254]",
                "[2002:a9fe:a9fe::]",
                "metadata.google.internal",
            ] {
                let refused = refusal(address, &allowed).unwrap_or_else(|| panic!("{address} is reached"));
                assert!(refused.contains("never"), "{refused}");
            }
        }
        let private = |address| refusal(address, &AllowPrivate::Private);
        for address in ["127.0.0.1", "10.1.2.3", "[::1]", "[fd12:3456::1]", "[::ffff:10.0.0.1]", "8.8.8.8"] {
            assert_eq!(private(address), None, "{address}");
        }
        for address in ["169.254.0.7", "[fe80::1]", "0.0.0.0", "100.64.0.1"] {
            assert!(
                private(address).is_some_and(|refused| refused.contains("--allow-private=")),
                "{address}"
            );
        }
    }

    #[test]
    fn what_is_not_public_is_refused_in_every_form() {
        for address in [
            "127.0.0.1",
            "127.255.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.169.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "[::1]",
            "[::]",
            "[::127.0.0.1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:a9fe:a901]",
            "[64:ff9b::10.0.0.1]",
            "[64:ff9b:1::8.8.8.8]",
            "[2002:7f00:1::]",
            "[2001::1]",
            "[2001:db8::1]",
            "[100::1]",
            "[fc00::1]",
            "[fd12:3456::1]",
            "[fe80::1]",
            "[fec0::1]",
            "[ff02::1]",
        ] {
            let refused = refusal(address, &AllowPrivate::Nothing).unwrap();
            assert!(refused.contains("--allow-private"), "{refused}");
        }
    }

    #[test]
    fn what_is_public_is_not() {
        for address in [
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "223.255.255.255",
            "[2606:4700::1111]",
            "[2001:4860::8888]",
            "[::ffff:8.8.8.8]",
            "[64:ff9b::8.8.8.8]",
            "[2002:808:808::1]",
            "example.com",
        ] {
            assert_eq!(refusal(address, &AllowPrivate::Nothing), None, "{address}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_inside_is_refused() {
        let resolve = |allowed| Guard(allowed).resolve("localhost".parse().unwrap());
        let error = resolve(AllowPrivate::Nothing).await.map(drop).unwrap_err();
        assert!(refused_by(error.as_ref()).is_some(), "{error}");
        assert!(resolve(AllowPrivate::Private).await.is_ok());
    }
}
