//! Finding what the user means: a job by the beginning of its id.

use anyhow::{Context, Result, bail};
use domesday_model::MasterJobId;
use domesday_store::{MasterJob, ReportStore};

/// Jobs searched for the beginning of an id.
const JOBS_SEARCHED_MAX: u32 = 100_000;

/// The newest job, or the one whose id begins so.
pub async fn find_job(store: &dyn ReportStore, id: Option<&str>) -> Result<MasterJob> {
    let Some(given) = id else {
        return store
            .master_jobs(1)
            .await?
            .pop()
            .context("the book has no jobs yet: run `domesday scan` or `domesday job start` first");
    };
    // As people copy them: a UUID has dashes, and either may be in capitals.
    let prefix = given.replace('-', "").to_lowercase();
    if let Ok(id) = prefix.parse::<MasterJobId>() {
        return store.master_job(id).await?.with_context(|| missing(given));
    }
    let mut matching = store.master_jobs(JOBS_SEARCHED_MAX).await?;
    matching.retain(|job| job.id.to_string().starts_with(&prefix));
    match matching.len() {
        0 => bail!("{}", missing(given)),
        1 => Ok(matching.remove(0)),
        n => bail!("{n} jobs begin with {given}: give more of the id"),
    }
}

fn missing(given: &str) -> String {
    format!("there is no job {given}: `domesday jobs` lists them")
}
