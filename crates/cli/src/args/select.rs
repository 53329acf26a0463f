//! Which rules are used.

use clap::Args;

#[derive(Args, Default)]
pub struct SelectArgs {
    /// Use only these rules: an id, `aws-*`, category:secret, region:fr or tag:generic (may be repeated)
    #[arg(long, value_name = "SELECTOR")]
    pub only: Vec<String>,
    /// Leave these rules out, selected the same way (may be repeated)
    #[arg(long, value_name = "SELECTOR")]
    pub skip: Vec<String>,
}
