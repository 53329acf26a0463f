//! Scan targets: one persister a type, and reading.

use domesday_model::{EnumerationSessionId, JobId, ScanTargetId, TargetDraft, TargetType};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::Result;
use crate::decide::targets::{Drafts, Known, Repository, clean};
use crate::decide::tasks::FencedTask;
use crate::queries::statement;
use crate::types::*;
use crate::values::{from_json, target_type};

pub(super) const FILE: &str = queries_of!("targets");

/// Writes the targets that came with a commit, in its transaction, and links them to its job.
pub(super) fn persist<'a>(
    c: &Connection,
    task: FencedTask,
    drafts: impl IntoIterator<Item = &'a TargetDraft>,
) -> Result<()> {
    let drafts = Drafts::of(drafts);
    for (url, repository) in drafts.repositories {
        put(c, task.job, task.session, &github_repository(c, &url, repository)?)?;
    }
    for (url, metadata) in drafts.urls {
        put(c, task.job, task.session, &web_address(c, url, metadata)?)?;
    }
    Ok(())
}

fn github_repository(c: &Connection, url: &str, repository: Repository) -> Result<Known> {
    const PUT: &str = statement(FILE, "put_github_repo");
    let Repository { name, is_active, metadata } = repository;
    let target_id =
        c.prepare_cached(PUT)?.query_row(params![name, url, is_active, metadata], |row| row.get(0))?;
    Ok(Known { target_type: TargetType::GithubRepository, target_id, name, metadata })
}

fn web_address(c: &Connection, url: String, metadata: String) -> Result<Known> {
    const PUT: &str = statement(FILE, "put_url_target");
    let target_id = c.prepare_cached(PUT)?.query_row(params![url, metadata], |row| row.get(0))?;
    Ok(Known { target_type: TargetType::Url, target_id, name: url, metadata })
}

/// The row that all types have, and the link to the job.
pub(super) fn put(c: &Connection, job: JobId, session: EnumerationSessionId, known: &Known) -> Result<()> {
    const PUT: &str = statement(FILE, "put_scan_target");
    const LINK: &str = statement(FILE, "link_scan_target");
    let id = known.id().0;
    c.prepare_cached(PUT)?.execute(params![
        id,
        known.name,
        known.target_type.as_str(),
        known.target_id,
        known.metadata
    ])?;
    c.prepare_cached(LINK)?.execute(params![job.0, id, session.0])?;
    Ok(())
}

/// The session ended with all of its targets listed, or some.
pub(super) fn note_scan(c: &Connection, job: JobId, session: i64) -> Result<()> {
    const NOTE: &str = statement(FILE, "note_scan");
    c.prepare_cached(NOTE)?.execute([job.0, session])?;
    Ok(())
}

// ── reading ────────────────────────────────────────────────────────────────────────────────────────

pub(super) fn target(c: &Connection, id: ScanTargetId) -> Result<Option<ScanTarget>> {
    const GET: &str = statement(FILE, "target");
    c.prepare_cached(GET)?.query_row([id.0], |row| Ok(scan_target(row))).optional()?.transpose()
}

pub(super) fn by_url(c: &Connection, url: &str) -> Result<Vec<ScanTarget>> {
    const GET: &str = statement(FILE, "targets_by_url");
    let mut statement = c.prepare_cached(GET)?;
    let rows = statement.query_map([clean(url)], |row| Ok(scan_target(row)))?;
    rows.map(|row| row?).collect()
}

pub(super) fn targets(
    c: &Connection,
    filter: &TargetFilter,
    after: Option<ScanTargetId>,
    max: u32,
) -> Result<Vec<ScanTarget>> {
    const ALL: &str = statement(FILE, "targets");
    const OF_JOB: &str = statement(FILE, "targets_of_job");
    const OF_SESSION: &str = statement(FILE, "targets_of_session");
    let after = after.map_or(Vec::new(), |id| id.0.to_vec());
    let of_type = filter.target_type.map(TargetType::as_str);
    let read = |sql: &str, parameters: &[&dyn ToSql]| -> Result<Vec<ScanTarget>> {
        let mut statement = c.prepare_cached(sql)?;
        let rows = statement.query_map(parameters, |row| Ok(scan_target(row)))?;
        rows.map(|row| row?).collect()
    };
    match (filter.session, filter.master) {
        (Some(session), _) => read(OF_SESSION, params![after, of_type, max, session.0]),
        (None, Some(master)) => read(OF_JOB, params![after, of_type, max, master.0]),
        (None, None) => read(ALL, params![after, of_type, max]),
    }
}

/// Columns as in the statement `target`.
fn scan_target(row: &Row<'_>) -> Result<ScanTarget> {
    let (of_type, metadata): (String, String) = (row.get(2)?, row.get(6)?);
    Ok(ScanTarget {
        id: ScanTargetId(row.get(0)?),
        name: row.get(1)?,
        target_type: target_type(&of_type)?,
        target_id: row.get(3)?,
        url: row.get(4)?,
        is_active: row.get(5)?,
        metadata: from_json(&metadata, "target metadata")?,
        created_at_ms: row.get(7)?,
        last_scan_time_ms: row.get(8)?,
    })
}
