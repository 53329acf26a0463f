//! The configuration of a `github` data source. Its fields' comments are their manual.

use domesday_connector::credentials::Method;
use domesday_connector::fields::FieldType;
use domesday_connector::http::Certificates;
use domesday_connector::{ConnectorError, parse_configuration};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::name::RepositoryName;

/// The kind, as data sources name it.
pub const KIND: &str = "github";
/// The public API.
pub const BASE_URL: &str = "https://api.github.com";
/// Repositories that can be named one by one.
const REPOSITORIES_MAX: usize = 10_000;

domesday_connector::configuration! {
    /// Which repositories to scan, each with its whole history, and what of each. Exactly one of `organisation`,
    /// `user`, `owner` and `repositories` says where they are.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct GithubConfig {
        /// The repositories of this organisation that the credential may see.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub organisation: Option<String>,
        /// The repositories that belong to this user; private ones only if the credential is that user's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub user: Option<String>,
        /// An organisation or a user, whichever has this name.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub owner: Option<String>,
        /// These repositories, as `owner/name`. They are scanned even if they are archived, forked or private,
        /// unless `archived`, `forks` or `private` says otherwise.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub repositories: Vec<String>,
        /// The address of the API of GitHub Enterprise, such as `https://ghe.example.com/api/v3`. Without it, the
        /// public one. Repositories are cloned from the same host, without a leading `api.`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub base_url: Option<String>,
        /// Archived repositories: `include`, `exclude` or `only`. Included unless said otherwise.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub archived: Option<Choice>,
        /// Forks of other repositories: `include`, `exclude` or `only`. Excluded unless said otherwise.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub forks: Option<Choice>,
        /// Private and internal repositories: `include`, `exclude` or `only`. Included unless said otherwise.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub private: Option<Choice>,
        /// Leave out repositories whose name matches one of these, with `*`, `?` and `[…]`; a pattern with `/` is
        /// for `owner/name`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub exclude: Vec<String>,
        /// How to authenticate: `github` or `bearer` for a token, `basic`, or `unauthenticated`. A data source
        /// with a credential uses `github` unless said otherwise.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub authentication: Option<Method>,
        /// The authorities that may have signed the certificates of the API and of the repositories' server, in PEM.
        /// Without it the system's. An absolute path on the worker.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ca_file: Option<String>,
        /// A certificate that says who connects, in PEM, where the server asks for one. An absolute path on the worker.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cert_file: Option<String>,
        /// The private key of `cert_file`, in PEM. An absolute path on the worker.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key_file: Option<String>,
        /// Of each repository, scan only files whose path matches one of these, with the syntax of `.gitignore`
        /// lines.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub paths: Vec<String>,
        /// Of each repository, leave out files all of whose paths match one of these, with the syntax of
        /// `.gitignore` lines.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub exclude_paths: Vec<String>,
        /// Leave out files larger than this, in bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub max_file_size: Option<u64>,
    }
}

/// What to do with repositories of some sort.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    Include,
    Exclude,
    Only,
}

impl FieldType for Choice {
    fn type_name() -> String {
        "`include`, `exclude` or `only`".to_owned()
    }
}

impl Choice {
    /// Whether a repository is taken that is, or is not, of the sort.
    pub(super) fn takes(self, is_of_sort: bool) -> bool {
        match self {
            Choice::Include => true,
            Choice::Exclude => !is_of_sort,
            Choice::Only => is_of_sort,
        }
    }
}

