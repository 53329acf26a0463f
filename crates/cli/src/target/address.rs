//! Addresses as people type them, with the secrets taken out.
//!
//! What is left names the source in the book, in reports and in logs, so nothing of a secret may stay: user and
//! password of a web address become a credential of this run, and an address with a secret where none can be
//! taken out is refused, without being quoted.

use std::fmt;

use anyhow::{Result, bail};
use domesday_connector::credentials::Secret;

/// Query parameters that are secrets by their name, in lower case. A signed address has one of them.
const SECRET_PARAMETERS: &[&str] = &[
    "access_token",
    "api_key",
    "apikey",
    "api-key",
    "auth",
    "authorization",
    "client_secret",
    "code",
    "id_token",
    "jwt",
    "key",
    "passwd",
    "password",
    "private_token",
    "pwd",
    "refresh_token",
    "secret",
    "session",
    "sessionid",
    "sig",
    "signature",
    "token",
    "x-amz-credential",
    "x-amz-security-token",
    "x-amz-signature",
    "x-goog-signature",
];

/// Schemes of database servers, whose users are no secret.
const DATABASE_SCHEMES: &[&str] = &["postgres", "postgresql", "mysql", "mariadb", "sqlserver", "mssql"];

/// An address without secrets.
#[derive(PartialEq, Eq, Debug)]
pub struct Address {
    /// As it is stored and shown.
    pub text: String,
    /// In lower case; that of `user@host:path` is `ssh`.
    pub scheme: String,
    /// With its port, in lower case.
    pub host: String,
    /// What comes after the host, with the leading slash.
    pub path: String,
    pub login: Option<Login>,
}

/// What stood before the host of a web address.
#[derive(PartialEq, Eq, Debug)]
pub enum Login {
    /// `user:password`.
    Basic(Secret),
    /// The one word that stood there; hosts of repositories take tokens so.
    Token(Secret),
}

impl Address {
    /// An address, or `None` for what does not look like one.
    pub fn parse(typed: &str) -> Result<Option<Address>> {
        if let Some((scheme, rest)) = typed.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
            return Address::with_authority(&scheme.to_ascii_lowercase(), rest).map(Some);
        }
        Ok(match typed.split_once(':') {
            Some(("github", path)) => Some(Address::plain(typed, "github", "", path)),
            // `user@host:path`, as ssh and git have it.
            Some((before, path)) if before.contains('@') && !before.contains('/') => {
                let host = before.rsplit_once('@').map_or(before, |(_, host)| host);
                Some(Address::plain(typed, "ssh", host, path))
            }
            Some((_, after)) if after.contains('@') => {
                bail!(
                    "a target looks like `user:password@…`: begin an address with its scheme, such as https://"
                )
            }
            _ => None,
        })
    }

    fn plain(typed: &str, scheme: &str, host: &str, path: &str) -> Address {
        Address {
            text: typed.to_owned(),
            scheme: scheme.to_owned(),
            host: host.to_ascii_lowercase(),
            path: format!("/{path}"),
            login: None,
        }
    }

    fn with_authority(scheme: &str, rest: &str) -> Result<Address> {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host.to_ascii_lowercase()),
            None => (None, authority.to_ascii_lowercase()),
        };
        let is_web = matches!(scheme, "http" | "https");
        let is_database = DATABASE_SCHEMES.contains(&scheme);
        let (login, authority) = match user {
            Some(user) if is_database => match user.split_once(':') {
                Some((name, _)) => (Some(Login::of(user)?), format!("{name}@{host}")),
                None => (None, format!("{user}@{host}")),
            },
            Some(user) if is_web => (Some(Login::of(user)?), host.clone()),
            Some(user) if scheme != "ssh" || user.contains(':') => {
                bail!("an address of scheme {scheme} has a secret in it: give it with --credential instead")
            }
            Some(user) => (None, format!("{user}@{host}")),
            None if is_web => (None, host.clone()),
            // A bucket's name is what it is.
            None => (None, authority.to_owned()),
        };
        let path = path.split('#').next().unwrap_or_default();
        if is_web || is_database {
            refuse_secret_query(path)?;
        }
        Ok(Address {
            text: format!("{scheme}://{authority}{path}"),
            scheme: scheme.to_owned(),
            host,
            path: path.split('?').next().unwrap_or_default().to_owned(),
            login,
        })
    }
}

impl Address {
    /// Whether it is of a database server.
    pub fn is_database(&self) -> bool {
        DATABASE_SCHEMES.contains(&self.scheme.as_str())
    }

