//! Scan targets: one persister a type, and reading.

use domesday_model::{EnumerationSessionId, JobId, ObjectKey, ScanTargetId, TargetDraft, TargetType};
use tokio_postgres::Row;

use super::Result;
use super::pool::Call;
use super::rows::{column, get, wide};
use super::transaction::{Tx, params};
use crate::decide::targets::{Drafts, Known, clean};
use crate::decide::tasks::FencedTask;
use crate::queries::statement;
use crate::types::*;
use crate::values::{from_json, target_type};

pub(super) const FILE: &str = queries_of!("targets");

pub(super) const TARGET: &str = statement(FILE, "target");
pub(super) const BY_URL: &str = statement(FILE, "targets_by_url");

/// Writes the targets that came with a commit, in its transaction, and links them to its job. The last that a
/// commit writes: nobody who waits for a target holds one that others wait for.
pub(super) async fn persist<'a>(
    tx: &mut Tx<'_>,
    task: FencedTask,
    drafts: impl IntoIterator<Item = &'a TargetDraft>,
) -> Result<()> {
    let drafts = Drafts::of(drafts);
    let mut known = github_repositories(tx, &drafts).await?;
    known.extend(web_addresses(tx, &drafts).await?);
    let of = known.into_iter().map(|known| (task.session, known)).collect::<Vec<_>>();
    put(tx, task.job, &of);
    Ok(())
}

async fn github_repositories(tx: &mut Tx<'_>, drafts: &Drafts) -> Result<Vec<Known>> {
    const PUT: &str = statement(FILE, "put_github_repos");
    if drafts.repositories.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<_> = drafts.repositories.iter().collect();
    let params = params![
        column(&all, |(_, repository)| repository.name.clone()),
        column(&all, |(url, _)| (*url).clone()),
        column(&all, |(url, _)| url_hash(url)),
        column(&all, |(_, repository)| repository.is_active),
        column(&all, |(_, repository)| repository.metadata.clone()),
    ];
    let rows = tx.query(PUT, params).await?;
    rows.iter().map(|row| known(row, TargetType::GithubRepository)).collect()
}

async fn web_addresses(tx: &mut Tx<'_>, drafts: &Drafts) -> Result<Vec<Known>> {
    const PUT: &str = statement(FILE, "put_url_targets");
    if drafts.urls.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<_> = drafts.urls.iter().collect();
    let params = params![
        column(&all, |(url, _)| (*url).clone()),
        column(&all, |(url, _)| url_hash(url)),
        column(&all, |(_, metadata)| (*metadata).clone()),
    ];
    let rows = tx.query(PUT, params).await?;
    rows.iter().map(|row| known(row, TargetType::Url)).collect()
}

/// Columns: id, name, metadata.
fn known(row: &Row, target_type: TargetType) -> Result<Known> {
    Ok(Known { target_type, target_id: get(row, 0)?, name: get(row, 1)?, metadata: get(row, 2)? })
}

/// Queues the rows that all types have, and the links to the job, each through its session.
pub(super) fn put(tx: &mut Tx<'_>, job: JobId, known: &[(EnumerationSessionId, Known)]) {
    const PUT: &str = statement(FILE, "put_scan_targets");
    const LINK: &str = statement(FILE, "link_scan_targets");
    if known.is_empty() {
        return;
    }
    let ids = column(known, |(_, known)| known.id().0.to_vec());
    tx.run(
        PUT,
        params![
            ids.clone(),
            column(known, |(_, known)| known.name.clone()),
            column(known, |(_, known)| known.target_type.as_str()),
            column(known, |(_, known)| known.target_id),
            column(known, |(_, known)| known.metadata.clone()),
        ],
    );
    tx.run(LINK, params![job.0, ids, column(known, |(session, _)| session.0)]);
}

/// The session ended with all of its targets listed, or some.
pub(super) fn note_scan(tx: &mut Tx<'_>, job: JobId, session: i64) {
    const NOTE: &str = statement(FILE, "note_scan");
    tx.run(NOTE, params![job.0, session]);
}

// ── reading ────────────────────────────────────────────────────────────────────────────────────────

/// What an address is recognised by.
pub(super) fn url_hash(url: &str) -> Vec<u8> {
    ObjectKey::hash128(clean(url).as_bytes()).to_vec()
}

pub(super) fn page(filter: &TargetFilter, after: Option<ScanTargetId>, max: u32) -> Call {
    const ALL: &str = statement(FILE, "targets");
    const OF_JOB: &str = statement(FILE, "targets_of_job");
    const OF_SESSION: &str = statement(FILE, "targets_of_session");
    let after = after.map_or(Vec::new(), |id| id.0.to_vec());
    let mut params = params![after, filter.target_type.map(TargetType::as_str), i64::from(max)];
    let sql = match (filter.session, filter.master) {
        (Some(session), _) => {
            params.push(Box::new(session.0));
            OF_SESSION
        }
        (None, Some(master)) => {
            params.push(Box::new(master.0.to_vec()));
            OF_JOB
        }
        (None, None) => ALL,
    };
    Call { sql, params }
}

/// Columns as in the statement `target`.
pub(super) fn scan_target(row: &Row) -> Result<ScanTarget> {
    Ok(ScanTarget {
        id: ScanTargetId(wide(row, 0)?),
        name: get(row, 1)?,
        target_type: target_type(get(row, 2)?)?,
        target_id: get(row, 3)?,
        url: get(row, 4)?,
        is_active: get(row, 5)?,
        metadata: from_json(get(row, 6)?, "target metadata")?,
        created_at_ms: get(row, 7)?,
        last_scan_time_ms: get(row, 8)?,
    })
}
