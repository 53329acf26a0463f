//! Scan targets on their way into the book: one persister a type.

use domesday_model::{EnumerationSessionId, JobId, TargetDraft, TargetType};
use tokio_postgres::Row;

use super::rows::{column, get};
use super::transaction::{Tx, params};
use super::{Result, queries};
use crate::decide::targets::{Drafts, Known};
use crate::decide::tasks::FencedTask;
use crate::queries::statement;

/// Writes the targets that came with a commit, in its transaction, and links them to its job. The last that a
/// commit writes: nobody who waits for a target holds one that others wait for.
pub(super) async fn persist<'a>(
    tx: &mut Tx<'_>,
    task: FencedTask,
    drafts: impl IntoIterator<Item = &'a TargetDraft>,
) -> Result<()> {
    let drafts = Drafts::of(drafts);
    let mut known = github_repositories(tx, task.job, &drafts).await?;
    known.extend(web_addresses(tx, task.job, &drafts).await?);
    let of = known.into_iter().map(|known| (task.session, known)).collect::<Vec<_>>();
    put(tx, task.job, &of);
    Ok(())
}

async fn github_repositories(tx: &mut Tx<'_>, job: JobId, drafts: &Drafts) -> Result<Vec<Known>> {
    const PUT: &str = statement(queries::TARGETS, "put_github_repos");
    if drafts.repositories.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<_> = drafts.repositories.iter().collect();
    let params = params![
        job.0,
        column(&all, |(_, repository)| repository.name.clone()),
        column(&all, |(url, _)| (*url).clone()),
        column(&all, |(_, repository)| repository.is_active),
        column(&all, |(_, repository)| repository.metadata.clone()),
    ];
    let rows = tx.query(PUT, params).await?;
    rows.iter().map(|row| known(row, TargetType::GithubRepository)).collect()
}

async fn web_addresses(tx: &mut Tx<'_>, job: JobId, drafts: &Drafts) -> Result<Vec<Known>> {
    const PUT: &str = statement(queries::TARGETS, "put_url_targets");
    if drafts.urls.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<_> = drafts.urls.iter().collect();
    let params = params![
        job.0,
        column(&all, |(url, _)| (*url).clone()),
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
    const PUT: &str = statement(queries::TARGETS, "put_scan_targets");
    const LINK: &str = statement(queries::TARGETS, "link_scan_targets");
    if known.is_empty() {
        return;
    }
    let ids = column(known, |(_, known)| known.id().0.to_vec());
    tx.run(
        PUT,
        params![
            job.0,
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
    const NOTE: &str = statement(queries::TARGETS, "note_scan");
    tx.run(NOTE, params![job.0, session]);
}
