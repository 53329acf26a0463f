//! Where Vault is and who asks, as the environment says it.

use std::env;
use std::path::PathBuf;

use super::super::{CredentialError, CredentialProvider, CredentialReference, Secret, SecretFile};

/// The file that `vault login` leaves a token in, in the user's home.
const TOKEN_FILE: &str = ".vault-token";

#[derive(Clone, Debug)]
pub struct VaultSettings {
    /// `VAULT_ADDR`, such as `https://vault.example.com:8200`.
    pub address: String,
    /// `VAULT_NAMESPACE`, where there are some.
    pub namespace: Option<String>,
    /// `VAULT_CACERT`: the file of the only certificates to trust, in place of the system's.
    pub certificates: Option<PathBuf>,
    pub login: VaultLogin,
}

/// Who asks.
#[derive(Clone, Debug)]
pub enum VaultLogin {
    /// `VAULT_TOKEN`, or what is in the file `VAULT_TOKEN_FILE` or in `~/.vault-token`.
    Token(Secret),
    /// `VAULT_ROLE_ID`, and `VAULT_SECRET_ID` or what is in the file `VAULT_SECRET_ID_FILE`.
    AppRole { role_id: String, secret_id: Secret },
}

impl VaultSettings {
    /// As the environment and its files say it now.
    pub(super) async fn from_environment(
        reference: &CredentialReference,
    ) -> Result<VaultSettings, CredentialError> {
        let Some(address) = variable("VAULT_ADDR") else {
            return Err(
                reference.unavailable("VAULT_ADDR is not set: export it where this process is started")
            );
        };
        Ok(VaultSettings {
            address,
            namespace: variable("VAULT_NAMESPACE"),
            certificates: variable("VAULT_CACERT").map(PathBuf::from),
            login: login(reference).await?,
        })
    }
}

async fn login(reference: &CredentialReference) -> Result<VaultLogin, CredentialError> {
    if let Some(token) = secret("VAULT_TOKEN", "VAULT_TOKEN_FILE").await? {
        return Ok(VaultLogin::Token(token));
    }
    let role = (variable("VAULT_ROLE_ID"), secret("VAULT_SECRET_ID", "VAULT_SECRET_ID_FILE").await?);
    if let (Some(role_id), Some(secret_id)) = role {
        return Ok(VaultLogin::AppRole { role_id, secret_id });
    }
    let left_by_login = env::home_dir().map(|home| home.join(TOKEN_FILE)).filter(|file| file.exists());
    match left_by_login.as_deref().and_then(|file| file.to_str()) {
        Some(file) => Ok(VaultLogin::Token(from_file(file).await?)),
        None => Err(reference.unavailable(
            "nobody is logged in to vault: set VAULT_TOKEN, VAULT_TOKEN_FILE, or VAULT_ROLE_ID and VAULT_SECRET_ID \
             where this process is started",
        )),
    }
}

/// A secret in a variable, or in the file that another one names.
async fn secret(name: &str, file: &str) -> Result<Option<Secret>, CredentialError> {
    match (variable(name), variable(file)) {
        (Some(value), _) => Ok(Some(Secret::new(value.into_bytes()))),
        (None, Some(file)) => from_file(&file).await.map(Some),
        (None, None) => Ok(None),
    }
}

async fn from_file(path: &str) -> Result<Secret, CredentialError> {
    SecretFile.fetch(&format!("file:{path}").parse()?).await
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
