//! Which secrets a data source is given, and for which servers.
//!
//! Whoever may write a data source chooses both the reference and the address that the secret is sent to. So a
//! process gives a secret only if whoever started the process allowed it: by `--allow-credentials`, or because the
//! user of a local scan typed the reference. Nothing allows what this process itself needs: its own variables, and
//! the files and references that its fingerprint key and its database's password come from.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::command::words;
use super::vault::Place;
use super::{CredentialError, CredentialReference};
use crate::host::{Host, HostPattern};

/// Variables of this process itself begin like this: Domesday's, PostgreSQL's and Vault's.
const OWN_VARIABLES: [&str; 3] = ["DOMESDAY_", "PG", "VAULT_"];
/// Variables that name files with secrets of this process, and where these are without them, in the user's home.
const OWN_FILES: [(&str, Option<&str>); 3] = [
    ("PGPASSFILE", Some(".pgpass")),
    ("VAULT_TOKEN_FILE", Some(".vault-token")),
    ("VAULT_SECRET_ID_FILE", None),
];
/// Here are the environments of processes, this one's too, and their open files.
const PROCESSES: &str = "/proc";

/// What data sources are given. The default gives them nothing but secrets of this run.
#[derive(Clone, Debug, Default)]
pub struct CredentialPolicy {
    grants: Vec<Grant>,
    /// What this process itself uses.
    own_references: Vec<CredentialReference>,
    /// Files, or folders with all that is in them.
    own_paths: Vec<PathBuf>,
    endpoints: Vec<HostPattern>,
}

/// Secrets that are allowed, for these servers.
#[derive(Clone, Debug)]
struct Grant {
    secrets: SecretPattern,
    /// Empty for all servers.
    hosts: Vec<HostPattern>,
}

#[derive(Clone, Debug)]
enum SecretPattern {
    Exactly(CredentialReference),
    /// Variables whose names match.
    Variables(String),
    /// The file of this name.
    File(PathBuf),
    /// Files below a folder.
    Below(PathBuf),
    /// Secrets of Vault whose mount and path match, and one field of them or all.
    Vault {
        mount: String,
        path: String,
        field: Option<String>,
    },
    /// Commands that begin with these words.
    Command(Vec<String>),
}

impl CredentialPolicy {
    /// Allows secrets, each given as `REFERENCE` or `REFERENCE@HOST,HOST`.
    pub fn allowing<T: AsRef<str>>(
        grants: impl IntoIterator<Item = T>,
    ) -> Result<CredentialPolicy, CredentialError> {
        let grants =
            grants.into_iter().map(|grant| Grant::parse(grant.as_ref())).collect::<Result<_, _>>()?;
        Ok(CredentialPolicy { grants, ..CredentialPolicy::default() })
    }

    /// Allows a reference that the user of this process typed, for all servers.
    #[must_use]
    pub fn typed(mut self, reference: CredentialReference) -> CredentialPolicy {
        self.grants.push(Grant { secrets: SecretPattern::Exactly(reference), hosts: Vec::new() });
        self
    }

    /// Keeps a secret that this process itself uses.
    #[must_use]
    pub fn keeping(mut self, reference: CredentialReference) -> CredentialPolicy {
        self.own_references.push(reference);
        self
    }

    /// Keeps a file of this process, or all that is in a folder.
    #[must_use]
    pub fn keeping_path(mut self, path: PathBuf) -> CredentialPolicy {
        self.own_paths.push(path);
        self
    }

    /// Lets credentials that a cloud's own tools would find go to these servers, too.
    #[must_use]
    pub fn with_endpoints(mut self, hosts: impl IntoIterator<Item = HostPattern>) -> CredentialPolicy {
        self.endpoints.extend(hosts);
        self
    }

    /// Whether credentials that a cloud's own tools would find may go to this server, which is not the cloud's.
    pub fn allows_endpoint(&self, host: &Host) -> bool {
        self.endpoints.iter().any(|pattern| pattern.matches(host))
    }

    /// Whether a data source is given this secret for this server; without a server, for any at all. If not, the
    /// error says what to do.
    pub(crate) fn check(
        &self,
        reference: &CredentialReference,
        host: Option<&Host>,
    ) -> Result<(), CredentialError> {
        if reference.is_of_run() {
            return Ok(());
        }
        let refused = |detail: String| {
            let reference = reference.to_string();
            Err(CredentialError::Forbidden { reference, detail })
        };
        if let Some(why) = self.is_own(reference) {
            return refused(format!(
                "it is {why}, and no data source is given it: keep its secret elsewhere"
            ));
        }
        let mut grants = self.grants.iter().filter(|grant| grant.secrets.matches(reference)).peekable();
        let is_known = grants.peek().is_some();
        if grants.any(|grant| host.is_none_or(|host| grant.is_for(host))) {
            return Ok(());
        }
        match host {
            Some(host) if is_known => refused(format!(
                "it is not for {host}: if it is to go there, start this process with --allow-credentials \
                 '{reference}@{host}'"
            )),
            host => {
                let host = host.map(|host| format!("@{host}")).unwrap_or_default();
                refused(format!(
                    "this process gives it to no data source: if it is to, start the process with \
                     --allow-credentials '{reference}{host}'"
                ))
            }
        }
    }

