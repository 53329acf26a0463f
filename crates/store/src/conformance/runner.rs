//! How a backend's tests run the suite: each case on a book of its own, and all of them before any fails.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use super::{Book, Case, Harness};
use crate::hook::{Fault, Stage, WriteHook};

/// The verb whose next answer is lost, and whether before or after the commit.
#[derive(Clone, Default)]
pub struct Loss(Arc<Mutex<Option<(&'static str, Stage)>>>);

impl Loss {
    /// The next call of `verb` loses its answer.
    pub fn of(&self, verb: &'static str, committed: bool) {
        let stage = if committed { Stage::AfterCommit } else { Stage::BeforeCommit };
        *self.0.lock().unwrap() = Some((verb, stage));
    }
}

/// Loses the answer it is told to, once.
pub struct LoseOne(pub Loss);

impl WriteHook for LoseOne {
    fn at(&mut self, verb: &'static str, stage: Stage) -> Fault {
        let mut loss = self.0.0.lock().unwrap();
        if *loss == Some((verb, stage)) {
            *loss = None;
            return Fault::LoseAnswer;
        }
        Fault::None
    }
}

/// The cases that do not hold, by name. `new` makes a book for each, inside of the case's own runtime.
pub fn broken<F>(cases: &[Case], new: impl Fn() -> F) -> Vec<&'static str>
where
    F: Future<Output = Arc<dyn Harness>>,
{
    let holds = |case: &&Case| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.unwrap().block_on(async { case.1(Book::new(new().await)).await });
        };
        std::panic::catch_unwind(AssertUnwindSafe(run)).is_ok()
    };
    cases.iter().filter(|case| !holds(case)).map(|(name, _)| *name).collect()
}

/// The tests of a backend: one a theme, and the proof that the suite would notice a missing fence. Takes a
/// function from "with the fence" to a future of a new book.
#[macro_export]
macro_rules! conformance_tests {
    ($new:expr) => {
        $crate::conformance_tests!(@ $new;
            jobs, commands, tasks, units, fan_out, reaper, results, checkpoints, sessions, events, fence, lost_answers,
            datasources, templates, operations, prune, pages, targets, batches, origins, incremental, prior, tables,
            retries);
    };
    (@ $new:expr; $($theme:ident),*) => {
        $(
            #[test]
            fn $theme() {
                let themes = $crate::conformance::THEMES;
                let (_, cases) = themes.iter().find(|(theme, _)| *theme == stringify!($theme)).unwrap();
                assert_eq!($crate::conformance::broken(cases, || $new(true)), Vec::<&str>::new());
            }
        )*

        #[test]
        fn every_theme_is_run() {
            let themes: Vec<_> = $crate::conformance::THEMES.iter().map(|(theme, _)| *theme).collect();
            assert_eq!(themes, [$(stringify!($theme)),*]);
        }

        #[test]
        fn the_suite_turns_red_without_the_fence() {
            let cases = $crate::conformance::fence::CASES;
            let names: Vec<_> = cases.iter().map(|(name, _)| *name).collect();
            assert_eq!($crate::conformance::broken(cases, || $new(false)), names);
        }
    };
}
