//! Where an object came from, in a report: a git object is shown by the path it had and the commit that
//! brought it, its id beside.

use std::borrow::Cow;

use domesday_model::{Location, Origin};
use domesday_store::{Occurrence, Problem};
use serde::Serialize;

use super::human::timestamp;
use super::text;

/// Characters of a commit's id that people tell it by.
const COMMIT_SHOWN: usize = 12;

/// Where a finding is, for people: by the path its object had, where the key itself is none.
pub fn place(found: &Occurrence) -> Cow<'_, Location> {
    place_of(&found.location, found.origin.as_ref())
}

/// The same of something that was not scanned whole.
pub fn place_of_problem(problem: &Problem) -> Cow<'_, Location> {
    place_of(&problem.location, problem.origin.as_ref())
}

fn place_of<'a>(location: &'a Location, origin: Option<&Origin>) -> Cow<'a, Location> {
    let Some(path) = origin.and_then(|origin| origin.path.as_ref()) else {
        return Cow::Borrowed(location);
    };
    // The id is the last part of the key; what is before it is the repository, where a source has several.
    let repository = location.key.parent().unwrap_or_default();
    let key = repository.join(path.as_bytes());
    Cow::Owned(Location { key, nested: location.nested.clone() })
}

/// What a heading says beside the path; empty for an object that is what its key says.
pub fn shown(found: &Occurrence) -> String {
    let Some(origin) = &found.origin else { return String::new() };
    if origin.commit.is_empty() {
        return "staged, not committed yet".to_owned();
    }
    let commit: String = origin.commit.chars().take(COMMIT_SHOWN).collect();
    let mut words = format!("commit {commit}, {}", day(origin));
    if !origin.author.is_empty() {
        words.push_str(", ");
        words.push_str(&text::shown(&origin.author));
    }
    if origin.is_abandoned {
        words.push_str(", no longer on any branch");
    }
    words
}

fn day(origin: &Origin) -> String {
    timestamp(origin.time_ms).chars().take_while(|&c| c != 'T').collect()
}

#[derive(Serialize)]
pub struct OriginJson<'a> {
    /// The object's own id.
    object: String,
    /// `null`, and all that comes with it, of what is staged and not committed yet.
    commit: Option<&'a str>,
    author: Option<&'a str>,
    date: Option<String>,
    is_abandoned: bool,
}

impl<'a> OriginJson<'a> {
    pub fn of(found: &'a Occurrence) -> Option<OriginJson<'a>> {
        let origin = found.origin.as_ref()?;
        let key = found.location.key.as_bytes();
        let is_committed = !origin.commit.is_empty();
        let id = key.rsplit(|&byte| byte == b'/').next().unwrap_or(key);
        Some(OriginJson {
            object: String::from_utf8_lossy(id).into_owned(),
            commit: is_committed.then_some(&origin.commit),
            author: is_committed.then_some(&origin.author),
            date: is_committed.then(|| timestamp(origin.time_ms)),
            is_abandoned: origin.is_abandoned,
        })
    }
}
