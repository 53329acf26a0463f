//! Who asks: credentials as the data source has them, or as the cloud's own chain finds them, and the signature
//! they put on a request. Both come from `object_store`.
//!
//! What the cloud's own chain finds is nobody's to send elsewhere: it goes to that cloud's servers, and to endpoints
//! that whoever started the process named.
//!
//! A secret is fetched again after [`SECRET_TIME_MAX`], and at once when the store refuses the one in use, so that a
//! rotated one is picked up. What is derived from a secret, such as a token, is kept while the secret is the same.

use std::sync::Arc;
use std::time::{Duration, Instant};

use domesday_connector::credentials::{AzureCredential as AzureSecret, Credential, Method, Secret};
use domesday_connector::{ConnectorError, Host, Surroundings};
use object_store::aws::{AmazonS3Builder, AwsAuthorizer, AwsCredential, AwsCredentialProvider};
use object_store::azure::{AzureAuthorizer, AzureCredentialProvider, MicrosoftAzureBuilder};
use object_store::client::HttpRequest;
use object_store::gcp::{GcpCredentialProvider, GoogleCloudStorageBuilder};
use object_store::{HeaderValue, RetryConfig, StaticCredentialProvider};
use reqwest::Url;
use tokio::sync::Mutex;

use super::config::{Kind, ObjectsConfig};
use super::{clouds, profile};

/// How long a secret is used before it is fetched again.
const SECRET_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a secret that was refused and found unchanged is not fetched again for another refusal: a bucket full of
/// forbidden objects does not ask for it each time.
const UNCHANGED_TIME: Duration = Duration::from_secs(5);
/// Retries of a request for a token.
const TOKEN_RETRIES: usize = 3;
/// How long a token may take, retries included.
const TOKEN_TIME_MAX: Duration = Duration::from_secs(30);

/// Makes requests say who asks.
#[derive(Clone)]
enum Signer {
    Nobody,
    S3(AwsCredentialProvider),
    Gcs(GcpCredentialProvider),
    Azure(AzureCredentialProvider),
}

struct Current {
    fetched: Instant,
    /// When it was refused and fetched again, and was the same.
    unchanged: Option<Instant>,
    /// `None`: the cloud's own chain, which renews what it finds itself.
    credential: Option<Credential>,
    signer: Signer,
}

pub(super) struct Identity {
    kind: Kind,
    config: ObjectsConfig,
    surroundings: Surroundings,
    current: Mutex<Option<Current>>,
}

impl Identity {
    pub fn new(kind: Kind, config: &ObjectsConfig, surroundings: &Surroundings) -> Identity {
        let (config, surroundings) = (config.clone(), surroundings.clone());
        Identity { kind, config, surroundings, current: Mutex::new(None) }
    }

    /// How the source authenticates; `None` is the cloud's own chain.
    fn method(&self) -> Option<Method> {
        let has_credential = self.surroundings.credential.is_some();
        self.config.authentication.or(has_credential.then_some(self.kind.method()))
    }

    /// Signs a request to this address.
    pub async fn sign(
        &self,
        request: &mut HttpRequest,
        url: &Url,
        region: &str,
    ) -> Result<(), ConnectorError> {
        let host = Host::of_url(url);
        match self.method() {
            None => self.check_ambient(url, &host)?,
            Some(Method::Unauthenticated) => {}
            Some(_) => self.surroundings.check_host(&host)?,
        }
        let none = |error: object_store::Error| self.no_credential(&error);
        let signed = match self.signer(&host).await? {
            Signer::Nobody => Ok(()),
            Signer::S3(provider) => {
                let credential = provider.get_credential().await.map_err(none)?;
                AwsAuthorizer::new(&credential, "s3", region).try_authorize(request, None)
            }
            Signer::Gcs(provider) => {
                let credential = provider.get_credential().await.map_err(none)?;
                bearer(request, &credential.bearer);
                Ok(())
            }
            Signer::Azure(provider) => {
                let credential = provider.get_credential().await.map_err(none)?;
                let account = self.config.account.as_deref().unwrap_or_default();
                AzureAuthorizer::new(&credential, account).try_authorize(request)
            }
        };
        signed.map_err(|error| ConnectorError::Denied {
            detail: format!("a request could not be signed: {error}"),
        })
    }

