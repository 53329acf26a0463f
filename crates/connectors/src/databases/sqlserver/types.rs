//! How values of each type are asked for, and how keys are written and read.
//!
//! A value comes as it is where the client has its type exactly. Money, which the client takes for a float, text in
//! one of the server's code pages, and what only the server can write, comes as Unicode text. What has no bound is cut
//! by the server, one unit after what is kept, which tells that there was more.

use domesday_model::ColumnShape;
use domesday_model::RowBatch;

use super::statement::quote;

/// Units of a long value that are asked for: characters of a text are a byte or more when they are kept.
const CUT: usize = RowBatch::VALUE_MAX + 1;
/// Bytes of a text in a code page that surely fit into a Unicode text of limited length.
const NARROW_MAX: u32 = 4_000;
/// What a type's name ends with when only clients can decrypt it.
const ENCRYPTED: &str = " encrypted";
/// The style in which dates are written and read the same way whatever a session's language.
const ISO: u32 = 126;

/// A type as the catalogue has it, in the words of a declaration.
pub(super) fn type_name(name: &str, bytes: i32, precision: i32, scale: i32, is_encrypted: bool) -> String {
    let length = |unit: i32| if bytes < 0 { "max".to_owned() } else { (bytes / unit).to_string() };
    let mut declared = match name {
        "char" | "varchar" | "binary" | "varbinary" => format!("{name}({})", length(1)),
        "nchar" | "nvarchar" => format!("{name}({})", length(2)),
        "decimal" | "numeric" => format!("{name}({precision},{scale})"),
        "time" | "datetime2" | "datetimeoffset" => format!("{name}({scale})"),
        _ => name.to_owned(),
    };
    if is_encrypted {
        declared.push_str(ENCRYPTED);
    }
    declared
}

/// A declared type's name and length; no length is `max`.
fn parts(column: &ColumnShape) -> (&str, Option<u32>) {
    let declared = column.type_name.as_str();
    let (name, arguments) = declared.split_once('(').unwrap_or((declared, ""));
    (name, arguments.split([',', ')']).next().and_then(|length| length.parse().ok()))
}

pub(super) fn is_row_version(column: &ColumnShape) -> bool {
    matches!(column.type_name.as_str(), "timestamp" | "rowversion")
}

/// What is selected of a column.
pub(super) fn selected(column: &ColumnShape) -> String {
    let name = quote(&column.name);
    if column.type_name.ends_with(ENCRYPTED) {
        return name;
    }
    match parts(column) {
        ("money" | "smallmoney", _) => format!("CONVERT(varchar(32), {name}, 2)"),
        ("char" | "varchar", Some(0..=NARROW_MAX)) => format!("CONVERT(nvarchar(4000), {name})"),
        ("char" | "varchar", Some(_)) => format!("CONVERT(nvarchar(max), {name})"),
        ("varchar", None) => format!("CONVERT(nvarchar(max), SUBSTRING({name}, 1, {CUT}))"),
        ("nvarchar" | "varbinary", None) => format!("SUBSTRING({name}, 1, {CUT})"),
        ("text", _) => {
            format!("CONVERT(nvarchar(max), SUBSTRING(CONVERT(varchar(max), {name}), 1, {CUT}))")
        }
        ("ntext" | "xml" | "json" | "vector", _) => {
            format!("SUBSTRING(CONVERT(nvarchar(max), {name}), 1, {CUT})")
        }
        ("geometry" | "geography" | "hierarchyid", _) => format!("SUBSTRING({name}.ToString(), 1, {CUT})"),
        ("image", _) => format!("SUBSTRING(CONVERT(varbinary(max), {name}), 1, {CUT})"),
        // A user's own type of the server's runtime: none of its code is run.
        (other, _) if other.starts_with('[') => {
            format!("SUBSTRING(CONVERT(varbinary(max), {name}), 1, {CUT})")
        }
        _ => name,
    }
}

/// How a key's column is turned to text and back; `None` where that cannot be done exactly.
enum KeyForm {
    /// By the server's usual conversion.
    Plain,
    /// In this style.
    Styled(u32),
    /// By the type's own method.
    Method,
}

fn key_form(column: &ColumnShape) -> Option<KeyForm> {
    if column.type_name.ends_with(ENCRYPTED) {
        return None;
    }
    Some(match parts(column).0 {
        "bit" | "tinyint" | "smallint" | "int" | "bigint" | "decimal" | "numeric" | "uniqueidentifier"
        | "char" | "varchar" | "nchar" | "nvarchar" => KeyForm::Plain,
        "date" | "time" | "smalldatetime" | "datetime" | "datetime2" | "datetimeoffset" => {
            KeyForm::Styled(ISO)
        }
        "money" | "smallmoney" => KeyForm::Styled(2),
        "real" | "float" => KeyForm::Styled(3),
        "binary" | "varbinary" => KeyForm::Styled(1),
        "hierarchyid" => KeyForm::Method,
        _ => return None,
    })
}

/// Whether ranges of rows can be told by this column.
pub(super) fn is_key(column: &ColumnShape) -> bool {
    key_form(column).is_some()
}

/// The text of a key's column.
pub(super) fn key_text(column: &ColumnShape) -> String {
    let name = quote(&column.name);
    match key_form(column) {
        Some(KeyForm::Method) => format!("{name}.ToString()"),
        Some(KeyForm::Styled(style)) => format!("CONVERT(nvarchar(4000), {name}, {style})"),
        _ => format!("CONVERT(nvarchar(4000), {name})"),
    }
}

/// The value of a key's column that a variable holds the text of, in the column's own type, so that an index is used
/// as it is.
pub(super) fn key_value(column: &ColumnShape, variable: usize) -> String {
    let declared = &column.type_name;
    match key_form(column) {
        Some(KeyForm::Styled(style)) if style != 3 => format!("CONVERT({declared}, @P{variable}, {style})"),
        _ => format!("CONVERT({declared}, @P{variable})"),
    }
}
