//! What is reached beside the public network, as the configuration says it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use domesday_connector::fields::FieldType;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Ranges that can be given.
const RANGES_MAX: usize = 1_000;

/// What is reached beside the public network. The addresses where clouds tell machines their credentials never are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum AllowPrivate {
    #[default]
    Nothing,
    /// Private networks and this machine.
    Private,
    /// These ranges alone.
    Ranges(Vec<IpRange>),
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpRange {
    first: IpAddr,
    bits: u8,
}

impl AllowPrivate {
    pub(super) fn is_nothing(&self) -> bool {
        *self == AllowPrivate::Nothing
    }

    /// Whether this address is reached, which is not public.
    pub(super) fn allows(&self, ip: IpAddr) -> bool {
        match self {
            AllowPrivate::Nothing => false,
            AllowPrivate::Private => is_private(ip),
            AllowPrivate::Ranges(ranges) => ranges.iter().any(|range| range.contains(ip)),
        }
    }
}

/// Private networks (RFC 1918, unique local addresses) and loopback.
fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_private() || ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_loopback(),
    }
}

impl IpRange {
    fn contains(&self, ip: IpAddr) -> bool {
        match (self.first, ip) {
            (IpAddr::V4(first), IpAddr::V4(ip)) => masked_v4(ip, self.bits) == first,
            (IpAddr::V6(first), IpAddr::V6(ip)) => masked_v6(ip, self.bits) == first,
            _ => false,
        }
    }
}

fn masked_v4(ip: Ipv4Addr, bits: u8) -> Ipv4Addr {
    let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
    Ipv4Addr::from_bits(ip.to_bits() & mask)
}

fn masked_v6(ip: Ipv6Addr, bits: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
    Ipv6Addr::from_bits(ip.to_bits() & mask)
}

impl FromStr for IpRange {
    type Err = String;

    fn from_str(text: &str) -> Result<IpRange, String> {
        let wrong =
            || "not a range of addresses: write one such as 10.0.0.0/8, fd00::/8 or 10.1.2.3".to_owned();
        let (first, bits) = match text.trim().split_once('/') {
            Some((first, bits)) => (first, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text.trim(), None),
        };
        let first: IpAddr = first.parse().map_err(|_| wrong())?;
        let all = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(all);
        if bits > all {
            return Err(wrong());
        }
        let first = match first {
            IpAddr::V4(ip) => IpAddr::V4(masked_v4(ip, bits)),
            IpAddr::V6(ip) => IpAddr::V6(masked_v6(ip, bits)),
        };
        Ok(IpRange { first, bits })
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

/// As configurations have it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    All(bool),
    Ranges(Vec<String>),
}

impl Serialize for AllowPrivate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            AllowPrivate::Nothing => Written::All(false),
            AllowPrivate::Private => Written::All(true),
            AllowPrivate::Ranges(ranges) => Written::Ranges(ranges.iter().map(IpRange::to_string).collect()),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AllowPrivate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AllowPrivate, D::Error> {
        let written = Written::deserialize(deserializer);
        Ok(match written.map_err(|_| D::Error::custom("expected true, false or a list of ranges"))? {
            Written::All(false) => AllowPrivate::Nothing,
            Written::All(true) => AllowPrivate::Private,
            Written::Ranges(ranges) if ranges.len() > RANGES_MAX => {
                return Err(D::Error::custom(format!("more than {RANGES_MAX} ranges")));
            }
            Written::Ranges(ranges) => {
                let ranges = ranges.iter().map(|range| range.parse()).collect::<Result<_, String>>();
                AllowPrivate::Ranges(ranges.map_err(D::Error::custom)?)
            }
        })
    }
}

impl FieldType for AllowPrivate {
    fn type_name() -> String {
        "true, false or a list of ranges".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(allowed: &AllowPrivate, ip: &str) -> bool {
        allowed.allows(ip.parse().unwrap())
    }

    #[test]
    fn ranges_are_those_addresses_and_no_others() {
        let allowed: AllowPrivate =
            serde_json::from_str(r#"["10.9.0.0/8", "fd00:1::/32", "192.168.1.7"]"#).unwrap();
        for (ip, expected) in [
            ("10.255.0.1", true),
            ("11.0.0.1", false),
            ("192.168.1.7", true),
            ("192.168.1.8", false),
            ("fd00:1:2::3", true),
            ("fd00:2::1", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(allows(&allowed, ip), expected, "{ip}");
        }
        let json = serde_json::to_string(&allowed).unwrap();
        assert_eq!(json, r#"["10.0.0.0/8","fd00:1::/32","192.168.1.7/32"]"#);
        let all: AllowPrivate = serde_json::from_str(r#"["0.0.0.0/0", "::/0"]"#).unwrap();
        assert!(allows(&all, "169.254.1.1") && allows(&all, "fe80::1"));
        for wrong in ["\"10.0.0.0/8\"", r#"["10.0.0.0/33"]"#, r#"["localhost"]"#, r#"["10.0.0.0/"]"#, "7"] {
            assert!(serde_json::from_str::<AllowPrivate>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn private_networks_and_this_machine_are_no_more_than_that() {
        for (ip, expected) in [
            ("10.1.2.3", true),
            ("172.16.0.1", true),
            ("192.168.0.1", true),
            ("127.0.0.1", true),
            ("::1", true),
            ("fd12::1", true),
            ("169.254.1.1", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("fe80::1", false),
        ] {
            assert_eq!(allows(&AllowPrivate::Private, ip), expected, "{ip}");
            assert!(!allows(&AllowPrivate::Nothing, ip));
        }
    }
}
