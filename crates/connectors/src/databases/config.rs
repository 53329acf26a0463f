//! The configuration of database sources, as far as it is common to all kinds. Its fields' comments are their
//! manual.

use domesday_connector::credentials::Method;
use domesday_connector::fields::FieldType;
use domesday_connector::{ConnectorError, Host, parse_configuration};
use domesday_tls::{is_socket, is_this_machine};
use serde::{Deserialize, Serialize};

use super::patterns::Patterns;

/// Rows read of a table when it is sampled, unless set otherwise.
const SAMPLE_ROWS: u64 = 10_000;
/// Rows of one range of a table that is read whole, unless set otherwise.
const PART_ROWS: u64 = 100_000;
/// Rows of one range, at least: each range costs a place in the book.
const PART_ROWS_MIN: u64 = 100;
/// How long the server may work on one statement, or give no rows, unless set otherwise.
const STATEMENT_TIMEOUT_SECONDS: u64 = 300;
/// How long a statement may wait for a lock, unless set otherwise.
const LOCK_TIMEOUT_SECONDS: u64 = 10;
/// A day: what any time limit is at most.
const TIMEOUT_SECONDS_MAX: u64 = 86_400;
/// Who sessions say they are, unless set otherwise.
const APPLICATION_NAME: &str = "domesday";

domesday_connector::configuration! {
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct DatabaseConfig {
        /// The server's name or address.
        pub host: String,
        /// Without it the kind's usual one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub port: Option<u16>,
        /// Who connects. Without it the credential says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub user: Option<String>,
        /// How to authenticate: `database` with the data source's credential, or `unauthenticated`. Without it: the
        /// credential if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub authentication: Option<Method>,
        /// Where a discovery begins. Without it the server's own default.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub database: Option<String>,
        /// The databases of a targeted scan; none means a discovery of all that the server has.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub databases: Vec<String>,
        /// Patterns of what to scan, such as `shop`, `shop.public` or `*.*.customer*`; none means everything.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub include: Vec<String>,
        /// Patterns of what to leave out, of the same form.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub exclude: Vec<String>,
        /// Also the server's own databases and schemas.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        pub system: bool,
        /// `sample` reads some rows of each table, spread over it; `full` reads all.
        pub mode: Mode,
        /// Rows to read of each table in mode `sample`.
        pub sample_rows: u64,
        /// Another seed gives another sample.
        pub seed: u64,
        /// Rows of one range in mode `full`, for tables with a primary key: ranges are read by several workers.
        pub part_rows: u64,
        /// How long the server may work on one statement, or give no rows.
        pub statement_timeout_seconds: u64,
        /// How long a statement may wait for a lock of somebody else's.
        pub lock_timeout_seconds: u64,
        /// Rows to read in a second, at most, per worker.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub rows_per_second: Option<u64>,
        /// Bytes to read in a second, at most, per worker.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub bytes_per_second: Option<u64>,
        /// Whether the connection is encrypted, and how much of the server's certificate is checked. Without it
        /// `verify-full`; towards this machine itself `prefer`, unless there is a `ca_file`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tls: Option<TlsMode>,
        /// The authorities that may have signed the server's certificate, in PEM. Without it the system's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ca_file: Option<String>,
        /// A certificate that says who connects, in PEM, where the server asks for one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub cert_file: Option<String>,
        /// The private key of `cert_file`, in PEM.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key_file: Option<String>,
        /// What sessions are called in the server's own lists.
        pub application_name: String,
    }
}

/// How much of a table is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Sample,
    Full,
}

/// What is asked of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// In clear text, the password too if the server asks for it.
    Disable,
    /// Encrypted if the server can; its certificate is not looked at. A password is not sent in clear text.
    Prefer,
    /// Encrypted; the certificate is not looked at.
    Require,
    /// And signed by an authority.
    VerifyCa,
    /// And for this host.
    VerifyFull,
}

impl FieldType for Mode {
    fn type_name() -> String {
        "`sample` or `full`".to_owned()
    }
}

impl FieldType for TlsMode {
    fn type_name() -> String {
        "`disable`, `prefer`, `require`, `verify-ca` or `verify-full`".to_owned()
    }
}

impl Default for DatabaseConfig {
    fn default() -> DatabaseConfig {
        DatabaseConfig {
            host: "localhost".to_owned(),
            port: None,
            user: None,
            authentication: None,
            database: None,
            databases: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            system: false,
            mode: Mode::Sample,
            sample_rows: SAMPLE_ROWS,
            seed: 0,
            part_rows: PART_ROWS,
            statement_timeout_seconds: STATEMENT_TIMEOUT_SECONDS,
            lock_timeout_seconds: LOCK_TIMEOUT_SECONDS,
            rows_per_second: None,
            bytes_per_second: None,
            tls: None,
            ca_file: None,
            cert_file: None,
            key_file: None,
            application_name: APPLICATION_NAME.to_owned(),
        }
    }
}

impl DatabaseConfig {
    pub fn parse(kind: &'static str, value: &serde_json::Value) -> Result<DatabaseConfig, ConnectorError> {
        let config: DatabaseConfig = parse_configuration(kind, value)?;
        config.check().map_err(|(field, problem)| ConnectorError::Configuration {
            kind,
            detail: format!("field `{field}`: {problem}"),
        })?;
        Ok(config)
    }

    /// The server, as credentials are bound to it.
    pub fn server(&self, usual_port: u16) -> Host {
        match is_socket(&self.host) {
            true => Host::new("localhost", None),
            false => Host::new(&self.host, Some(self.port.unwrap_or(usual_port))),
        }
    }

