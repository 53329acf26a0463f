//! Credentials: referenced by name, fetched at run time, never stored.
//!
//! A data source's configuration says `env:PROD_TOKEN` or `file:/run/secrets/token`; whoever needs the
//! value asks the [`CredentialManager`] each time, so that a rotated secret is picked up on the next use.
//! Values live in [`Secret`], which shows nothing and is wiped when it goes. This module must not cache
//! values, and no error of it quotes one.

mod environment;
mod file;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

pub use environment::Environment;
pub use file::SecretFile;

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
    #[error("this is not a credential reference: write `env:NAME` or `file:PATH`, never the secret itself")]
    BadReference,
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

/// Resolves references through the provider of their scheme.
pub struct CredentialManager {
    providers: BTreeMap<&'static str, Box<dyn CredentialProvider>>,
}

impl Default for CredentialManager {
    /// The environment and files.
    fn default() -> Self {
        CredentialManager { providers: BTreeMap::new() }.with(Environment).with(SecretFile)
    }
}

impl fmt::Debug for CredentialManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CredentialManager").field(&self.providers.keys()).finish()
    }
}

impl CredentialManager {
    #[must_use]
    pub fn with(mut self, provider: impl CredentialProvider + 'static) -> CredentialManager {
        self.providers.insert(provider.scheme(), Box::new(provider));
        self
    }

    pub async fn resolve(&self, reference: &CredentialReference) -> Result<Secret, CredentialError> {
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

    #[tokio::test]
    async fn an_unknown_scheme_names_the_known_ones() {
        let error = CredentialManager::default().resolve(&"vault:x".parse().unwrap()).await.unwrap_err();
        assert_eq!(error.to_string(), "no provider for credentials of scheme `vault`; known: env, file");
        assert!(!error.is_retryable());
    }
}
