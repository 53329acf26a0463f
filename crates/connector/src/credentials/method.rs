//! How a source wants to be told who asks: the method is declared in the data source's configuration, the
//! secret is fetched each time, and read here as the method has it.
//!
//! A secret with several parts is a JSON object; one with one part is that part alone, or an object too.

use std::str;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CredentialError, CredentialReference, Secret};

/// A way to authenticate, as configurations name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    Unauthenticated,
    Github,
    S3,
    Gcs,
    Azure,
    SshKey,
    Basic,
    Bearer,
    Database,
}

/// A secret, read as its method has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Credential {
    Unauthenticated,
    /// A token of GitHub's: personal, fine-grained, or of an app's installation.
    Github {
        token: Secret,
    },
    S3 {
        access_key_id: String,
        secret_access_key: Secret,
        session_token: Option<Secret>,
    },
    /// The JSON key of a service account.
    Gcs {
        service_account: Secret,
    },
    Azure(AzureCredential),
    /// A private key in PEM or OpenSSH form.
    SshKey {
        private_key: Secret,
    },
    Basic {
        user: String,
        password: Secret,
    },
    Bearer {
        token: Secret,
    },
    Database {
        user: String,
        password: Secret,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AzureCredential {
    AccessKey(Secret),
    SasToken(Secret),
    ClientSecret { tenant_id: String, client_id: String, client_secret: Secret },
}

impl Method {
    pub const ALL: &'static [Method] = &[
        Method::Unauthenticated,
        Method::Github,
        Method::S3,
        Method::Gcs,
        Method::Azure,
        Method::SshKey,
        Method::Basic,
        Method::Bearer,
        Method::Database,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Method::Unauthenticated => "unauthenticated",
            Method::Github => "github",
            Method::S3 => "s3",
            Method::Gcs => "gcs",
            Method::Azure => "azure",
            Method::SshKey => "ssh_key",
            Method::Basic => "basic",
            Method::Bearer => "bearer",
            Method::Database => "database",
        }
    }

    /// The parts of a secret, or which one is missing. Nothing of the secret is quoted.
    pub fn read(
        self,
        reference: &CredentialReference,
        secret: &Secret,
    ) -> Result<Credential, CredentialError> {
        let parts = Parts { method: self, reference, secret, fields: fields(secret) };
        Ok(match self {
            Method::Unauthenticated => Credential::Unauthenticated,
            Method::Github => Credential::Github { token: parts.only("token")? },
            Method::Bearer => Credential::Bearer { token: parts.only("token")? },
            Method::SshKey => Credential::SshKey { private_key: parts.only("private_key")? },
            Method::Gcs => match parts.fields {
                Some(_) => Credential::Gcs { service_account: secret.clone() },
                None => return Err(parts.unusable("the JSON key of a service account")),
            },
            Method::S3 => Credential::S3 {
                access_key_id: parts.text("access_key_id")?,
                secret_access_key: parts.needed("secret_access_key")?,
                session_token: parts.part("session_token"),
            },
            Method::Azure => Credential::Azure(parts.azure()?),
            Method::Basic => {
                let (user, password) = parts.login()?;
                Credential::Basic { user, password }
            }
            Method::Database => {
                let (user, password) = parts.login()?;
                Credential::Database { user, password }
            }
        })
    }
}

fn fields(secret: &Secret) -> Option<Map<String, Value>> {
    match serde_json::from_slice(secret.expose()) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// A secret taken apart.
struct Parts<'a> {
    method: Method,
    reference: &'a CredentialReference,
    secret: &'a Secret,
    fields: Option<Map<String, Value>>,
}

