//! Arguments of `domesday catalog`.

use std::path::PathBuf;

use clap::Args;
use domesday_model::{Category, Regulation, Sensitivity};

use super::{LevelArg, StateArgs};
use crate::output::CatalogFormat;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    domesday catalog                           labelled columns, as the latest scans saw them\n  \
    domesday catalog --schema public --all     all columns, labelled or not\n  \
    domesday catalog --label payment-card --format csv\n                                             \
    where card numbers are, for a spreadsheet\n  \
    domesday catalog --datasource 'shop*' --category personal --sensitivity high\n\n\
    A pattern is a name in which `*` is any run of characters. Of a table in a database file, the file is\n\
    the database; a file of separated values is a table, and its path the table's name.\n\
    Shares are of the distinct values that were sampled, with their 95 % interval.")]
pub struct CatalogArgs {
    /// Only data sources of this name
    #[arg(long, value_name = "PATTERN")]
    pub datasource: Option<String>,
    /// What this job saw, by its id or the beginning of it [default: of each data source the latest that ended]
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// Only databases of this name
    #[arg(long, value_name = "PATTERN")]
    pub database: Option<String>,
    /// Only schemas of this name
    #[arg(long, value_name = "PATTERN")]
    pub schema: Option<String>,
    /// Only tables of this name
    #[arg(long, value_name = "PATTERN")]
    pub table: Option<String>,
    /// Only columns of this name
    #[arg(long, value_name = "PATTERN")]
    pub column: Option<String>,
    /// Only columns with this label, which is a rule's id
    #[arg(long, value_name = "PATTERN")]
    pub label: Option<String>,
    /// Only labels of this category (secret, personal, payment, health, network, marking)
    #[arg(long, value_name = "CATEGORY")]
    pub category: Option<Category>,
    /// Only labels that are at least this sensitive (low, moderate, high, critical)
    #[arg(long, value_name = "LEVEL")]
    pub sensitivity: Option<Sensitivity>,
    /// Only labels that this regulation concerns, such as GDPR or PCI-DSS
    #[arg(long, value_name = "NAME")]
    pub regulation: Option<Regulation>,
    /// Only labels of at least this confidence
    #[arg(long, value_name = "LEVEL", default_value = "medium")]
    pub level: LevelArg,
    /// Also columns without a label
    #[arg(long, conflicts_with_all = ["label", "category", "sensitivity", "regulation"])]
    pub all: bool,
    /// How it is written [default: table on a terminal, json otherwise]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<CatalogFormat>,
    /// Write it to this file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub state: StateArgs,
}
