//! Provider `run`: secrets that were given to this process itself, such as the password in an address on its
//! command line. They are nowhere else: another process is to be given them again.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::{CredentialError, CredentialProvider, CredentialReference, Secret};

/// What references to it begin with.
pub(super) const RUN_SCHEME: &str = "run";

/// The secrets of this run, by name.
#[derive(Clone, Default)]
pub struct RunSecrets(BTreeMap<String, Secret>);

impl RunSecrets {
    /// Holds a secret. The reference to it.
    pub fn hold(&mut self, name: &str, secret: Secret) -> CredentialReference {
        self.0.insert(name.to_owned(), secret);
        CredentialReference { scheme: RUN_SCHEME.to_owned(), name: name.to_owned() }
    }
}

#[async_trait]
impl CredentialProvider for RunSecrets {
    fn scheme(&self) -> &'static str {
        RUN_SCHEME
    }

    async fn fetch(&self, reference: &CredentialReference) -> Result<Secret, CredentialError> {
        self.0.get(reference.name()).cloned().ok_or_else(|| {
            reference.unavailable(
                "it was given on the command line of the run that began this, and is kept nowhere: give it again",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_held_is_found_and_the_rest_is_asked_for() {
        let mut secrets = RunSecrets::default();
        let reference = secrets.hold("https://example.com/a:b", Secret::new(b"hunter2".to_vec()));
        assert_eq!(reference.to_string(), "run:https://example.com/a:b");
        assert!(reference.is_of_run());
        assert_eq!(secrets.fetch(&reference).await.unwrap().expose(), b"hunter2");
        let missing = RunSecrets::default().fetch(&reference).await.unwrap_err();
        assert!(missing.to_string().contains("give it again") && !missing.is_retryable(), "{missing}");
    }
}
