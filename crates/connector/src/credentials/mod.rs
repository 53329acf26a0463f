//! Credentials: referenced by name, fetched at run time, never stored.
//!
//! A data source's configuration says `env:PROD_TOKEN` or `file:/run/secrets/token`; whoever needs the
//! value asks the [`CredentialManager`] each time, so that a rotated secret is picked up on the next use. For a data
//! source it says which server the secret is for, and the [`CredentialPolicy`] decides.
//! Values live in [`Secret`], which shows nothing and is wiped when it goes. This module must not cache
//! values (a session with a provider lasts as long as that provider says), and no error of it quotes one.

mod command;
mod environment;
mod file;
mod method;
mod policy;
mod runtime;
mod vault;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::host::Host;

pub use command::CommandOutput;
pub use environment::Environment;
pub use file::SecretFile;
pub use method::{AzureCredential, Credential, Method};
pub use policy::CredentialPolicy;
use runtime::RUN_SCHEME;
pub use runtime::RunSecrets;
pub use vault::{Vault, VaultLogin, VaultSettings};

/// The providers that definitions may name, and how references to each are written.
const REFERENCE_FORMS: [(&str, &str); 4] = [
    ("env", "env:NAME"),
    ("file", "file:PATH"),
    ("vault", "vault:MOUNT/PATH#FIELD"),
    ("command", "command:PROGRAM"),
];

/// How references are written, for people: `env:NAME, file:PATH or …`.
pub fn reference_forms() -> String {
    let forms = REFERENCE_FORMS.map(|(_, form)| form);
    let (last, others) = forms.split_last().expect("there are providers");
    format!("{} or {last}", others.join(", "))
}

/// Bytes of the longest secret; nothing that is meant to be one is longer.
pub const SECRET_LEN_MAX: usize = 1 << 20;

/// A secret value. It prints as nothing and is wiped from memory when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    pub fn new(bytes: Vec<u8>) -> Secret {
        Secret(Zeroizing::new(bytes))
    }

    /// The value itself. Hand it on to whatever needs it, and to nothing that keeps or prints it.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// What was read from somewhere that ends its lines, and at most one byte beyond the longest secret: without
    /// its last line break, or why it is none. `what` says where it came from.
    fn checked(mut self, reference: &CredentialReference, what: &str) -> Result<Secret, CredentialError> {
        if self.0.len() > SECRET_LEN_MAX {
            return Err(reference.unavailable(format!("{what} more than {SECRET_LEN_MAX} bytes")));
        }
        if self.0.last() == Some(&b'\n') {
            self.0.pop();
        }
        if self.0.is_empty() {
            return Err(reference.unavailable(format!("{what} nothing")));
        }
        Ok(self)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Where a credential is: `scheme:name`, such as `env:PROD_TOKEN`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CredentialReference {
    scheme: String,
    name: String,
}

impl CredentialReference {
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A reference as a definition may have it. Nothing of it is quoted when it is none: what was given may be
    /// the secret itself, a colon in it included.
    pub fn defined(text: &str) -> Result<CredentialReference, CredentialError> {
        let reference: CredentialReference = text.parse()?;
        match REFERENCE_FORMS.iter().any(|(scheme, _)| *scheme == reference.scheme) {
            true => Ok(reference),
            false => Err(CredentialError::BadReference),
        }
    }

    /// Whether it leads to a secret that only the process that was given it has.
    pub fn is_of_run(&self) -> bool {
        self.scheme == RUN_SCHEME
    }

    /// It cannot be had, and asking again does not help.
    fn unavailable(&self, detail: impl Into<String>) -> CredentialError {
        let (reference, detail) = (self.to_string(), detail.into());
        CredentialError::Unavailable { reference, detail, retryable: false }
    }

    /// It cannot be had now.
    fn unavailable_now(&self, detail: impl Into<String>) -> CredentialError {
        let (reference, detail) = (self.to_string(), detail.into());
        CredentialError::Unavailable { reference, detail, retryable: true }
    }
}

impl fmt::Display for CredentialReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.scheme, self.name)
    }
}

impl From<CredentialReference> for String {
    fn from(reference: CredentialReference) -> String {
        reference.to_string()
    }
}

impl FromStr for CredentialReference {
    type Err = CredentialError;

    fn from_str(text: &str) -> Result<Self, CredentialError> {
        match text.split_once(':') {
            Some((scheme, name)) if !scheme.is_empty() && !name.is_empty() => {
                Ok(CredentialReference { scheme: scheme.to_owned(), name: name.to_owned() })
            }
            // Not quoted: what was typed here by mistake may be the secret itself.
            _ => Err(CredentialError::BadReference),
        }
    }
}

impl TryFrom<String> for CredentialReference {
    type Error = CredentialError;

    fn try_from(text: String) -> Result<Self, CredentialError> {
        text.parse()
    }
}

/// Why a credential could not be had.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CredentialError {
    #[error("this is not a credential reference: write {}, never the secret itself", reference_forms())]
    BadReference,
    #[error("`{given}` allows nothing: {why}")]
    BadGrant { given: String, why: &'static str },
    #[error("credential {reference}: {detail}")]
    Forbidden { reference: String, detail: String },
    #[error("authentication `{}` needs a credential: give the data source a reference to one", .0.as_str())]
    Missing(Method),
    #[error("no provider for credentials of scheme `{scheme}`; known: {known}")]
    UnknownScheme { scheme: String, known: String },
    #[error("credential {reference}: {detail}")]
    Unavailable {
        reference: String,
        detail: String,
        /// Whether asking again later may help.
        retryable: bool,
    },
}