impl Parts<'_> {
    fn part(&self, name: &str) -> Option<Secret> {
        let text = self.fields.as_ref()?.get(name)?.as_str()?;
        (!text.is_empty()).then(|| Secret::new(text.as_bytes().to_vec()))
    }

    fn needed(&self, name: &str) -> Result<Secret, CredentialError> {
        self.part(name).ok_or_else(|| self.unusable(&format!("a JSON object with `{name}`")))
    }

    /// A part that is not itself secret.
    fn text(&self, name: &str) -> Result<String, CredentialError> {
        let part = self.needed(name)?;
        Ok(String::from_utf8_lossy(part.expose()).into_owned())
    }

    /// The one part there is: the secret itself, or the field of an object.
    fn only(&self, name: &str) -> Result<Secret, CredentialError> {
        match self.fields {
            Some(_) => self.needed(name),
            None => Ok(self.secret.clone()),
        }
    }

    /// An object with `user` and `password`, or `user:password`.
    fn login(&self) -> Result<(String, Secret), CredentialError> {
        if self.fields.is_some() {
            return Ok((self.text("user")?, self.needed("password")?));
        }
        let whole = self.secret.expose();
        let colon = whole.iter().position(|&byte| byte == b':');
        let parts = colon.and_then(|at| Some((str::from_utf8(&whole[..at]).ok()?, &whole[at + 1..])));
        match parts {
            Some((user, password)) => Ok((user.to_owned(), Secret::new(password.to_vec()))),
            None => Err(self.unusable("`user:password`, or a JSON object with `user` and `password`")),
        }
    }

    fn azure(&self) -> Result<AzureCredential, CredentialError> {
        if self.fields.is_none() {
            let is_sas = self.secret.expose().windows(4).any(|part| part == b"sig=");
            let secret = self.secret.clone();
            return Ok(if is_sas {
                AzureCredential::SasToken(secret)
            } else {
                AzureCredential::AccessKey(secret)
            });
        }
        if let Some(key) = self.part("access_key") {
            return Ok(AzureCredential::AccessKey(key));
        }
        if let Some(token) = self.part("sas_token") {
            return Ok(AzureCredential::SasToken(token));
        }
        let expected = "a JSON object with `access_key`, with `sas_token`, or with `tenant_id`, `client_id` and \
                        `client_secret`";
        match (self.part("tenant_id"), self.part("client_id"), self.part("client_secret")) {
            (Some(_), Some(_), Some(client_secret)) => Ok(AzureCredential::ClientSecret {
                tenant_id: self.text("tenant_id")?,
                client_id: self.text("client_id")?,
                client_secret,
            }),
            _ => Err(self.unusable(expected)),
        }
    }

    fn unusable(&self, expected: &str) -> CredentialError {
        let method = self.method.as_str();
        self.reference.unavailable(format!("authentication `{method}` expects {expected}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(method: Method, secret: &str) -> Result<Credential, CredentialError> {
        method.read(&"env:A".parse().unwrap(), &Secret::new(secret.into()))
    }

    fn secret(text: &str) -> Secret {
        Secret::new(text.into())
    }

    #[test]
    fn every_method_reads_its_parts() {
        let key = json!({ "type": "service_account", "private_key": "k" }).to_string();
        for (method, given, expected) in [
            (Method::Unauthenticated, "", Credential::Unauthenticated),
            (Method::Github, "t", Credential::Github { token: secret("t") }),
            (Method::Github, r#"{"token":"t"}"#, Credential::Github { token: secret("t") }),
            (Method::Bearer, "t", Credential::Bearer { token: secret("t") }),
            (Method::Bearer, r#"{"token":"t","more":1}"#, Credential::Bearer { token: secret("t") }),
            (Method::SshKey, "k", Credential::SshKey { private_key: secret("k") }),
            (Method::SshKey, r#"{"private_key":"k"}"#, Credential::SshKey { private_key: secret("k") }),
            (Method::Gcs, &key, Credential::Gcs { service_account: secret(&key) }),
            (Method::Basic, "u:p:q", Credential::Basic { user: "u".into(), password: secret("p:q") }),
            (
                Method::Basic,
                r#"{"user":"u","password":"p"}"#,
                Credential::Basic { user: "u".into(), password: secret("p") },
            ),
            (Method::Database, "u:p", Credential::Database { user: "u".into(), password: secret("p") }),
            (
                Method::S3,
                r#"{"access_key_id":"a","secret_access_key":"s"}"#,
                Credential::S3 {
                    access_key_id: "a".into(),
                    secret_access_key: secret("s"),
                    session_token: None,
                },
            ),
            (
                Method::S3,
                r#"{"access_key_id":"a","secret_access_key":"s","session_token":"t"}"#,
                Credential::S3 {
                    access_key_id: "a".into(),
                    secret_access_key: secret("s"),
                    session_token: Some(secret("t")),
                },
            ),
            (Method::Azure, "key==", Credential::Azure(AzureCredential::AccessKey(secret("key==")))),
            (
                Method::Azure,
                "sv=1&sig=abc",
                Credential::Azure(AzureCredential::SasToken(secret("sv=1&sig=abc"))),
            ),
            (
                Method::Azure,
                r#"{"access_key":"k"}"#,
                Credential::Azure(AzureCredential::AccessKey(secret("k"))),
            ),
            (
                Method::Azure,
                r#"{"sas_token":"sig=x"}"#,
                Credential::Azure(AzureCredential::SasToken(secret("sig=x"))),
            ),
            (
                Method::Azure,
                r#"{"tenant_id":"t","client_id":"c","client_secret":"s"}"#,
                Credential::Azure(AzureCredential::ClientSecret {
                    tenant_id: "t".into(),
                    client_id: "c".into(),
                    client_secret: secret("s"),
                }),
            ),
        ] {
            assert_eq!(read(method, given), Ok(expected), "{method:?}");
        }
    }

    #[test]
    fn a_missing_part_is_named_and_nothing_is_quoted() {
        for (method, given, named) in [
            (Method::Github, r#"{"tok":"hunter2"}"#, "`token`"),
            (Method::Github, r#"{"token":""}"#, "`token`"),
            (Method::Bearer, r#"{"token":["hunter2"]}"#, "`token`"),
            (Method::SshKey, r#"{"key":"hunter2"}"#, "`private_key`"),
            (Method::Basic, "hunter2", "`user:password`"),
            (Method::Basic, r#"{"user":"hunter2"}"#, "`password`"),
            (Method::Database, r#"{"password":"hunter2"}"#, "`user`"),
            (Method::S3, "hunter2", "`access_key_id`"),
            (Method::S3, r#"{"access_key_id":"hunter2"}"#, "`secret_access_key`"),
            (Method::Azure, r#"{"tenant_id":"hunter2","client_id":"hunter2"}"#, "`client_secret`"),
            (Method::Gcs, "hunter2", "service account"),
        ] {
            let error = read(method, given).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(named) && said.contains(method.as_str()), "{said}");
            assert!(!said.contains("hunter2") && !error.is_retryable(), "{said}");
        }
    }

    #[test]
    fn configurations_name_methods() {
        for &method in Method::ALL {
            assert_eq!(json!(method), json!(method.as_str()));
            assert_eq!(serde_json::from_value::<Method>(json!(method.as_str())).unwrap(), method);
        }
    }

    #[test]
    fn a_credential_shows_nothing() {
        for (method, given) in [
            (Method::Github, "hunter2"),
            (Method::Basic, "user:hunter2"),
            (Method::S3, r#"{"access_key_id":"a","secret_access_key":"hunter2"}"#),
            (Method::Azure, "hunter2"),
        ] {
            assert!(!format!("{:?}", read(method, given).unwrap()).contains("hunter2"));
        }
    }
}
