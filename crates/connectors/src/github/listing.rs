//! Listing the repositories of an owner, page by page, or those that were named, one by one.
//!
//! Pages are sorted by creation, oldest first: a repository that is made meanwhile comes at the end, and no
//! other moves. One that is deleted meanwhile moves those after it, and may hide one of them from this
//! listing, not from the next: the API has no cursor that would not. The resume point is the address of the
//! next page, and how much of it was given; a listing goes on there in any process.

use std::collections::HashSet;
use std::sync::Arc;
use std::vec;

use async_trait::async_trait;
use domesday_connector::{ConnectorError, Listing};
use domesday_model::{Reason, TargetDraft, UnitRecord};
use serde::Deserialize;

use super::api::Answer;
use super::config::Scope;
use super::name::RepositoryName;
use super::repository::{self, Repository};
use super::{KIND, Source};

/// Pages of one listing, of a hundred repositories each. More is a server that does not come to an end.
const PAGES_MAX: usize = 100_000;
/// Repositories that are looked up for one batch, where they are named one by one.
const NAMED_PER_BATCH: usize = 20;
const PAGE: &str = "sort=created&direction=asc&per_page=100";

/// Where the root's listing begins, or goes on.
pub(super) fn begin(
    source: Arc<Source>,
    resume_point: Option<&str>,
) -> Result<Box<dyn Listing>, ConnectorError> {
    let stale = || ConnectorError::Configuration {
        kind: KIND,
        detail: "the place where the listing was cut short is not one of this data source's".to_owned(),
    };
    if let Scope::Repositories(_) = source.config.scope() {
        let next = resume_point.map_or(Ok(0), str::parse).map_err(|_| stale())?;
        return Ok(Box::new(NamedListing { source, next, seen: HashSet::new(), targets: Vec::new() }));
    }
    let (skip, next) = match resume_point {
        None => (0, Next::First),
        Some(point) => {
            let (skip, address) = point.split_once(' ').ok_or_else(stale)?;
            (skip.parse().map_err(|_| stale())?, Next::Page(address.to_owned()))
        }
    };
    let current = String::new();
    let held = Vec::new().into_iter();
    let listing = PagedListing { source, current, taken: 0, held, next, skip, pages: 0, targets: Vec::new() };
    Ok(Box::new(listing))
}

/// The repositories of an owner.
struct PagedListing {
    source: Arc<Source>,
    /// The address of the page that `held` is of, and how many of it were given.
    current: String,
    taken: usize,
    held: vec::IntoIter<Repository>,
    next: Next,
    /// Repositories of the next page that were given before.
    skip: usize,
    pages: usize,
    targets: Vec<TargetDraft>,
}

enum Next {
    First,
    Page(String),
    End,
}

#[async_trait]
impl Listing for PagedListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        self.targets.clear();
        while self.held.as_slice().is_empty() {
            let address = match &self.next {
                Next::End => return Ok(Vec::new()),
                Next::First => first_page(&self.source).await?,
                Next::Page(address) => address.clone(),
            };
            self.turn_to(address).await?;
        }
        let batch: Vec<Repository> = self.held.by_ref().take(max).collect();
        self.taken += batch.len();
        Ok(batch.iter().map(|repository| self.source.judge(repository, &mut self.targets)).collect())
    }

    fn resume_point(&self) -> Option<String> {
        match &self.next {
            _ if !self.held.as_slice().is_empty() => Some(format!("{} {}", self.taken, self.current)),
            Next::Page(address) => Some(format!("{} {address}", self.skip)),
            Next::First | Next::End => None,
        }
    }

    fn take_targets(&mut self) -> Vec<TargetDraft> {
        std::mem::take(&mut self.targets)
    }
}

impl PagedListing {
    async fn turn_to(&mut self, address: String) -> Result<(), ConnectorError> {
        self.pages += 1;
        if self.pages > PAGES_MAX {
            let detail = format!("{address}: more than {PAGES_MAX} pages of repositories");
            return Err(ConnectorError::Container { reason: Reason::EntryLimit, detail });
        }
        let page = match self.source.api.page(&address).await? {
            Ok(page) => page,
            Err(answer) => return Err(refused(&self.source, &answer)),
        };
        let mut held = page.repositories.clone().into_iter();
        self.taken = std::mem::take(&mut self.skip).min(held.len());
        held.by_ref().take(self.taken).for_each(drop);
        self.held = held;
        self.current = address;
        self.next = page.next.clone().map_or(Next::End, Next::Page);
        Ok(())
    }
}

