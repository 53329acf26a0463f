//! Kind `github`: the repositories of an organisation or a user, or those that are named, each with its
//! history.
//!
//! The root's entries are repositories, with keys `owner/name`; the API is asked for those, page by page.
//! What is inside one is the git connector's: an object's key is `owner/name/<id>`, and everything behind the
//! second slash is handed on. Which connector that is, this one does not know; it is given a factory for it.
//!
//! A repository's address follows from its name, and is not taken from an answer: no answer can lead the
//! credential, or the scan, to another host. To the API nothing is said about single repositories unless one
//! cannot be cloned; then it is asked why.

mod api;
mod config;
mod limits;
mod listing;
mod lru;
mod name;
mod repository;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::address::{Address, Scheme, SchemeForm};
use domesday_connector::credentials::Method;
use domesday_connector::fields::{self, Field};
use domesday_connector::{
    Configured, Connector, ConnectorError, ConnectorFactory, Description, Exclude, Listing, NamedBy,
    Surroundings, TargetError, TargetFlags, path_root,
};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, Origin, Reason, ResumePolicy, TargetDraft, UnitRecord};
use domesday_scheduler::{Moved, Opened, PathKind};
use globset::GlobSet;
use parking_lot::Mutex;
use serde_json::{Value, json};

use api::{Answer, Api};
pub use config::{BASE_URL, Choice, GithubConfig, KIND, parse_address};
use lru::Lru;
use name::RepositoryName;
use repository::Repository;

/// Repositories that are held open. Each may take some hundred megabytes, and opening one again asks its
/// remote.
const OPEN_MAX: usize = 16;

/// Makes connectors of kind `github`.
pub struct GithubFactory {
    git: Arc<dyn ConnectorFactory>,
}

impl GithubFactory {
    /// With what reads single repositories: its configuration has a `url`, an `authentication`, `paths`,
    /// `exclude`, a `max_file_size`, and the fields of [`Certificates`](domesday_connector::http::Certificates).
    pub fn over(git: impl ConnectorFactory + 'static) -> GithubFactory {
        GithubFactory { git: Arc::new(git) }
    }

    fn source(&self, configuration: &Value, surroundings: &Surroundings) -> Result<Source, ConnectorError> {
        let wrong = |detail: String| ConnectorError::Configuration { kind: KIND, detail };
        let config = GithubConfig::parse(configuration)?;
        let method = match (config.authentication, &surroundings.credential) {
            (Some(method), _) => method,
            (None, Some(_)) => Method::Github,
            (None, None) => Method::Unauthenticated,
        };
        let base = config.base().map_err(wrong)?;
        if method != Method::Unauthenticated && base.scheme() == "http" && !is_this_machine(&base) {
            return Err(wrong("field `base_url`: a credential is sent over https only".to_owned()));
        }
        let host = base.host_str().unwrap_or_default();
        let port = base.port().map_or_else(String::new, |port| format!(":{port}"));
        Ok(Source {
            web: format!("{}://{}{port}", base.scheme(), host.strip_prefix("api.").unwrap_or(host)),
            excluded: config.excluded().map_err(wrong)?,
            api: Api::new(base, method, config.certificates(), surroundings.clone()),
            method,
            config,
            git: Arc::clone(&self.git),
            surroundings: surroundings.clone(),
            open: Mutex::new(Lru::new(OPEN_MAX)),
        })
    }
}

