//! Addresses as people type them, with the secrets taken out.
//!
//! What is left names the source in the book, in reports and in logs, so nothing of a secret may stay: user and
//! password of a web address become a credential of this run, and an address with a secret where none can be
//! taken out is refused, without being quoted.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str};

use crate::credentials::Secret;
use crate::factory::TargetError;

/// What is percent-encoded in a value of a query: all but letters, digits and `-._~`.
pub const IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same in a path, whose separators stay.
pub const IN_PATH: &AsciiSet = &IN_QUERY.remove(b'/');

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

/// How an address of a kind begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scheme {
    /// In lower case.
    pub name: &'static str,
    pub form: SchemeForm,
}

/// What comes after the name of a scheme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchemeForm {
    /// `scheme://host/path`, with what may stand before the host.
    Authority(UserInfo),
    /// `scheme:name`, without a host.
    Name,
    /// `scheme:path`, where the path is on this machine.
    Path,
}

/// What stands before the `@` of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserInfo {
    /// A secret, the user's name too. It is taken out, and a query must not have one either.
    Login,
    /// A user, who stays in the address, and a password, which is taken out. A query must not have one either.
    UserAndPassword,
    /// A user, who stays in the address. A password is refused.
    User,
    /// Nothing: there is no way to take out what stands there.
    Refused,
}

impl Scheme {
    pub const fn with_authority(name: &'static str, user: UserInfo) -> Scheme {
        Scheme { name, form: SchemeForm::Authority(user) }
    }

    /// Whether it begins an address, and not a path.
    pub fn is_remote(&self) -> bool {
        self.form != SchemeForm::Path
    }
}

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