    /// The server alone: all before the path.
    pub fn server(&self) -> &str {
        let begin = self.text.find("://").map_or(0, |at| at + 3);
        let end = self.text[begin..].find(['/', '?']).map_or(self.text.len(), |at| begin + at);
        &self.text[..end]
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Login {
    fn of(user: &str) -> Result<Login> {
        Ok(match user.split_once(':') {
            Some((user, password)) => {
                let (mut user, password) = (decoded(user), decoded(password));
                // The first colon ends the user.
                if user.contains(&b':') {
                    bail!("the user in an address has a colon in it: give it with --credential instead");
                }
                user.push(b':');
                user.extend(password);
                Login::Basic(Secret::new(user))
            }
            None => Login::Token(Secret::new(decoded(user))),
        })
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// It would be written into the book with the address, and there is no other way to send it.
fn refuse_secret_query(path: &str) -> Result<()> {
    let Some((_, query)) = path.split_once('?') else { return Ok(()) };
    for parameter in query.split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if !value.is_empty() && SECRET_PARAMETERS.contains(&name.to_ascii_lowercase().as_str()) {
            bail!(
                "an address has a secret in it, `{name}`, which would be kept in the book: give it with \
                 --credential, or fetch it yourself and pipe it in with `-`"
            );
        }
    }
    Ok(())
}

/// Bytes of a text in which `%41` is `A`.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let (bytes, mut at) = (text.as_bytes(), 0);
    let mut decoded = Vec::with_capacity(bytes.len());
    while at < bytes.len() {
        match (bytes[at], digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high << 4 | low) as u8);
                at += 3;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(typed: &str) -> Address {
        Address::parse(typed).unwrap().unwrap()
    }

    #[test]
    fn addresses_are_told_from_paths() {
        for path in ["src", "./a:b", "a b", "/srv/share", "C:", "1://x", "-", "a/b@c:d"] {
            assert_eq!(Address::parse(path).unwrap(), None, "{path}");
        }
        for (typed, text, scheme, host, path) in [
            ("HTTPS://Example.com/A?b=c#d", "https://example.com/A?b=c", "https", "example.com", "/A"),
            ("https://example.com", "https://example.com", "https", "example.com", ""),
            (
                "ssh://git@Example.com:22/a.git",
                "ssh://git@example.com:22/a.git",
                "ssh",
                "example.com:22",
                "/a.git",
            ),
            ("git@example.com:a/b.git", "git@example.com:a/b.git", "ssh", "example.com", "/a/b.git"),
            ("github:owner/name", "github:owner/name", "github", "", "/owner/name"),
            ("s3://Bucket/a b", "s3://Bucket/a b", "s3", "bucket", "/a b"),
            ("file:///srv/a.git", "file:///srv/a.git", "file", "", "/srv/a.git"),
        ] {
            let address = parse(typed);
            let seen = (
                address.text.as_str(),
                address.scheme.as_str(),
                address.host.as_str(),
                address.path.as_str(),
            );
            assert_eq!(seen, (text, scheme, host, path));
            assert_eq!(address.login, None);
        }
    }

    #[test]
    fn a_login_is_taken_out_of_a_web_address() {
        let basic = |text: &str| Some(Login::Basic(Secret::new(text.into())));
        for (typed, login) in [
            ("https://alice:hunter2@Example.com/a", basic("alice:hunter2")),
            ("https://alice:a%3Ab%40%2f%zz@example.com/a", basic("alice:a:b@/%zz")),
            ("https://alice:a@b@example.com/a", basic("alice:a@b")),
            ("https://alice:@example.com/a", basic("alice:")),
            ("https://hunter2@example.com/a", Some(Login::Token(Secret::new("hunter2".into())))),
        ] {
            let address = parse(typed);
            assert_eq!(address.text, "https://example.com/a");
            assert_eq!(address.login, login);
            assert!(!format!("{address:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_password_is_taken_out_of_a_databases_address_and_its_user_stays() {
        for (typed, text, server, secret) in [
            (
                "postgres://Ann:hunter2@DB:5432/Shop?mode=full",
                "postgres://Ann@db:5432/Shop?mode=full",
                "postgres://Ann@db:5432",
                Some("Ann:hunter2"),
            ),
            ("postgresql://ann:p%40ss@db", "postgresql://ann@db", "postgresql://ann@db", Some("ann:p@ss")),
            ("mysql://ann@db?tls=require", "mysql://ann@db?tls=require", "mysql://ann@db", None),
        ] {
            let address = parse(typed);
            assert_eq!(
                (address.text.as_str(), address.server(), address.is_database()),
                (text, server, true)
            );
            assert_eq!(address.login, secret.map(|secret| Login::Basic(Secret::new(secret.into()))));
        }
        let told = Address::parse("postgres://ann@db/x?password=hunter2").unwrap_err().to_string();
        assert!(told.contains("--credential") && !told.contains("hunter2"), "{told}");
    }

    #[test]
    fn a_secret_that_cannot_be_taken_out_is_refused_and_not_quoted() {
        for typed in [
            "https://example.com/a?token=hunter2",
            "https://example.com/a?x=1&X-Amz-Signature=hunter2#y",
            "ssh://git:hunter2@example.com/a",
            "s3://key:hunter2@bucket/a",
            "s3://hunter2@bucket/a",
            "alice:hunter2@example.com/a",
            "https://a%3Ab:hunter2@example.com/a",
        ] {
            let told = Address::parse(typed).unwrap_err().to_string();
            assert!(!told.contains("hunter2"), "{told}");
        }
        assert_eq!(parse("https://example.com/a?token=&b=1").text, "https://example.com/a?token=&b=1");
    }
}
