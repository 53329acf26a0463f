//! How a connector's tests run the suite: each case on a source of its own, inside a runtime of its own, and
//! all of them before any fails.

use std::panic::AssertUnwindSafe;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, thread};

use super::{Case, Fixture};

/// How long a case may take, until all that it left behind has ended. Only what hangs takes so long.
const CASE_TIME_MAX: Duration = Duration::from_secs(120);
/// Set in the process that runs one test alone.
const ALONE: &str = "DOMESDAY_CONFORMANCE_ALONE";

/// The cases that do not hold, by name. `new` makes a source for each, inside of the case's own runtime.
pub fn broken<F>(cases: &[Case], new: impl Fn() -> F + Copy + Send + 'static) -> Vec<&'static str>
where
    F: Future<Output = Arc<dyn Fixture>>,
{
    cases.iter().filter(|case| !holds(case, new)).map(|(name, _)| *name).collect()
}

/// Whether a case holds, and ends. The runtime is let go before that counts, which waits for whatever still
/// blocks one of its threads.
fn holds<F>((name, case): &Case, new: impl Fn() -> F + Copy + Send + 'static) -> bool
where
    F: Future<Output = Arc<dyn Fixture>>,
{
    let case = *case;
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let run = || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.unwrap().block_on(async { case(new().await).await });
        };
        done.send(std::panic::catch_unwind(AssertUnwindSafe(run)).is_ok())
    });
    ended.recv_timeout(CASE_TIME_MAX).unwrap_or_else(|_| {
        eprintln!("case {name}: something still hangs after {} s", CASE_TIME_MAX.as_secs());
        false
    })
}

/// Runs a test in a process of its own, so that nothing else counts in what it measures. `test` is the path of
/// the function it is called from.
pub fn alone(test: &str, run: impl FnOnce()) {
    if env::var_os(ALONE).is_some() {
        return run();
    }
    let name = test.split_once("::").map_or(test, |(_crate, name)| name);
    let output = Command::new(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}{complained}");
    assert!(output.status.success() && said.contains("1 passed"), "{name} fails in a process of its own");
}

/// The tests of a connector: one a theme. Takes a function that returns a future of a new source.
#[macro_export]
macro_rules! conformance_tests {
    ($new:expr) => {
        $crate::conformance_tests!(@ $new; listing, reading, resuming, changing, failing, cancelling);

        #[test]
        fn memory() {
            let holds = || {
                let cases = $crate::conformance::memory::CASES;
                assert_eq!($crate::conformance::broken(cases, $new), Vec::<&str>::new());
            };
            $crate::conformance::alone(concat!(module_path!(), "::memory"), holds);
        }
    };
    (@ $new:expr; $($theme:ident),*) => {
        $(
            #[test]
            fn $theme() {
                let cases = $crate::conformance::$theme::CASES;
                assert_eq!($crate::conformance::broken(cases, $new), Vec::<&str>::new());
            }
        )*

        #[test]
        fn every_theme_is_run() {
            let themes: Vec<_> = $crate::conformance::THEMES.iter().map(|(theme, _)| *theme).collect();
            assert_eq!(themes, [$(stringify!($theme),)* "memory"]);
        }
    };
}
