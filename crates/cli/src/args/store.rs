//! Which book a command works on.

use std::path::PathBuf;

use clap::Args;

/// The environment is read where the book is opened, not here: a value from there must not be at odds with
/// a flag, and clap counts both alike.
#[derive(Args)]
pub struct StateArgs {
    /// Where the embedded book is kept [default: the user's state folder]
    #[arg(long, value_name = "DIR", conflicts_with = "store")]
    pub state: Option<PathBuf>,
    /// The book of a fleet: postgresql://user@host/database?sslmode=verify-full&sslrootcert=system
    /// [env: DOMESDAY_STORE]
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}