    /// Why a secret is this process's own, if it is.
    fn is_own(&self, reference: &CredentialReference) -> Option<&'static str> {
        let name = reference.name();
        if reference.scheme() == "env" && OWN_VARIABLES.iter().any(|prefix| name.starts_with(prefix)) {
            return Some("a variable of this process's own (DOMESDAY_*, PG*, VAULT_*)");
        }
        if self.own_references.iter().any(|own| is_same_secret(own, reference)) {
            return Some("a secret of this process's own");
        }
        (reference.scheme() == "file" && self.is_own_file(Path::new(name)))
            .then_some("a file of this process's own")
    }

    fn is_own_file(&self, path: &Path) -> bool {
        // One that is not there is for the provider to complain about.
        let Ok(real) = path.canonicalize() else { return false };
        let in_home = |name: &str| Some(std::env::home_dir()?.join(name));
        let of_variables = OWN_FILES.iter().flat_map(|(variable, usual)| {
            [std::env::var_os(variable).map(PathBuf::from), usual.and_then(in_home)]
        });
        let of_references = self.own_references.iter().filter(|own| own.scheme() == "file");
        let mut own = of_variables
            .flatten()
            .chain(of_references.map(|own| PathBuf::from(own.name())))
            .chain(self.own_paths.iter().cloned());
        // By what it is, not by its name: there are links.
        real.starts_with(PROCESSES) || own.any(|own| is_same_file(&own, &real) || is_below(&own, &real))
    }
}

impl Grant {
    fn parse(text: &str) -> Result<Grant, CredentialError> {
        let bad = |why: &'static str| CredentialError::BadGrant { given: text.to_owned(), why };
        let (reference, hosts) = match text.rsplit_once('@') {
            Some((reference, hosts)) => (reference, hosts.split(',').map(HostPattern::parse).collect()),
            None => (text, Some(Vec::new())),
        };
        let hosts = hosts
            .ok_or_else(|| bad("behind its last `@` are hosts, such as git.example or *.corp.example"))?;
        let (scheme, name) = reference.split_once(':').unwrap_or((reference, ""));
        let secrets = match (scheme, name) {
            (_, "") => return Err(bad("it is written like a credential reference, such as env:SRC_*")),
            ("env", name) => SecretPattern::Variables(name.to_owned()),
            ("file", name) => SecretPattern::of_files(name).ok_or_else(|| {
                bad("a file has an absolute path, and all files below a folder are file:/FOLDER/*")
            })?,
            ("vault", name) => {
                let Place { mount, path, field } =
                    Place::parse(name).ok_or_else(|| bad("write it as vault:MOUNT/PATH#FIELD"))?;
                let owned = str::to_owned;
                SecretPattern::Vault { mount: owned(mount), path: owned(path), field: field.map(owned) }
            }
            ("command", name) => SecretPattern::Command(words(name).map_err(bad)?),
            _ => return Err(bad("it begins with env:, file:, vault: or command:")),
        };
        Ok(Grant { secrets, hosts })
    }

    fn is_for(&self, host: &Host) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|pattern| pattern.matches(host))
    }
}

impl SecretPattern {
    fn of_files(name: &str) -> Option<SecretPattern> {
        let folder = name.strip_suffix('*').filter(|folder| folder.ends_with('/'));
        let path = PathBuf::from(folder.unwrap_or(name));
        let is_plain = path.is_absolute() && !folder.unwrap_or(name).contains('*') && !climbs(&path);
        match folder {
            _ if !is_plain => None,
            Some(_) => Some(SecretPattern::Below(path)),
            None => Some(SecretPattern::File(path)),
        }
    }

    fn matches(&self, reference: &CredentialReference) -> bool {
        let name = reference.name();
        match (self, reference.scheme()) {
            (SecretPattern::Exactly(allowed), _) => allowed == reference,
            (SecretPattern::Variables(pattern), "env") => is_like(name, pattern),
            (SecretPattern::File(path), "file") => !climbs(Path::new(name)) && Path::new(name) == path,
            (SecretPattern::Below(folder), "file") => {
                Path::new(name).canonicalize().is_ok_and(|real| is_below(folder, &real))
            }
            (SecretPattern::Vault { mount, path, field }, "vault") => {
                Place::parse(name).is_some_and(|place| {
                    is_like(place.mount, mount)
                        && is_like(place.path, path)
                        && field.as_deref().is_none_or(|field| place.field == Some(field))
                })
            }
            (SecretPattern::Command(allowed), "command") => {
                words(name).is_ok_and(|words| words.starts_with(allowed))
            }
            _ => false,
        }
    }
}

/// Whether two references lead to one secret, or to fields of one.
fn is_same_secret(one: &CredentialReference, other: &CredentialReference) -> bool {
    if one.scheme() != other.scheme() {
        return false;
    }
    match one.scheme() {
        "vault" => {
            let place = |reference: &CredentialReference| {
                Place::parse(reference.name()).map(|place| format!("{}/{}", place.mount, place.path))
            };
            place(one) == place(other)
        }
        "command" => words(one.name()) == words(other.name()),
        _ => one == other,
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    id(one).is_some_and(|found| Some(found) == id(other))
}

/// Whether a path without links is below a folder, which may be reached by one.
fn is_below(folder: &Path, real: &Path) -> bool {
    folder.canonicalize().is_ok_and(|folder| real.starts_with(&folder) && real != folder)
}

/// Whether a path has `..` in it.
fn climbs(path: &Path) -> bool {
    path.components().any(|part| part == Component::ParentDir)
}

/// Whether a text matches a pattern in which `*` stands for any text.
fn is_like(text: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return text == pattern };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