/// The owner's repositories cannot be listed at all.
fn refused(source: &Source, answer: &Answer) -> ConnectorError {
    let what = match source.config.scope() {
        Scope::Organisation(name) => format!("organisation `{name}`"),
        Scope::User(name) => format!("user `{name}`"),
        Scope::Owner(name) => format!("`{name}`"),
        Scope::Repositories(_) => "the repositories".to_owned(),
    };
    let said = answer.describe();
    let detail = match answer.reason() {
        Reason::Vanished => format!("{what} does not exist, or the credential may not see it ({said})"),
        _ => format!("{what}: {said}"),
    };
    ConnectorError::Denied { detail }
}

async fn first_page(source: &Source) -> Result<String, ConnectorError> {
    let path = match source.config.scope() {
        Scope::Organisation(name) => of_organisation(name),
        Scope::User(name) => of_user(source, name).await?,
        Scope::Owner(name) => match account(source, &format!("users/{name}")).await? {
            Ok(account) if account.kind == "Organization" => of_organisation(name),
            Ok(_) => of_user(source, name).await?,
            Err(answer) => return Err(refused(source, &answer)),
        },
        Scope::Repositories(_) => unreachable!("named repositories are not paged"),
    };
    Ok(source.api.address(&path))
}

fn of_organisation(name: &str) -> String {
    format!("orgs/{name}/repos?type=all&{PAGE}")
}

/// The list of a user's repositories has public ones only; whoever the credential is of has another one.
async fn of_user(source: &Source, name: &str) -> Result<String, ConnectorError> {
    let is_self = source.api.is_authenticated()
        // An app's installation is nobody, and told so with a refusal.
        && account(source, "user").await?.is_ok_and(|account| account.login.eq_ignore_ascii_case(name));
    Ok(match is_self {
        true => format!("user/repos?affiliation=owner&visibility=all&{PAGE}"),
        false => format!("users/{name}/repos?type=owner&{PAGE}"),
    })
}

/// An organisation or a user.
#[derive(Deserialize)]
struct Account {
    login: String,
    #[serde(rename = "type")]
    kind: String,
}

async fn account(source: &Source, path: &str) -> Result<Result<Account, Answer>, ConnectorError> {
    let answer = source.api.get(&source.api.address(path), None).await?;
    Ok(match serde_json::from_slice(&answer.body) {
        Ok(account) if answer.status.is_success() => Ok(account),
        _ => Err(answer),
    })
}

/// Repositories that were named one by one.
struct NamedListing {
    source: Arc<Source>,
    next: usize,
    /// What was given, for a repository that was renamed may be named twice. What was given before a resumed
    /// listing is not known here; such a one is then listed twice, and scanned once.
    seen: HashSet<String>,
    targets: Vec<TargetDraft>,
}

#[async_trait]
impl Listing for NamedListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        self.targets.clear();
        let mut records = Vec::new();
        while records.len() < max.min(NAMED_PER_BATCH) {
            let Some(name) = self.source.config.repositories.get(self.next) else { break };
            let name = RepositoryName::parse(name).expect("the configuration was checked");
            let record = match self.source.look_up(&name).await {
                Ok(Ok(repository)) => {
                    let is_new = self.seen.insert(repository.full_name().to_ascii_lowercase());
                    is_new.then(|| self.source.judge(&repository, &mut self.targets))
                }
                // A container all the same, so that its failure has its name.
                Ok(Err(_)) => {
                    let is_new = self.seen.insert(name.as_str().to_ascii_lowercase());
                    is_new.then(|| repository::record(name.as_str(), true))
                }
                // What was looked up so far holds; the next batch runs into the same.
                Err(_) if !records.is_empty() => break,
                Err(error) => return Err(error),
            };
            self.next += 1;
            records.extend(record);
        }
        Ok(records)
    }

    fn resume_point(&self) -> Option<String> {
        (self.next < self.source.config.repositories.len()).then(|| self.next.to_string())
    }

    fn take_targets(&mut self) -> Vec<TargetDraft> {
        std::mem::take(&mut self.targets)
    }
}
