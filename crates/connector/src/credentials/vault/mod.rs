//! Provider `vault`: HashiCorp Vault's key-value store, version 2.
//!
//! `vault:MOUNT/PATH#FIELD` is a field of the latest version of a secret; without `#FIELD` it is all of them as
//! a JSON object, which is how a secret with several parts is read. The mount is `secret` when there is only one
//! name, and one with slashes in it is set apart with two: `vault:team/kv//app/db#password`. Where Vault is and
//! who asks is said where the process is started, in the variables that Vault's own programs use.
//!
//! Secrets are fetched each time. What is kept is the session of an AppRole login, for as long as Vault says
//! that it lasts, and not once Vault refuses it.

mod api;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use reqwest::Client;
use serde_json::Value;
use tokio::sync::Mutex;

use super::{CredentialError, CredentialProvider, CredentialReference, SECRET_LEN_MAX, Secret};
use api::{Answer, Api};
pub use settings::{VaultLogin, VaultSettings};

/// Where secrets are that do not say it.
const DEFAULT_MOUNT: &str = "secret";
/// How long an answer may take as a whole.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// A session is given up this long before it ends, or a tenth of its time if that is shorter.
const LEASE_MARGIN_MAX: Duration = Duration::from_secs(30);

/// A Vault, reached when it is asked.
#[derive(Default)]
pub struct Vault {
    /// `None` leaves it to the environment.
    settings: Option<VaultSettings>,
    /// Made at first use, with the certificates as they were then.
    client: OnceLock<Client>,
    /// Of an AppRole: one login at a time, shared by all who ask meanwhile.
    session: Mutex<Option<Session>>,
}

struct Session {
    token: Secret,
    /// `None` lasts until it is refused.
    until: Option<Instant>,
}

impl Vault {
    pub fn new(settings: VaultSettings) -> Vault {
        Vault { settings: Some(settings), ..Vault::default() }
    }

    /// The token to ask with. One of a login that Vault has `refused` is not used again.
    async fn token(
        &self,
        api: &Api<'_>,
        login: &VaultLogin,
        refused: Option<&Secret>,
    ) -> Result<Secret, CredentialError> {
        let (role_id, secret_id) = match login {
            VaultLogin::Token(token) => return Ok(token.clone()),
            VaultLogin::AppRole { role_id, secret_id } => (role_id, secret_id),
        };
        let mut session = self.session.lock().await;
        if let Some(session) = &*session {
            let lasts = session.until.is_none_or(|until| Instant::now() < until);
            if lasts && refused != Some(&session.token) {
                return Ok(session.token.clone());
            }
        }
        let (token, lease) = api.login(role_id, secret_id).await?;
        let until = (!lease.is_zero()).then(|| Instant::now() + (lease - LEASE_MARGIN_MAX.min(lease / 10)));
        *session = Some(Session { token: token.clone(), until });
        Ok(token)
    }
}

#[async_trait]
impl CredentialProvider for Vault {
    fn scheme(&self) -> &'static str {
        "vault"
    }

    async fn fetch(&self, reference: &CredentialReference) -> Result<Secret, CredentialError> {
        let form = || reference.unavailable("write it as vault:PATH#FIELD, or vault:MOUNT/PATH#FIELD");
        let place = Place::parse(reference.name()).ok_or_else(form)?;
        let settings = match &self.settings {
            Some(settings) => settings.clone(),
            None => VaultSettings::from_environment(reference).await?,
        };
        let client = match self.client.get() {
            Some(client) => client,
            None => {
                let client = api::client(&settings, reference, ANSWER_TIME_MAX)?;
                self.client.get_or_init(|| client)
            }
        };
        let api = Api::new(client, &settings, reference)?;
        let token = self.token(&api, &settings.login, None).await?;
        let answer = match api.read(&place, &token).await? {
            // A session may end before its time; a token has no successor.
            Answer::Denied if matches!(settings.login, VaultLogin::AppRole { .. }) => {
                let token = self.token(&api, &settings.login, Some(&token)).await?;
                api.read(&place, &token).await?
            }
            answer => answer,
        };
        let Answer::Data(data) = answer else {
            return Err(reference.unavailable(
                "vault does not let us read it: the token has expired, or has no policy for this path",
            ));
        };
        chosen(reference, &place, data)
    }
}

/// The field that is asked for, or all of them.
fn chosen(
    reference: &CredentialReference,
    place: &Place<'_>,
    mut data: Value,
) -> Result<Secret, CredentialError> {
    let value = match place.field {
        None => data,
        Some(field) => data.get_mut(field).map(Value::take).unwrap_or_default(),
    };
    let text = match value {
        Value::Null => return Err(reference.unavailable("the secret has no such field")),
        Value::String(text) => text,
        value => value.to_string(),
    };
    let secret = Secret::new(text.into_bytes());
    match secret.expose().len() {
        0 => Err(reference.unavailable("the field is empty")),
        len if len > SECRET_LEN_MAX => {
            Err(reference.unavailable(format!("the secret has more than {SECRET_LEN_MAX} bytes")))
        }
        _ => Ok(secret),
    }
}

/// Where in Vault a secret is.
#[derive(PartialEq, Debug)]
pub(super) struct Place<'a> {
    pub mount: &'a str,
    pub path: &'a str,
    pub field: Option<&'a str>,
}

impl<'a> Place<'a> {
    /// The place that what follows `vault:` means; `None` if it means none.
    pub(super) fn parse(name: &'a str) -> Option<Place<'a>> {
        let (whole, field) = match name.rsplit_once('#') {
            Some((whole, field)) => (whole, Some(field)),
            None => (name, None),
        };
        let (mount, path) =
            whole.split_once("//").or_else(|| whole.split_once('/')).unwrap_or((DEFAULT_MOUNT, whole));
        let is_way = |names: &str| {
            names.split('/').all(|name| !matches!(name, "" | "." | "..") && !name.contains(char::is_control))
        };
        let is_place = is_way(mount) && is_way(path) && field != Some("");
        is_place.then_some(Place { mount, path, field })
    }
}
