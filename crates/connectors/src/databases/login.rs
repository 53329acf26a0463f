//! Who connects: the configuration's user, and what the data source's credential says, fetched each time.

use domesday_connector::credentials::{Credential, Method, Secret};
use domesday_connector::{ConnectorError, Host, Surroundings};
use serde_json::Value;

use super::config::DatabaseConfig;

/// A user and a password, as far as either is known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Login {
    pub user: Option<String>,
    pub password: Option<Secret>,
}

impl Login {
    /// The login for this server. With a configured user the credential is the password alone, `user:password`, or a
    /// JSON object; without one it has to name the user.
    pub async fn fetch(
        config: &DatabaseConfig,
        surroundings: &Surroundings,
        host: &Host,
    ) -> Result<Login, ConnectorError> {
        let user = config.user.clone();
        match (&surroundings.credential, config.authentication) {
            (_, Some(Method::Unauthenticated)) | (None, None) => return Ok(Login { user, password: None }),
            _ => {}
        }
        let (Some(user), Some(_)) = (&user, &surroundings.credential) else {
            return match surroundings.credential(Method::Database, host).await? {
                Credential::Database { user, password } => {
                    Ok(Login { user: Some(user), password: Some(password) })
                }
                _ => Ok(Login::default()),
            };
        };
        let secret = surroundings.secret(host).await?;
        let password = secret.map(|secret| password_of(user, &secret));
        Ok(Login { user: Some(user.clone()), password })
    }
}

fn password_of(user: &str, secret: &Secret) -> Secret {
    let whole = secret.expose();
    if let Ok(Value::Object(fields)) = serde_json::from_slice(whole)
        && let Some(password) = fields.get("password").and_then(Value::as_str)
    {
        return Secret::new(password.as_bytes().to_vec());
    }
    let named = whole.strip_prefix(user.as_bytes()).and_then(|rest| rest.strip_prefix(b":"));
    named.map_or_else(|| secret.clone(), |password| Secret::new(password.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_read_in_each_of_its_forms() {
        for (given, password) in [
            ("hunter2", "hunter2"),
            ("ann:hunter2", "hunter2"),
            ("bob:hunter2", "bob:hunter2"),
            (r#"{"user":"x","password":"hunter2"}"#, "hunter2"),
            (r#"{"pass":1}"#, r#"{"pass":1}"#),
        ] {
            assert_eq!(password_of("ann", &Secret::new(given.into())), Secret::new(password.into()));
        }
    }
}