fn is_this_machine(url: &reqwest::Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

impl ConnectorFactory for GithubFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn create(
        &self,
        configuration: &Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        Ok(Arc::new(Github(Arc::new(self.source(configuration, surroundings)?))))
    }

    fn describe(&self) -> Description {
        Description {
            about: "the repositories of a GitHub organisation or user",
            schemes: &[Scheme { name: KIND, form: SchemeForm::Name }],
            // Its `exclude` leaves out repositories.
            exclude: Some(Exclude::Paths("exclude_paths")),
            ..Description::default()
        }
    }

    fn fields(&self) -> Vec<Field> {
        fields::fields(&GithubConfig::default())
    }

    fn configure_address(&self, address: &Address, _: &TargetFlags) -> Result<Configured, TargetError> {
        let configuration = parse_address(&address.text)?;
        Ok(Configured { kind: KIND, configuration, concurrency_limit: None })
    }

    /// Keys begin with the name of a repository, which says it all.
    fn display_root(&self, _: &Value, named: NamedBy<'_>) -> Vec<u8> {
        match named {
            NamedBy::Path(typed) => path_root(typed),
            NamedBy::Address(_) | NamedBy::Configuration => Vec::new(),
        }
    }
}

struct Github(Arc<Source>);

/// What listings of one data source share.
struct Source {
    config: GithubConfig,
    excluded: GlobSet,
    api: Api,
    method: Method,
    /// What stands before `/owner/name` in the addresses of repositories.
    web: String,
    git: Arc<dyn ConnectorFactory>,
    surroundings: Surroundings,
    open: Mutex<Lru<RepositoryName, Arc<dyn Connector>>>,
}

impl Source {
    /// The connector of one repository. Reaches for nothing yet.
    fn repository(&self, name: &RepositoryName) -> Result<Arc<dyn Connector>, ConnectorError> {
        let mut open = self.open.lock();
        if let Some(connector) = open.get(name) {
            return Ok(connector);
        }
        let mut configuration = json!({ "url": format!("{}/{name}.git", self.web) });
        let mut surroundings = self.surroundings.clone();
        match self.method {
            Method::Unauthenticated => surroundings.credential = None,
            method => configuration["authentication"] = json!(method),
        }
        for (field, file) in self.config.certificates().fields() {
            if let Some(file) = file {
                configuration[field] = json!(file);
            }
        }
        if !self.config.paths.is_empty() {
            configuration["paths"] = json!(self.config.paths);
        }
        if !self.config.exclude_paths.is_empty() {
            configuration["exclude"] = json!(self.config.exclude_paths);
        }
        if let Some(max) = self.config.max_file_size {
            configuration["max_file_size"] = json!(max);
        }
        let connector = self.git.create(&configuration, &surroundings)?;
        open.put(name.clone(), Arc::clone(&connector));
        Ok(connector)
    }

    async fn origins(
        &self,
        name: &RepositoryName,
        inside: &[ObjectKey],
        moved: &Moved,
    ) -> Result<Vec<(ObjectKey, Origin)>, ConnectorError> {
        self.repository(name)?.origins(inside, moved).await
    }

    /// What the API has under this name, which may have another one now.
    async fn look_up(&self, name: &RepositoryName) -> Result<Result<Repository, Answer>, ConnectorError> {
        let address = self.api.address(&format!("repos/{name}"));
        Ok(match self.api.page(&address).await? {
            Err(answer) => Err(answer),
            Ok(page) => Ok(page.repositories.first().cloned().ok_or_else(|| ConnectorError::Container {
                reason: Reason::ReadError,
                detail: format!("{address}: the answer has no repository"),
            })?),
        })
    }

    /// The record of a listed repository, and its target if it is scanned.
    fn judge(&self, repository: &Repository, targets: &mut Vec<TargetDraft>) -> UnitRecord {
        let is_taken = self.config.takes(repository.archived, repository.fork, repository.private)
            && !self.excluded.is_match(repository.full_name());
        if is_taken {
            targets.push(repository.target(&self.web));
        }
        repository::record(repository.full_name(), is_taken)
    }

