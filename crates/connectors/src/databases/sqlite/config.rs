//! The configuration of an `sqlite` data source. Its fields' comments are their manual.

use std::path::PathBuf;

use domesday_connector::{ConnectorError, parse_configuration};
use serde::{Deserialize, Serialize};

use super::KIND;
use crate::databases::config::{DatabaseConfig, Mode};

domesday_connector::configuration! {
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct SqliteConfig {
        /// The absolute path of the file.
        pub path: PathBuf,
        /// Patterns of tables and views to scan, such as `customer*`; none means all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub include: Vec<String>,
        /// Patterns of tables and views to leave out, of the same form.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub exclude: Vec<String>,
        /// Also the library's own tables, whose names begin with `sqlite_`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub system: bool,
        /// `sample` reads some rows of each table, spread over it; `full` reads all.
        #[serde(default)]
        pub mode: Mode,
        /// Rows to read of each table in mode `sample`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub sample_rows: Option<u64>,
        /// Another seed gives another sample.
        #[serde(default)]
        pub seed: u64,
        /// Rows of one range in mode `full`: ranges are read by several workers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub part_rows: Option<u64>,
        /// How long one row may take.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub statement_timeout_seconds: Option<u64>,
        /// Rows to read in a second, at most, per worker.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub rows_per_second: Option<u64>,
        /// Bytes to read in a second, at most, per worker.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub bytes_per_second: Option<u64>,
    }
}

impl SqliteConfig {
    pub fn new(path: PathBuf) -> SqliteConfig {
        SqliteConfig {
            path,
            include: Vec::new(),
            exclude: Vec::new(),
            system: false,
            mode: Mode::default(),
            sample_rows: None,
            seed: 0,
            part_rows: None,
            statement_timeout_seconds: None,
            rows_per_second: None,
            bytes_per_second: None,
        }
    }

    /// With what is common to all kinds of database.
    pub fn parse(value: &serde_json::Value) -> Result<(SqliteConfig, DatabaseConfig), ConnectorError> {
        let config: SqliteConfig = parse_configuration(KIND, value)?;
        let wrong = |field: &str, problem: String| ConnectorError::Configuration {
            kind: KIND,
            detail: format!("field `{field}`: {problem}"),
        };
        if !config.path.is_absolute() {
            return Err(wrong("path", format!("must be absolute, not `{}`", config.path.display())));
        }
        let common = config.common();
        common.check().map_err(|(field, problem)| wrong(field, problem))?;
        Ok((config, common))
    }

    fn common(&self) -> DatabaseConfig {
        let usual = DatabaseConfig::default();
        DatabaseConfig {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            system: self.system,
            mode: self.mode,
            sample_rows: self.sample_rows.unwrap_or(usual.sample_rows),
            seed: self.seed,
            part_rows: self.part_rows.unwrap_or(usual.part_rows),
            statement_timeout_seconds: self
                .statement_timeout_seconds
                .unwrap_or(usual.statement_timeout_seconds),
            rows_per_second: self.rows_per_second,
            bytes_per_second: self.bytes_per_second,
            ..usual
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_told_by_its_field() {
        assert!(SqliteConfig::parse(&json!({ "path": "/srv/app.db", "mode": "full" })).is_ok());
        for (value, field) in [
            (json!({}), "missing field `path`"),
            (json!({ "path": "app.db" }), "field `path`: must be absolute"),
            (json!({ "path": "/a", "host": "b" }), "unknown field `host`"),
            (json!({ "path": "/a", "part_rows": 1 }), "field `part_rows`"),
            (json!({ "path": "/a", "include": [""] }), "field `include`"),
        ] {
            let told = SqliteConfig::parse(&value).unwrap_err().to_string();
            assert!(told.contains(field), "{told}");
        }
    }
}