    /// That nothing says who asks. The cloud's chain ends at the machine's own identity, whose address says nothing to
    /// who has none.
    fn no_credential(&self, error: &object_store::Error) -> ConnectorError {
        tracing::debug!(%error, "no credential");
        let detail = match (self.method(), self.kind) {
            (None, Kind::S3) => {
                "no credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in \
                 ~/.aws/credentials (AWS_PROFILE); or give --credential; a public bucket is read with \
                 `--set authentication=unauthenticated`"
            }
            (None, Kind::Gcs) => {
                "no credentials found: set GOOGLE_APPLICATION_CREDENTIALS to the key of a service account, or run \
                 `gcloud auth application-default login`; or give --credential; a public bucket is read with \
                 `--set authentication=unauthenticated`"
            }
            (None, Kind::Azure) => {
                "no credentials found: set AZURE_STORAGE_ACCOUNT_KEY, or AZURE_CLIENT_ID, AZURE_TENANT_ID and \
                 AZURE_CLIENT_SECRET; or give --credential; a public container is read with \
                 `--set authentication=unauthenticated`"
            }
            (Some(_), _) => "no token for the credential to be had: check that it is valid",
        };
        ConnectorError::Denied { detail: detail.to_owned() }
    }

    /// Whether credentials of the cloud's own chain may go to this address.
    fn check_ambient(&self, url: &Url, host: &Host) -> Result<(), ConnectorError> {
        let is_clouds = url.scheme() == "https" && clouds::is_own_host(self.kind, host.name());
        if is_clouds
            || self.config.is_endpoint_of_environment()
            || self.surroundings.credentials.policy().allows_endpoint(host)
        {
            return Ok(());
        }
        let kind = self.kind.as_str();
        Err(ConnectorError::Denied {
            detail: format!(
                "the credentials of this machine are for the servers of {kind} itself, over https, and not for \
                 {host}: give the data source a credential or `authentication = \"unauthenticated\"`, or start this \
                 process with --allow-endpoint {host}"
            ),
        })
    }

    async fn signer(&self, host: &Host) -> Result<Signer, ConnectorError> {
        // Held while a secret is fetched: those who come meanwhile wait for it and do not fetch it too.
        let mut current = self.current.lock().await;
        match &*current {
            // The cloud's own chain renews what it finds itself.
            Some(current) if current.credential.is_none() || current.fetched.elapsed() < SECRET_TIME_MAX => {
                Ok(current.signer.clone())
            }
            _ => self.renew(&mut current, host).await.map(|(signer, _)| signer),
        }
    }

    /// Fetches a secret that was refused again; whether it is another one now, so that a second try is worth it.
    pub async fn has_changed(&self, url: &Url) -> bool {
        let mut current = self.current.lock().await;
        let is_pointless = current.as_ref().is_none_or(|current| {
            matches!(current.credential, None | Some(Credential::Unauthenticated))
                || current.unchanged.is_some_and(|since| since.elapsed() < UNCHANGED_TIME)
        });
        if is_pointless {
            return false;
        }
        let has_changed =
            self.renew(&mut current, &Host::of_url(url)).await.is_ok_and(|(_, has_changed)| has_changed);
        if let (Some(current), false) = (&mut *current, has_changed) {
            current.unchanged = Some(Instant::now());
        }
        has_changed
    }

    /// Fetches the secret; the signer for it, and whether it is another than before.
    async fn renew(
        &self,
        current: &mut Option<Current>,
        host: &Host,
    ) -> Result<(Signer, bool), ConnectorError> {
        let credential = match self.method() {
            Some(method) => Some(self.surroundings.credential(method, host).await?),
            None => None,
        };
        let (signer, has_changed) = match current {
            Some(current) if current.credential == credential => (current.signer.clone(), false),
            _ => (self.make_signer(credential.as_ref())?, true),
        };
        *current = Some(Current {
            fetched: Instant::now(),
            unchanged: current.take().filter(|_| !has_changed).and_then(|current| current.unchanged),
            credential,
            signer: signer.clone(),
        });
        Ok((signer, has_changed))
    }

