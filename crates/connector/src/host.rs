//! Servers, as credentials are bound to them: a name or an address, and a port where it is known.

use std::fmt;

use reqwest::Url;

/// The server that a credential is sent to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// In lower case, without the brackets of IPv6.
    name: String,
    port: Option<u16>,
}

impl Host {
    pub fn new(name: &str, port: Option<u16>) -> Host {
        let name = name.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        Host { name: name.to_ascii_lowercase(), port }
    }

    /// The server of an address, with the port that its scheme implies.
    pub fn of_url(url: &Url) -> Host {
        Host::new(url.host_str().unwrap_or_default(), url.port_or_known_default())
    }

    /// `name`, `name:port` or `[address]:port`.
    pub fn parse(text: &str) -> Host {
        let (name, port) = split_port(text);
        Host::new(name, port.and_then(|port| port.parse().ok()))
    }

    /// With this port where none is known.
    #[must_use]
    pub fn or_port(self, port: Option<u16>) -> Host {
        Host { port: self.port.or(port), ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A name and the digits behind its last colon, unless that colon is one of an IPv6 address.
fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    }
}

/// Servers that an operator names: `git.example`, `*.corp.example`, `db.example:5432`, or `*` for any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPattern {
    name: NamePattern,
    /// `None` matches every port.
    port: Option<u16>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum NamePattern {
    Any,
    Exact(String),
    /// Names that end with this, which begins with a dot.
    Below(String),
}

impl HostPattern {
    /// `None` for what is no pattern.
    pub fn parse(text: &str) -> Option<HostPattern> {
        let (name, port) = split_port(text);
        let port = port.map(str::parse).transpose().ok()?;
        if name.ends_with('.') {
            return None;
        }
        let Host { name, .. } = Host::new(name, None);
        let is_name = |name: &str| !name.is_empty() && !name.contains(['*', '/', '@', ' ', ',']);
        let name = match name.strip_prefix('*') {
            Some("") => NamePattern::Any,
            Some(below) if below.strip_prefix('.').is_some_and(is_name) => NamePattern::Below(below.into()),
            None if is_name(&name) => NamePattern::Exact(name),
            _ => return None,
        };
        Some(HostPattern { name, port })
    }

    pub fn matches(&self, host: &Host) -> bool {
        // What others might read as two names is none that was meant.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        if !host.name.chars().all(is_plain) && self.name != NamePattern::Any {
            return false;
        }
        let is_named = match &self.name {
            NamePattern::Any => true,
            NamePattern::Exact(name) => *name == host.name,
            NamePattern::Below(suffix) => host.name.len() > suffix.len() && host.name.ends_with(suffix),
        };
        is_named && self.port.is_none_or(|port| host.port == Some(port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_the_hosts_they_name_and_no_others() {
        for (pattern, host, expected) in [
            ("git.example", "git.example", true),
            ("git.example", "GIT.example.", true),
            ("git.example", "git.example:8443", true),
            ("git.example:8443", "git.example:8443", true),
            ("git.example:8443", "git.example", false),
            ("git.example", "git.example.evil.test", false),
            ("git.example", "xgit.example", false),
            ("*.corp.example", "a.corp.example", true),
            ("*.corp.example", "a.b.corp.example", true),
            ("*.corp.example", "corp.example", false),
            ("*.corp.example", "evilcorp.example", false),
            ("*.corp.example", ".corp.example", false),
            ("*.corp.example", "evil.test#.corp.example", false),
            ("*.corp.example", "evil.test\\.corp.example", false),
            ("*.corp.example", "evil.test%2f.corp.example", false),
            ("*", "anything", true),
            ("*:443", "anything:443", true),
            ("*:443", "anything:80", false),
            ("[::1]:5432", "[::1]:5432", true),
            ("::1", "[::1]:5432", true),
            ("127.0.0.1", "127.0.0.1:80", true),
        ] {
            let found = HostPattern::parse(pattern).unwrap().matches(&Host::parse(host));
            assert_eq!(found, expected, "{pattern} {host}");
        }
        for wrong in ["", "*x", "a*b", "*.", "a:b", "a/b", "https://a", "a b", "*.*"] {
            assert_eq!(HostPattern::parse(wrong), None, "{wrong}");
        }
        let url = Url::parse("https://A.example/x").unwrap();
        assert_eq!(Host::of_url(&url), Host::parse("a.example:443"));
    }
}
