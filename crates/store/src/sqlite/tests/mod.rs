//! What is SQLite's own: its statements, migrations, the state folder, the writer, and crashes.

mod crash;
mod folder;
mod migrations;
mod rows;
mod statements;
mod writer;

use std::process::Command;

use domesday_model::{MasterJobId, ObjectKey, ProcessId, TaskType};

use super::*;
use crate::clock::ManualClock;
use crate::roles::*;
use crate::testing::*;
use crate::types::*;

fn options() -> Options {
    Options { clock: Arc::new(ManualClock::new(1_700_000_000_000)), ..Options::default() }
}

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, options()).unwrap()
}

/// This test binary again, to run one of its ignored tests in a process of its own.
fn child(program: &Path, test: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--ignored", "--exact", test]).env(FOLDER, folder);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    command
}

/// Tells a child which state folder to use.
const FOLDER: &str = "STORE_TEST_FOLDER";

/// The folder a child was told to use.
fn childs_folder() -> std::path::PathBuf {
    std::env::var_os(FOLDER).expect("the parent names the folder").into()
}