/// Where repositories are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scope<'a> {
    Organisation(&'a str),
    User(&'a str),
    Owner(&'a str),
    Repositories(&'a [String]),
}

impl GithubConfig {
    pub fn parse(value: &Value) -> Result<GithubConfig, ConnectorError> {
        let config: GithubConfig = parse_configuration(KIND, value)?;
        config.check().map_err(|detail| ConnectorError::Configuration { kind: KIND, detail })?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        let owners = [&self.organisation, &self.user, &self.owner];
        let given = owners.iter().filter(|owner| owner.is_some()).count();
        if given + usize::from(!self.repositories.is_empty()) != 1 {
            return Err("give exactly one of `organisation`, `user`, `owner` and `repositories`".to_owned());
        }
        if let Some(owner) = owners.into_iter().flatten().find(|owner| !RepositoryName::is_owner(owner)) {
            return Err(format!("`{owner}` is not a name that an organisation or user can have"));
        }
        if self.repositories.len() > REPOSITORIES_MAX {
            return Err(format!("field `repositories`: at most {REPOSITORIES_MAX} can be named"));
        }
        for (index, name) in self.repositories.iter().enumerate() {
            if RepositoryName::parse(name).is_none() {
                return Err(format!("field `repositories[{index}]`: write `owner/name`, not `{name}`"));
            }
        }
        let methods = [Method::Unauthenticated, Method::Github, Method::Bearer, Method::Basic];
        if let Some(method) = self.authentication.filter(|method| !methods.contains(method)) {
            let known = methods.map(Method::as_str).join(", ");
            let name = method.as_str();
            return Err(format!("field `authentication`: `{name}` is not for GitHub; known: {known}"));
        }
        self.certificates().check()?;
        self.base()?;
        self.excluded()?;
        Ok(())
    }

    /// The certificates that it names.
    pub(super) fn certificates(&self) -> Certificates {
        let Self { ca_file, cert_file, key_file, .. } = self;
        Certificates { ca_file: ca_file.clone(), cert_file: cert_file.clone(), key_file: key_file.clone() }
    }

    /// The API's address, with a slash at its end.
    pub(super) fn base(&self) -> Result<Url, String> {
        let wrong = |detail: &str| Err(format!("field `base_url`: {detail}"));
        let Ok(mut url) = Url::parse(self.base_url.as_deref().unwrap_or(BASE_URL)) else {
            return wrong("not an address; write it like `https://ghe.example.com/api/v3`");
        };
        if !matches!(url.scheme(), "https" | "http") || url.query().is_some() || url.fragment().is_some() {
            return wrong("write it like `https://ghe.example.com/api/v3`");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return wrong("give the user and the password or token as a credential, not in the address");
        }
        let path = format!("{}/", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Ok(url)
    }

    pub(super) fn excluded(&self) -> Result<GlobSet, String> {
        let mut builder = GlobSetBuilder::new();
        for (index, pattern) in self.exclude.iter().enumerate() {
            let whole = if pattern.contains('/') { pattern.clone() } else { format!("*/{pattern}") };
            let glob = GlobBuilder::new(&whole).case_insensitive(true).literal_separator(true).build();
            builder.add(glob.map_err(|error| format!("field `exclude[{index}]`: {}", error.kind()))?);
        }
        builder.build().map_err(|error| format!("field `exclude`: {error}"))
    }

    pub(super) fn scope(&self) -> Scope<'_> {
        match (&self.organisation, &self.user, &self.owner) {
            (Some(name), _, _) => Scope::Organisation(name),
            (_, Some(name), _) => Scope::User(name),
            (_, _, Some(name)) => Scope::Owner(name),
            _ => Scope::Repositories(&self.repositories),
        }
    }

    /// Whether a repository of these sorts is scanned. Those named one by one are, if nothing is said.
    pub(super) fn takes(&self, is_archived: bool, is_fork: bool, is_private: bool) -> bool {
        let forks = if self.repositories.is_empty() { Choice::Exclude } else { Choice::Include };
        self.archived.unwrap_or(Choice::Include).takes(is_archived)
            && self.forks.unwrap_or(forks).takes(is_fork)
            && self.private.unwrap_or(Choice::Include).takes(is_private)
    }
}

/// The configuration that `github:owner` or `github:owner/name` on a command line means.
pub fn parse_address(address: &str) -> Result<Value, ConnectorError> {
    let rest = address.strip_prefix("github:").unwrap_or(address);
    if RepositoryName::is_owner(rest) {
        return Ok(json!({ "owner": rest }));
    }
    match RepositoryName::parse(rest) {
        Some(name) => Ok(json!({ "repositories": [name.as_str()] })),
        None => Err(ConnectorError::Configuration {
            kind: KIND,
            detail: format!("`{address}`: write `github:owner` or `github:owner/name`"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (value, field) in [
            (json!({}), "exactly one"),
            (json!({ "organisation": "a", "user": "b" }), "exactly one"),
            (json!({ "organisation": "a/b" }), "`a/b`"),
            (json!({ "user": "-a" }), "`-a`"),
            (json!({ "repositories": ["a/b", "a"] }), "`repositories[1]`"),
            (json!({ "repositories": ["a/.."] }), "`repositories[0]`"),
            (json!({ "owner": "a", "archived": "maybe" }), "`archived`"),
            (json!({ "owner": "a", "authentication": "s3" }), "`authentication`"),
            (json!({ "owner": "a", "base_url": "ghe.example.com" }), "`base_url`"),
            (json!({ "owner": "a", "base_url": "file:///api" }), "`base_url`"),
            (json!({ "owner": "a", "base_url": "https://x:s3cret@ghe.example.com" }), "`base_url`"),
            (json!({ "owner": "a", "ca_file": "ca.pem" }), "`ca_file`"),
            (json!({ "owner": "a", "exclude": ["["] }), "`exclude[0]`"),
            (json!({ "owner": "a", "include_wiki": true }), "`include_wiki`"),
        ] {
            let message = GithubConfig::parse(&value).unwrap_err().to_string();
            assert!(message.contains(field) && !message.contains("s3cret"), "{message}");
        }
    }

    #[test]
    fn patterns_are_for_names_or_for_owner_and_name() {
        let config = GithubConfig { exclude: vec!["Test-*".into(), "b/*".into()], ..GithubConfig::default() };
        let excluded = config.excluded().unwrap();
        for (name, is_excluded) in
            [("a/test-1", true), ("a/TEST-2", true), ("a/contest-1", false), ("b/x", true), ("a/b", false)]
        {
            assert_eq!(excluded.is_match(name), is_excluded, "{name}");
        }
    }

    #[test]
    fn sorts_are_included_excluded_or_the_only_ones() {
        let parse = |value: Value| GithubConfig::parse(&value).unwrap();
        let all = parse(json!({ "owner": "a" }));
        assert!(all.takes(true, false, true) && !all.takes(false, true, false));
        let named = parse(json!({ "repositories": ["a/b"] }));
        assert!(named.takes(true, true, true));
        let some =
            parse(json!({ "owner": "a", "archived": "exclude", "forks": "include", "private": "only" }));
        assert!(some.takes(false, true, true));
        assert!(!some.takes(true, false, true) && !some.takes(false, false, false));
    }

    #[test]
    fn addresses_of_a_command_line() {
        assert_eq!(parse_address("github:rust-lang").unwrap(), json!({ "owner": "rust-lang" }));
        assert_eq!(parse_address("github:a/b.c").unwrap(), json!({ "repositories": ["a/b.c"] }));
        for wrong in ["github:", "github:a/b/c", "github:a/", "github:/b", "github:a b"] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
    }
}