    fn make_signer(&self, credential: Option<&Credential>) -> Result<Signer, ConnectorError> {
        let unusable = |error: object_store::Error| ConnectorError::Denied {
            detail: format!("the credential cannot be used: {error}"),
        };
        match credential {
            Some(Credential::Unauthenticated) => Ok(Signer::Nobody),
            None => self.default_chain().map_err(unusable),
            Some(Credential::S3 { access_key_id, secret_access_key, session_token }) => {
                let credential = AwsCredential {
                    key_id: header_text(access_key_id.as_bytes())?,
                    secret_key: text(secret_access_key)?,
                    token: session_token.as_ref().map(|token| header_text(token.expose())).transpose()?,
                };
                Ok(Signer::S3(Arc::new(StaticCredentialProvider::new(credential))))
            }
            Some(Credential::Gcs { service_account }) => {
                let builder =
                    GoogleCloudStorageBuilder::new().with_service_account_key(text(service_account)?);
                self.gcs(builder).map_err(unusable)
            }
            Some(Credential::Azure(secret)) => {
                let account = self.config.account.clone().unwrap_or_default();
                let builder = MicrosoftAzureBuilder::new().with_account(account);
                let builder = match secret {
                    AzureSecret::AccessKey(key) => builder.with_access_key(text(key)?),
                    AzureSecret::SasToken(token) => {
                        let pairs = object_store::azure::split_sas(&text(token)?).map_err(unusable)?;
                        builder.with_sas_authorization(pairs)
                    }
                    AzureSecret::ClientSecret { tenant_id, client_id, client_secret } => {
                        builder.with_client_secret_authorization(client_id, text(client_secret)?, tenant_id)
                    }
                };
                self.azure(builder).map_err(unusable)
            }
            Some(_) => Err(unusable_form()),
        }
    }

    /// What the cloud's own tools would find: the environment, files, the machine's own identity.
    fn default_chain(&self) -> Result<Signer, object_store::Error> {
        match self.kind {
            Kind::S3 => {
                if let Some(credential) = profile::find() {
                    return Ok(Signer::S3(Arc::new(StaticCredentialProvider::new(credential))));
                }
                let region = self
                    .config
                    .region
                    .iter()
                    .fold(AmazonS3Builder::from_env(), |builder, region| builder.with_region(region));
                let store = region.with_bucket_name(&self.config.bucket).with_retry(token_retry()).build()?;
                Ok(Signer::S3(Arc::clone(store.credentials())))
            }
            Kind::Gcs => self.gcs(GoogleCloudStorageBuilder::from_env()),
            Kind::Azure => {
                let account = self.config.account.clone().unwrap_or_default();
                self.azure(MicrosoftAzureBuilder::from_env().with_account(account))
            }
        }
    }

    fn gcs(&self, builder: GoogleCloudStorageBuilder) -> Result<Signer, object_store::Error> {
        let store = builder.with_bucket_name(&self.config.bucket).with_retry(token_retry()).build()?;
        Ok(Signer::Gcs(Arc::clone(store.credentials())))
    }

    fn azure(&self, builder: MicrosoftAzureBuilder) -> Result<Signer, object_store::Error> {
        let store = builder.with_container_name(&self.config.bucket).with_retry(token_retry()).build()?;
        Ok(Signer::Azure(Arc::clone(store.credentials())))
    }
}

fn token_retry() -> RetryConfig {
    RetryConfig { max_retries: TOKEN_RETRIES, retry_timeout: TOKEN_TIME_MAX, ..RetryConfig::default() }
}

fn bearer(request: &mut HttpRequest, token: &str) {
    if let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {token}")) {
        value.set_sensitive(true);
        request.headers_mut().insert("authorization", value);
    }
}

fn unusable_form() -> ConnectorError {
    ConnectorError::Denied { detail: "the credential is not of the form this store needs".into() }
}

fn text(secret: &Secret) -> Result<String, ConnectorError> {
    String::from_utf8(secret.expose().to_vec()).map_err(|_| unusable_form())
}

/// Text that becomes part of a header: `object_store` takes for granted that it can.
fn header_text(bytes: &[u8]) -> Result<String, ConnectorError> {
    let is_plain = bytes.iter().all(|byte| byte.is_ascii_graphic());
    let text = is_plain.then(|| String::from_utf8_lossy(bytes).into_owned());
    text.ok_or_else(unusable_form)
}
