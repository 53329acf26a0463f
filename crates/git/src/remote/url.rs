//! Addresses of remote repositories: those kinds that are known to be harmless, and no secrets in them.

use std::fmt;

use domesday_connector::Host;
use domesday_connector::address::Parts;
use domesday_connector::credentials::Method;

use crate::error::GitError;

/// Bytes of an address, at most.
const URL_MAX: usize = 4_096;
const SCHEMES: [&str; 5] = ["https", "http", "ssh", "git", "file"];

/// The address of a remote repository, without a password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteUrl {
    url: String,
    scheme: &'static str,
    /// With its port, without a user.
    host: String,
}

impl RemoteUrl {
    /// Checks an address: `https://`, `http://`, `ssh://`, `git://` or `file://`, or `user@host:path`.
    pub fn parse(url: &str) -> Result<RemoteUrl, GitError> {
        // The address itself is not repeated: it may have a password in it.
        let wrong = |detail: &str| Err(GitError::Configuration(format!("`url`: {detail}")));
        if url.len() > URL_MAX || url.starts_with('-') || url.chars().any(|c| c.is_control() || c == ' ') {
            return wrong("not an address of a repository");
        }
        let (scheme, user, host, path) = match (Parts::of(url), url.split_once(':')) {
            (Some(parts), _) => match SCHEMES.iter().find(|known| **known == parts.scheme) {
                Some(scheme) => (*scheme, parts.user.unwrap_or_default(), parts.host, parts.path),
                None => return wrong("only https, http, ssh, git and file are allowed"),
            },
            // Two colons name a program that git would run, and so does `://` after what is no scheme.
            (None, Some((authority, path)))
                if !authority.contains('/')
                    && !path.starts_with(':')
                    && !path.starts_with("//")
                    && !path.is_empty() =>
            {
                let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
                ("ssh", user, host, path)
            }
            _ => {
                return wrong("not an address of a repository; begin it with https://, ssh:// or file://");
            }
        };
        if user.contains(':') || (scheme.starts_with("http") && !user.is_empty()) {
            return wrong(
                "give what stands before the `@` as a credential, not in the address: `user:password`, or a token",
            );
        }
        if host.starts_with('-') || user.starts_with('-') || (scheme != "file" && host.is_empty()) {
            return wrong("it has no host");
        }
        if scheme == "file" && !(user.is_empty() && host.is_empty() && path.starts_with('/')) {
            return wrong("a file's address has an absolute path");
        }
        // Before the first slash they would hide what else stands there.
        if path.starts_with(['?', '#']) {
            return wrong("not an address of a repository");
        }
        Ok(RemoteUrl { url: url.to_owned(), scheme, host: host.to_owned() })
    }

    pub fn as_str(&self) -> &str {
        &self.url
    }

    /// Scheme and host: what a token is for.
    pub(super) fn site(&self) -> String {
        format!("{}://{}", self.scheme, self.host)
    }

    /// The server that a credential is sent to.
    pub(super) fn credential_host(&self) -> Host {
        let port = match self.scheme {
            "https" => Some(443),
            "http" => Some(80),
            "ssh" => Some(22),
            _ => None,
        };
        Host::parse(&self.host).or_port(port)
    }

    /// What a credential is, unless the configuration says something else.
    pub fn natural_method(&self) -> Result<Method, GitError> {
        match self.scheme {
            "https" | "http" => Ok(Method::Github),
            "ssh" => Ok(Method::SshKey),
            scheme => {
                let detail = format!("field `credential`: an address of {scheme} takes none; leave it out");
                Err(GitError::Configuration(detail))
            }
        }
    }

    /// Whether this method is one for the address.
    pub fn check_method(&self, method: Option<Method>) -> Result<(), GitError> {
        let wrong = |detail: String| Err(GitError::Configuration(format!("`authentication`: {detail}")));
        match (method, self.scheme) {
            (None | Some(Method::Unauthenticated), _) | (Some(Method::SshKey), "ssh") => Ok(()),
            (Some(Method::Github | Method::Bearer | Method::Basic), "https" | "http") => {
                if self.is_private() {
                    return Ok(());
                }
                wrong("a secret is sent over https only, not over http".to_owned())
            }
            (Some(method), scheme) => {
                wrong(format!("`{}` is not for an address of {scheme}", method.as_str()))
            }
        }
    }

    /// Whether a secret may be sent there: not in the clear, unless it stays on this machine.
    fn is_private(&self) -> bool {
        let name = match self.host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => &self.host,
        };
        self.scheme == "https" || matches!(name, "localhost" | "127.0.0.1" | "[::1]")
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_addresses_are_taken() {
        for (url, site, natural, takes_it) in [
            ("https://example.com/a/b.git", "https://example.com", Some(Method::Github), true),
            ("http://127.0.0.1:8080/b.git", "http://127.0.0.1:8080", Some(Method::Github), true),
            ("http://[::1]:8080/b.git", "http://[::1]:8080", Some(Method::Github), true),
            ("http://example.com/b.git", "http://example.com", Some(Method::Github), false),
            ("ssh://git@example.com:22/b.git", "ssh://example.com:22", Some(Method::SshKey), true),
            ("git@example.com:a/b.git", "ssh://example.com", Some(Method::SshKey), true),
            ("git://example.com/b.git", "git://example.com", None, true),
            ("file:///srv/b.git", "file://", None, true),
        ] {
            let parsed = RemoteUrl::parse(url).unwrap();
            assert_eq!((parsed.site().as_str(), parsed.natural_method().ok()), (site, natural), "{url}");
            assert_eq!(parsed.check_method(natural).is_ok(), takes_it, "{url}");
            assert!(parsed.check_method(Some(Method::Database)).is_err(), "{url}");
        }
    }

    #[test]
    fn what_could_run_something_or_hold_a_secret_is_refused_and_not_repeated() {
        for url in [
            "ext::sh -c id",
            "ext::id",
            "--upload-pack=id",
            "-oProxyCommand=id:x",
            "ssh://-oProxyCommand=id/x",
            "svn://example.com/a",
            "git://user:s3cret@example.com/a",
            "https://user:s3cret@example.com/a",
            "https://s3cret@example.com/a",
            "ssh://git:s3cret@example.com/a",
            "https:///a",
            "https://user:s3cret#@example.com/a",
            "ssh://git?s3cret@example.com/a",
            "1x://example.com/a",
            "file://relative",
            "/srv/repo",
            "a\nb:c",
            "",
        ] {
            let error = RemoteUrl::parse(url).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
