//! What of a git repository is scanned.

use clap::Args;

/// Without any of these it is the whole history, and what is not committed yet.
#[derive(Args, Default)]
pub struct GitArgs {
    /// Only what this branch, tag or commit leads to (may be repeated)
    #[arg(long, value_name = "REF", help_heading = "Git repositories")]
    pub branch: Vec<String>,
    /// Only what came after this commit
    #[arg(long, value_name = "COMMIT", help_heading = "Git repositories")]
    pub since_commit: Option<String>,
    /// Only what the second of two commits leads to and the first does not
    #[arg(long, value_name = "A..B", help_heading = "Git repositories", conflicts_with_all = ["branch", "since_commit"])]
    pub range: Option<String>,
    /// Only what is staged for the next commit
    #[arg(long, help_heading = "Git repositories", conflicts_with_all = ["branch", "since_commit", "range"])]
    pub staged: bool,
    /// Only the files of the working tree, as they are on disk
    #[arg(long, help_heading = "Git repositories", conflicts_with_all = ["branch", "since_commit", "range", "staged"])]
    pub worktree: bool,
}