/// An address `scheme://user@host/path`, taken apart as it is written: nothing is decoded, checked or normalised, for
/// names of buckets and keys may be anything. What is asked over HTTP is read by [`reqwest::Url`] instead.
pub struct Parts<'a> {
    pub scheme: &'a str,
    /// What stands before an `@`; with a password, perhaps.
    pub user: Option<&'a str>,
    /// With its port.
    pub host: &'a str,
    /// All that comes after the host, with the leading `/`, `?` or `#`.
    pub path: &'a str,
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
    /// An address, or `None` for what does not look like one. `schemes` are those that connectors read.
    pub fn parse(
        typed: &str,
        schemes: impl IntoIterator<Item = Scheme>,
    ) -> Result<Option<Address>, TargetError> {
        let mut schemes = schemes.into_iter();
        if let Some(parts) = Parts::of(typed) {
            let scheme = parts.scheme.to_ascii_lowercase();
            let user = schemes.find_map(|known| match known.form {
                SchemeForm::Authority(user) if known.name == scheme => Some(user),
                _ => None,
            });
            return Address::with_authority(&scheme, &parts, user.unwrap_or(UserInfo::Refused)).map(Some);
        }
        Ok(match typed.split_once(':') {
            Some((scheme, path))
                if schemes.any(|known| known.form == SchemeForm::Name && known.name == scheme) =>
            {
                Some(Address::plain(typed, scheme, "", path))
            }
            // `user@host:path`, as ssh and git have it.
            Some((before, path)) if before.contains('@') && !before.contains('/') => {
                let host = before.rsplit_once('@').map_or(before, |(_, host)| host);
                Some(Address::plain(typed, "ssh", host, path))
            }
            Some((_, after)) if after.contains('@') => {
                return Err(TargetError::new(
                    "a target looks like `user:password@…`: begin an address with its scheme, such as https://",
                ));
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

    fn with_authority(scheme: &str, parts: &Parts<'_>, user_info: UserInfo) -> Result<Address, TargetError> {
        let host = parts.host.to_ascii_lowercase();
        let (login, authority) = match (parts.user, user_info) {
            (Some(user), UserInfo::UserAndPassword) => match user.split_once(':') {
                Some((name, _)) => (Some(Login::of(user)?), format!("{name}@{host}")),
                None => (None, format!("{user}@{host}")),
            },
            (Some(user), UserInfo::Login) => (Some(Login::of(user)?), host.clone()),
            (Some(user), UserInfo::User) if !user.contains(':') => (None, format!("{user}@{host}")),
            (Some(_), UserInfo::User) => {
                return Err(TargetError::new(format!(
                    "an address of scheme {scheme} has a password in it, which is not used there: give a private key with \
                     --credential instead"
                )));
            }
            (Some(_), UserInfo::Refused) => {
                return Err(TargetError::new(format!(
                    "an address of scheme {scheme} has a secret in it: give it with --credential instead"
                )));
            }
            (None, UserInfo::Login) => (None, host.clone()),
            // A bucket's name is what it is.
            (None, _) => (None, parts.host.to_owned()),
        };
        let path = parts.path.split('#').next().unwrap_or_default();
        if matches!(user_info, UserInfo::Login | UserInfo::UserAndPassword) {
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
    fn of(user: &str) -> Result<Login, TargetError> {
        Ok(match user.split_once(':') {
            Some((user, password)) => {
                let mut user: Vec<u8> = percent_decode_str(user).collect();
                // The first colon ends the user.
                if user.contains(&b':') {
                    return Err(TargetError::new(
                        "the user in an address has a colon in it: give it with --credential instead",
                    ));
                }
                user.push(b':');
                user.extend(percent_decode_str(password));
                Login::Basic(Secret::new(user))
            }
            None => Login::Token(Secret::new(percent_decode_str(user).collect())),
        })
    }
}

impl<'a> Parts<'a> {
    /// `None` for a text that does not begin with `scheme://`.
    pub fn of(text: &'a str) -> Option<Parts<'a>> {
        let (scheme, rest) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        Some(Parts { scheme, user, host, path })
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// It would be written into the book with the address, and there is no other way to send it.
fn refuse_secret_query(path: &str) -> Result<(), TargetError> {
    let Some((_, query)) = path.split_once('?') else { return Ok(()) };
    for parameter in query.split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if !value.is_empty() && SECRET_PARAMETERS.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(TargetError::new(format!(
                "an address has a secret in it, `{name}`, which would be kept in the book: give it with \
                 --credential, or fetch it yourself and pipe it in with `-`"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMES: [Scheme; 5] = [
        Scheme::with_authority("https", UserInfo::Login),
        Scheme::with_authority("ssh", UserInfo::User),
        Scheme::with_authority("postgres", UserInfo::UserAndPassword),
        Scheme::with_authority("postgresql", UserInfo::UserAndPassword),
        Scheme::with_authority("mysql", UserInfo::UserAndPassword),
    ];
    const NAMED: Scheme = Scheme { name: "github", form: SchemeForm::Name };

    fn try_parse(typed: &str) -> Result<Option<Address>, TargetError> {
        Address::parse(typed, SCHEMES.into_iter().chain([NAMED]))
    }

    fn parse(typed: &str) -> Address {
        try_parse(typed).unwrap().unwrap()
    }

    #[test]
    fn addresses_are_told_from_paths() {
        for path in ["src", "./a:b", "a b", "/srv/share", "C:", "1://x", "-", "a/b@c:d"] {
            assert_eq!(try_parse(path).unwrap(), None, "{path}");
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
            assert_eq!((address.text.as_str(), address.server()), (text, server));
            assert_eq!(address.login, secret.map(|secret| Login::Basic(Secret::new(secret.into()))));
        }
        let told = try_parse("postgres://ann@db/x?password=hunter2").unwrap_err().to_string();
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
            let told = try_parse(typed).unwrap_err().to_string();
            assert!(!told.contains("hunter2"), "{told}");
        }
        assert_eq!(parse("https://example.com/a?token=&b=1").text, "https://example.com/a?token=&b=1");
    }
}