    /// What is asked of a connection to the server.
    pub fn tls(&self) -> TlsMode {
        self.tls_towards(&self.host)
    }

    /// What is asked of a connection to this host, to which the server may have sent us on.
    pub fn tls_towards(&self, host: &str) -> TlsMode {
        match (self.tls, &self.ca_file) {
            (Some(mode), _) => mode,
            (None, None) if is_this_machine(host) => TlsMode::Prefer,
            // Whoever names an authority wants it asked.
            (None, _) => TlsMode::VerifyFull,
        }
    }

    /// The field that is wrong, and why.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let is_text = |text: &str| !text.is_empty() && !text.contains('\0');
        if !is_text(&self.host) || self.host.chars().any(char::is_whitespace) {
            return Err(("host", "must be the server's name or address".into()));
        }
        for (field, name) in [
            ("user", self.user.as_deref()),
            ("database", self.database.as_deref()),
            ("ca_file", self.ca_file.as_deref()),
            ("cert_file", self.cert_file.as_deref()),
            ("key_file", self.key_file.as_deref()),
            ("application_name", Some(self.application_name.as_str())),
        ] {
            if name.is_some_and(|name| !is_text(name)) {
                return Err((field, "must not be empty".into()));
            }
        }
        if self.cert_file.is_some() != self.key_file.is_some() {
            return Err(("cert_file", "needs `key_file`, and `key_file` needs it".into()));
        }
        if !self.databases.iter().all(|name| is_text(name)) {
            return Err(("databases", "must be names of databases".into()));
        }
        if !matches!(self.authentication, None | Some(Method::Database | Method::Unauthenticated)) {
            return Err(("authentication", "must be `database` or `unauthenticated`".into()));
        }
        for (field, value, min, max) in [
            ("sample_rows", self.sample_rows, 1, u64::from(u32::MAX)),
            ("part_rows", self.part_rows, PART_ROWS_MIN, u64::from(u32::MAX)),
            ("statement_timeout_seconds", self.statement_timeout_seconds, 1, TIMEOUT_SECONDS_MAX),
            ("lock_timeout_seconds", self.lock_timeout_seconds, 1, TIMEOUT_SECONDS_MAX),
            ("rows_per_second", self.rows_per_second.unwrap_or(1), 1, u64::MAX),
            ("bytes_per_second", self.bytes_per_second.unwrap_or(1), 1, u64::MAX),
        ] {
            if !(min..=max).contains(&value) {
                return Err((field, format!("must be from {min} to {max}")));
            }
        }
        Patterns::new(self).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_told_by_its_field() {
        for (value, field) in [
            (json!({ "host": "" }), "field `host`"),
            (json!({ "port": 70_000 }), "field `port`"),
            (json!({ "mode": "half" }), "field `mode`"),
            (json!({ "tls": "maybe" }), "field `tls`"),
            (json!({ "sample_rows": 0 }), "field `sample_rows`"),
            (json!({ "part_rows": 1 }), "field `part_rows`"),
            (json!({ "statement_timeout_seconds": 0 }), "field `statement_timeout_seconds`"),
            (json!({ "authentication": "github" }), "field `authentication`"),
            (json!({ "databases": [""] }), "field `databases`"),
            (json!({ "include": ["a..b"] }), "field `include`"),
            (json!({ "exclude": [""] }), "field `exclude`"),
            (json!({ "pasword": "hunter2" }), "unknown field `pasword`"),
        ] {
            let told = DatabaseConfig::parse("postgres", &value).unwrap_err().to_string();
            assert!(told.contains(field), "{told}");
            assert!(!told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn what_is_not_said_has_its_default_and_comes_back_the_same() {
        let config = DatabaseConfig::parse("postgres", &json!({})).unwrap();
        assert_eq!(config, DatabaseConfig::default());
        let said = serde_json::to_value(&config).unwrap();
        assert_eq!(DatabaseConfig::parse("postgres", &said).unwrap(), config);
        let tls = DatabaseConfig::parse("postgres", &json!({ "tls": "verify-full" })).unwrap().tls;
        assert_eq!(tls, Some(TlsMode::VerifyFull));
    }

    #[test]
    fn a_connection_over_a_network_is_encrypted_and_verified_unless_something_else_is_said() {
        use TlsMode::{Disable, Prefer, Require, VerifyFull};
        for (host, said, mode) in [
            ("db.example", json!({}), VerifyFull),
            ("10.0.0.1", json!({}), VerifyFull),
            ("2001:db8::1", json!({}), VerifyFull),
            ("localhost", json!({}), Prefer),
            ("127.0.0.1", json!({}), Prefer),
            ("/run/postgresql", json!({}), Prefer),
            ("localhost", json!({ "ca_file": "/etc/ca.pem" }), VerifyFull),
            ("db.example", json!({ "tls": "require" }), Require),
            ("db.example", json!({ "tls": "prefer" }), Prefer),
            ("db.example", json!({ "tls": "disable" }), Disable),
        ] {
            let mut fields = said.clone();
            fields["host"] = json!(host);
            for kind in ["postgres", "mysql", "sqlserver"] {
                assert_eq!(DatabaseConfig::parse(kind, &fields).unwrap().tls(), mode, "{host} {said}");
            }
        }
        // A server of this machine that sends us on does not take the exception with it.
        let config = DatabaseConfig::parse("sqlserver", &json!({ "host": "localhost" })).unwrap();
        assert_eq!(config.tls_towards("db.example"), VerifyFull);
    }
}
