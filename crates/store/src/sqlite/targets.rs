//! Scan targets on their way into the book: one persister a type.

use domesday_model::{EnumerationSessionId, JobId, TargetDraft, TargetType};
use rusqlite::{Connection, params};

use super::rows::Statements;
use super::{Result, queries};
use crate::decide::targets::{Drafts, Known, Repository};
use crate::decide::tasks::FencedTask;
use crate::queries::statement;

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
    const PUT: &str = statement(queries::TARGETS, "put_github_repo");
    let Repository { name, is_active, metadata } = repository;
    let target_id = c.only(PUT, params![name, url, is_active, metadata])?;
    Ok(Known { target_type: TargetType::GithubRepository, target_id, name, metadata })
}

fn web_address(c: &Connection, url: String, metadata: String) -> Result<Known> {
    const PUT: &str = statement(queries::TARGETS, "put_url_target");
    let target_id = c.only(PUT, [&url, &metadata])?;
    Ok(Known { target_type: TargetType::Url, target_id, name: url, metadata })
}

/// The row that all types have, and the link to the job.
pub(super) fn put(c: &Connection, job: JobId, session: EnumerationSessionId, known: &Known) -> Result<()> {
    const PUT: &str = statement(queries::TARGETS, "put_scan_target");
    const LINK: &str = statement(queries::TARGETS, "link_scan_target");
    let id = known.id().0;
    let Known { target_type, target_id, name, metadata } = known;
    c.change(PUT, params![id, name, target_type.as_str(), target_id, metadata])?;
    c.change(LINK, params![job.0, id, session.0]).map(drop)
}

/// The session ended with all of its targets listed, or some.
pub(super) fn note_scan(c: &Connection, job: JobId, session: i64) -> Result<()> {
    const NOTE: &str = statement(queries::TARGETS, "note_scan");
    c.change(NOTE, [job.0, session]).map(drop)
}
