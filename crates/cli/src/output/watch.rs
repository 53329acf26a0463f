//! A job being watched: a line per child job on a terminal, or a JSON object per change on a pipe.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};

use domesday_model::{JobId, MasterJobId};
use domesday_store::{ChildJobState, MasterJob};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::answers::write_object;
use super::fleet::{ChildJson, shown_child};

/// Draws a second, at most.
const DRAWS_PER_SECOND: u8 = 10;

/// What was shown so far.
pub struct Watched {
    master: MasterJobId,
    last: BTreeMap<JobId, ChildJobState>,
    /// The lines on a terminal.
    lines: Option<(MultiProgress, BTreeMap<JobId, ProgressBar>)>,
}

#[derive(Serialize)]
struct ChangeJson<'a> {
    master_job: String,
    #[serde(flatten)]
    child: ChildJson<'a>,
}

#[derive(Serialize)]
struct EndJson<'a> {
    master_job: String,
    status: &'static str,
    failure_reason: Option<&'a str>,
    findings: bool,
    exit_code: i32,
}

impl Watched {
    pub fn new(master: MasterJobId) -> Watched {
        let lines = io::stdout().is_terminal().then(|| {
            let target = ProgressDrawTarget::stdout_with_hz(DRAWS_PER_SECOND);
            (MultiProgress::with_draw_target(target), BTreeMap::new())
        });
        Watched { master, last: BTreeMap::new(), lines }
    }

    /// Shows what is different from the last time.
    pub fn update(&mut self, children: &[ChildJobState]) -> io::Result<()> {
        for child in children {
            if let Some((all, bars)) = &mut self.lines {
                let bar = bars.entry(child.job).or_insert_with(|| {
                    let style =
                        ProgressStyle::with_template("{wide_msg}").expect("the template is well-formed");
                    all.add(ProgressBar::no_length().with_style(style))
                });
                bar.set_message(shown_child(child));
                bar.tick();
            } else if self.last.get(&child.job).is_none_or(|last| is_news(last, child)) {
                let change = ChangeJson { master_job: self.master.to_string(), child: ChildJson::new(child) };
                write_object(&mut io::stdout().lock(), &change)?;
            }
            self.last.insert(child.job, child.clone());
        }
        Ok(())
    }

    /// Leaves the lines as they are now and says how it ended.
    pub fn end(&mut self, job: &MasterJob, findings: bool, exit_code: i32) -> io::Result<()> {
        self.leave();
        let mut out = io::stdout().lock();
        if self.lines.is_none() {
            let (master_job, failure_reason) = (job.id.to_string(), job.failure_reason.as_deref());
            let status = job.status.as_str();
            return write_object(
                &mut out,
                &EndJson { master_job, status, failure_reason, findings, exit_code },
            );
        }
        let what = if findings { "; `domesday findings` shows what was found" } else { "" };
        writeln!(out, "job {} ended {}{what}", job.id, job.status)
    }

    /// Leaves the lines as they are now.
    pub fn leave(&self) {
        if let Some((_, bars)) = &self.lines {
            bars.values().for_each(ProgressBar::abandon);
            // What comes next begins on a line of its own; nobody may be there to see it.
            let _ = writeln!(io::stdout());
        }
    }
}

/// A lease that was renewed is no news.
fn is_news(last: &ChildJobState, now: &ChildJobState) -> bool {
    let timeless =
        |child: &ChildJobState| ChildJobState { owner: child.owner.map(|(id, _)| (id, 0)), ..child.clone() };
    timeless(last) != timeless(now)
}

#[cfg(test)]
mod tests {
    use domesday_model::{JobStatus, ProcessId};
    use domesday_store::JobProgress;

    use super::*;

    #[test]
    fn a_renewed_lease_is_no_news() {
        let child = ChildJobState {
            job: JobId(1),
            node_group: "eu".into(),
            status: JobStatus::Running,
            pending: Vec::new(),
            failure_reason: None,
            owner: Some((ProcessId([1; 16]), 900)),
            workers: 2,
            created_at_ms: 0,
            started_at_ms: Some(0),
            finished_at_ms: None,
            waiting_why: None,
            progress: JobProgress { objects_listed: 5_678, objects_done: 1_204, ..JobProgress::default() },
        };
        let renewed = ChildJobState { owner: Some((ProcessId([1; 16]), 800)), ..child.clone() };
        assert!(!is_news(&child, &renewed));
        let taken_over = ChildJobState { owner: Some((ProcessId([2; 16]), 900)), ..child.clone() };
        assert!(is_news(&child, &taken_over));
        assert_eq!(
            shown_child(&child),
            "eu  running  1,204/5,678+ objects  0 B  2 workers  0 running, 0 pending"
        );
    }
}
