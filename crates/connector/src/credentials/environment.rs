//! Provider `env`: a variable of this process's environment.

use std::os::unix::ffi::OsStringExt;

use async_trait::async_trait;

use super::{CredentialError, CredentialProvider, CredentialReference, Secret};

pub struct Environment;

#[async_trait]
impl CredentialProvider for Environment {
    fn scheme(&self) -> &'static str {
        "env"
    }

    async fn fetch(&self, reference: &CredentialReference) -> Result<Secret, CredentialError> {
        match std::env::var_os(reference.name()) {
            Some(value) if !value.is_empty() => Ok(Secret::new(value.into_vec())),
            _ => {
                let detail = "the variable is not set: export it where this process is started";
                Err(reference.unavailable(detail))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_variable_is_read_and_a_missing_one_is_named() {
        let found = Environment.fetch(&"env:PATH".parse().unwrap()).await.unwrap();
        assert_eq!(found.expose(), std::env::var("PATH").unwrap().as_bytes());
        let missing = Environment.fetch(&"env:DOMESDAY_NO_SUCH".parse().unwrap()).await.unwrap_err();
        assert!(missing.to_string().contains("env:DOMESDAY_NO_SUCH: the variable is not set"));
    }
}
