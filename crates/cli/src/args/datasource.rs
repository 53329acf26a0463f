//! Arguments of `domesday datasource`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::{Setting, parse_label, parse_setting, reference_help};
use super::{AllowArgs, StateArgs};

#[derive(Args)]
pub struct DatasourceArgs {
    #[command(subcommand)]
    pub command: DatasourceCommand,
}

#[derive(Subcommand)]
pub enum DatasourceCommand {
    /// Add data sources, from flags or a file
    Add(DatasourceAdd),
    /// List the data sources
    #[command(after_help = "Example:\n  domesday datasource list --json | jq -r '.[].name'")]
    List {
        /// JSON instead of a table [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Show one data source in full; its JSON can be given to `add` and `edit`
    #[command(after_help = "Example:\n  domesday datasource show shares --json > shares.json")]
    Show {
        name: String,
        /// JSON instead of text [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
    /// Change a data source, and show what changed; jobs that were started keep what they had
    Edit(DatasourceEdit),
    /// Try to read a data source from here: its credential, its first entries, an object
    #[command(after_help = "Example:\n  domesday datasource test shares\n\n\
        Exit code 3 when it cannot be read. A worker reads the source from its own host: it must reach it, too, and\n\
        it needs the same --allow-credentials.")]
    Test {
        name: String,
        #[command(flatten)]
        allow: AllowArgs,
        /// JSON instead of text [default when piped]
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        state: StateArgs,
    },
    /// List the kinds of data source, or the fields of one kind's configuration
    #[command(after_help = "Examples:\n  \
        domesday datasource kinds\n  \
        domesday datasource kinds github      the fields that --set and `configuration` take")]
    Kinds {
        /// Show the fields of this kind's configuration
        kind: Option<String>,
        /// JSON instead of a table [default when piped]
        #[arg(long)]
        json: bool,
    },
    /// Take a data source out of use; what was found in it stays
    #[command(after_help = "Example:\n  domesday datasource remove shares\n\n\
        Refused while an open job reads it or a template names it.")]
    Remove {
        name: String,
        #[command(flatten)]
        state: StateArgs,
    },
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday datasource add shares --kind filesystem --node-group eu --set root=/srv/share\n  \
    domesday datasource add nas --kind filesystem --node-group eu --set root=/mnt/nas \\\n      \
        --set 'exclude=[\"*.lock\"]' --label host=nas1 --limit 8\n  \
    domesday datasource add --file sources.toml\n  \
    jq .nas all.json | domesday datasource add --file -\n\n\
    A file holds one data source, or several as [[datasource]]:\n  \
    [[datasource]]\n  \
    name = \"shares\"\n  \
    kind = \"filesystem\"\n  \
    node_group = \"eu\"\n  \
    configuration = { root = \"/srv/share\" }")]
pub struct DatasourceAdd {
    /// Its name, unique in the book
    #[arg(required_unless_present = "file")]
    pub name: Option<String>,
    /// Take it from this TOML or JSON file; `-` is standard input
    #[arg(long, short, value_name = "PATH", conflicts_with = "DatasourceFields")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub fields: DatasourceFields,
    /// JSON instead of text [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday datasource edit shares --set max_file_size=104857600 --unset exclude\n  \
    domesday datasource edit shares --no-label --limit 4\n  \
    domesday datasource edit shares --file shares.toml      takes the place of all of it")]
#[command(group(clap::ArgGroup::new("removals").multiple(true)))]
pub struct DatasourceEdit {
    pub name: String,
    /// Take all of it from this TOML or JSON file; `-` is standard input
    #[arg(long, short, value_name = "PATH", conflicts_with_all = ["DatasourceFields", "removals"])]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub fields: DatasourceFields,
    /// Take a field of the configuration away (may be repeated)
    #[arg(long, value_name = "FIELD", group = "removals")]
    pub unset: Vec<String>,
    /// Let every worker of the group read it
    #[arg(long, group = "removals", conflicts_with = "label")]
    pub no_label: bool,
    /// It needs no credential
    #[arg(long, group = "removals", conflicts_with = "credential")]
    pub no_credential: bool,
    /// Let the workers decide how many tasks of it run at once
    #[arg(long, group = "removals", conflicts_with = "limit")]
    pub no_limit: bool,
    /// JSON instead of text [default when piped]
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

/// A data source as flags. What is absent stays as it is, or has its default.
#[derive(Args, Default)]
pub struct DatasourceFields {
    /// Which connector reads it, such as filesystem
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// The node group whose workers read it
    #[arg(long, value_name = "GROUP")]
    pub node_group: Option<String>,
    /// A field of its configuration; the value is JSON, or else text (may be repeated)
    #[arg(long, value_name = "FIELD=VALUE", value_parser = parse_setting)]
    pub set: Vec<Setting>,
    /// Only workers with this label read it
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_label)]
    pub label: Option<String>,
    #[arg(long, value_name = "REFERENCE", help = reference_help("Where the secret is that opens it"))]
    pub credential: Option<String>,
    /// Tasks of it that run at once across the fleet, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
}