    /// Why a repository could not be read, if the API knows better than git does.
    async fn explain(&self, name: &RepositoryName, error: ConnectorError) -> ConnectorError {
        let (reason, why) = match self.look_up(name).await {
            Ok(Err(answer)) => match answer.reason() {
                Reason::Vanished => {
                    let said = answer.describe();
                    (Reason::Vanished, format!("it is gone, or the credential may not see it ({said})"))
                }
                reason => (reason, answer.describe()),
            },
            Ok(Ok(repository)) if !repository.name().is_some_and(|now| now.is_same(name)) => {
                let now = repository.full_name();
                (
                    Reason::Vanished,
                    format!("it was renamed to {now}, and is scanned under that name next time"),
                )
            }
            Ok(Ok(repository)) if repository.disabled => {
                (Reason::PermissionDenied, "github has disabled it".to_owned())
            }
            Err(error @ (ConnectorError::Wait { .. } | ConnectorError::Denied { .. })) => return error,
            // The API lets us in: it is this repository alone that does not.
            Ok(Ok(_)) => match error {
                ConnectorError::Denied { detail } => (Reason::PermissionDenied, detail),
                error => return error,
            },
            Err(_) => return error,
        };
        ConnectorError::Container { reason, detail: format!("{name}: {why}") }
    }
}

#[async_trait]
impl Connector for Github {
    fn resume_policy(&self, container: &ObjectKey) -> ResumePolicy {
        // Of a repository: as its connector has it. One that cannot be made fails when it is listed.
        let inner = RepositoryName::of_key(container).and_then(|(name, _)| self.0.repository(&name).ok());
        inner.map_or(ResumePolicy::FromResumePoint, |inner| inner.resume_policy(&ObjectKey::default()))
    }

    async fn list(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError> {
        if container.as_bytes().is_empty() {
            return listing::begin(Arc::clone(&self.0), resume_point);
        }
        let Some((name, inside)) = RepositoryName::of_key(container) else {
            let detail = format!("`{container}` is not a repository");
            return Err(ConnectorError::Container { reason: Reason::Vanished, detail });
        };
        let repository = self.0.repository(&name)?;
        match repository.list(&ObjectKey::new(inside), resume_point).await {
            Ok(listing) => Ok(listing),
            Err(error) => Err(self.0.explain(&name, error).await),
        }
    }

    fn path_kind(&self, object: &ListedObject) -> PathKind {
        let in_repository = RepositoryName::of_key(&object.key).and_then(|(name, inside)| {
            Some((self.0.repository(&name).ok()?, object.with_key(ObjectKey::new(inside))))
        });
        in_repository.map_or_else(
            || PathKind::of(object.key.as_bytes()),
            |(repository, object)| repository.path_kind(&object),
        )
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        let Some((name, inside)) = RepositoryName::of_key(&object.key) else {
            let detail = format!("`{}` is in no repository", object.key);
            return Err(ObjectError::new(Reason::Vanished, detail));
        };
        let repository = self.0.repository(&name);
        let repository = repository.map_err(|error| ObjectError::new(error.reason(), error.to_string()))?;
        repository.open(&object.with_key(ObjectKey::new(inside)))
    }

    fn traces_origins(&self) -> bool {
        true
    }

    async fn origins(
        &self,
        objects: &[ObjectKey],
        moved: &Moved,
    ) -> Result<Vec<(ObjectKey, Origin)>, ConnectorError> {
        let mut keys: Vec<(RepositoryName, ObjectKey)> = objects
            .iter()
            .filter_map(RepositoryName::of_key)
            .map(|(name, inside)| (name, ObjectKey::new(inside)))
            .collect();
        // One repository after the other, whatever the order in which objects were found.
        keys.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        let (mut origins, mut failure) = (Vec::new(), None);
        for of_one in keys.chunk_by(|(a, _), (b, _)| a == b) {
            let name = &of_one[0].0;
            let inside: Vec<ObjectKey> = of_one.iter().map(|(_, key)| key.clone()).collect();
            let container = ObjectKey::new(name.as_str());
            moved.add(1);
            match self.0.origins(name, &inside, moved).await {
                Ok(found) => origins
                    .extend(found.into_iter().map(|(key, origin)| (container.join(key.as_bytes()), origin))),
                Err(error @ ConnectorError::Wait { .. }) => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            // One repository that is gone by now must not keep the others' from being known.
            Some(error) if origins.is_empty() => Err(error),
            _ => Ok(origins),
        }
    }
}