impl CredentialError {
    pub fn is_retryable(&self) -> bool {
        matches!(self, CredentialError::Unavailable { retryable: true, .. })
    }
}

/// One place where secrets are kept.
#[async_trait]
pub trait CredentialProvider: Send + Sync {
    /// What references to it begin with.
    fn scheme(&self) -> &'static str;

    async fn fetch(&self, reference: &CredentialReference) -> Result<Secret, CredentialError>;
}

/// Resolves references through the provider of their scheme, as far as its policy allows.
pub struct CredentialManager {
    providers: BTreeMap<&'static str, Box<dyn CredentialProvider>>,
    policy: CredentialPolicy,
}

impl Default for CredentialManager {
    /// Every provider there is; no data source is given anything, and no secret is held.
    fn default() -> Self {
        CredentialManager { providers: BTreeMap::new(), policy: CredentialPolicy::default() }
            .with(Environment)
            .with(SecretFile)
            .with(Vault::default())
            .with(CommandOutput::default())
            .with(RunSecrets::default())
    }
}

impl fmt::Debug for CredentialManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CredentialManager").field(&self.providers.keys()).finish()
    }
}

impl CredentialManager {
    /// Takes the place of another provider of its scheme.
    #[must_use]
    pub fn with(mut self, provider: impl CredentialProvider + 'static) -> CredentialManager {
        self.providers.insert(provider.scheme(), Box::new(provider));
        self
    }

    /// Lets this policy decide what data sources are given.
    #[must_use]
    pub fn under(self, policy: CredentialPolicy) -> CredentialManager {
        CredentialManager { policy, ..self }
    }

    pub fn policy(&self) -> &CredentialPolicy {
        &self.policy
    }

    /// A data source's secret, to be sent to this server and no other.
    pub async fn resolve(
        &self,
        reference: &CredentialReference,
        host: &Host,
    ) -> Result<Secret, CredentialError> {
        self.policy.check(reference, Some(host))?;
        self.resolve_own(reference).await
    }

    /// A data source's secret, to be looked at here and sent nowhere.
    pub async fn look_at(&self, reference: &CredentialReference) -> Result<Secret, CredentialError> {
        self.policy.check(reference, None)?;
        self.resolve_own(reference).await
    }

    /// A secret that this process itself needs, by a reference that whoever started it gave.
    pub async fn resolve_own(&self, reference: &CredentialReference) -> Result<Secret, CredentialError> {
        match self.providers.get(reference.scheme()) {
            Some(provider) => provider.fetch(reference).await,
            None => Err(CredentialError::UnknownScheme {
                scheme: reference.scheme().to_owned(),
                known: self.providers.keys().copied().collect::<Vec<_>>().join(", "),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_shows_nothing() {
        let secret = Secret::new(b"hunter2".to_vec());
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.expose(), b"hunter2");
    }

    #[test]
    fn references_have_a_scheme_and_errors_never_quote_them() {
        let reference: CredentialReference = "file:/run/secrets/a:b".parse().unwrap();
        assert_eq!((reference.scheme(), reference.name()), ("file", "/run/secrets/a:b"));
        for wrong in ["hunter2", ":x", "env:", ""] {
            let error = wrong.parse::<CredentialReference>().unwrap_err();
            assert!(!error.to_string().contains("hunter2"));
        }
        let json = serde_json::to_string(&reference).unwrap();
        assert_eq!(serde_json::from_str::<CredentialReference>(&json).unwrap(), reference);
    }

    #[test]
    fn a_definition_names_a_provider_there_is_or_nothing_of_it_is_quoted() {
        for good in ["env:A", "file:/a", "vault:a#b", "command:/bin/a b"] {
            assert_eq!(CredentialReference::defined(good).unwrap().to_string(), good);
        }
        for wrong in ["hunter2", "hunter2:x", "user:hunter2", "env:", "postgresql://u:hunter2@h", "run:x"] {
            let told = CredentialReference::defined(wrong).unwrap_err().to_string();
            assert!(told.contains(&reference_forms()) && !told.contains("hunter2"), "{told}");
        }
    }

    #[tokio::test]
    async fn every_scheme_has_its_provider_and_an_unknown_one_names_them() {
        let manager = CredentialManager::default();
        let mut known: Vec<&str> = REFERENCE_FORMS.map(|(scheme, _)| scheme).to_vec();
        known.push(RUN_SCHEME);
        known.sort_unstable();
        assert!(manager.providers.keys().eq(&known));
        let error = manager.resolve_own(&"ftp:x".parse().unwrap()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("no provider for credentials of scheme `ftp`; known: {}", known.join(", "))
        );
        assert!(!error.is_retryable());
    }

    #[tokio::test]
    async fn a_rotated_secret_is_picked_up_on_the_next_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let private = fs::Permissions::from_mode(0o600);
        let manager = CredentialManager::default();
        let reference = format!("file:{}", path.display()).parse().unwrap();
        for secret in ["first", "second"] {
            fs::write(&path, secret).unwrap();
            fs::set_permissions(&path, private.clone()).unwrap();
            assert_eq!(manager.resolve_own(&reference).await.unwrap().expose(), secret.as_bytes());
        }
    }
}
