//! Addresses of database servers: `scheme://user@host:port/database?mode=full&schema=public`.
//!
//! The path names one database to scan; without it the server is discovered. The query sets fields of the
//! configuration by their names. A password has no place here: it is a credential.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde_json::{Map, Value, json};

/// Query parameters that are lists, their values separated by commas.
const LISTS: [&str; 3] = ["databases", "include", "exclude"];
/// Query parameters that are texts, whatever they look like.
const TEXTS: [&str; 7] = ["host", "user", "database", "ca_file", "cert_file", "key_file", "application_name"];
/// What other programs call fields of the configuration.
const SYNONYMS: [(&str, &str); 5] = [
    ("sslmode", "tls"),
    ("ssl-mode", "tls"),
    ("sslrootcert", "ca_file"),
    ("sslcert", "cert_file"),
    ("sslkey", "key_file"),
];

/// An address that is not one of a database. The address is not quoted: it may hold a secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadAddress(String);

/// The configuration that an address means, as JSON.
pub fn parse_address(text: &str) -> Result<Value, BadAddress> {
    let bad = |why: &str| BadAddress(format!("{why}; expected scheme://user@host:port/database?field=value"));
    let url = Url::parse(text).map_err(|error| bad(&format!("it is no address ({error})")))?;
    if url.password().is_some() {
        return Err(bad("it has a password in it, which is a credential"));
    }
    let decode = |text| {
        let decoded = percent_decode_str(text).decode_utf8();
        decoded.map(Cow::into_owned).map_err(|_| bad("it is not UTF-8"))
    };
    let mut fields = Map::new();
    if let Some(host) = url.host_str().filter(|host| !host.is_empty()) {
        fields.insert("host".into(), json!(decode(host.trim_start_matches('[').trim_end_matches(']'))?));
    }
    if let Some(port) = url.port() {
        fields.insert("port".into(), json!(port));
    }
    if !url.username().is_empty() {
        fields.insert("user".into(), json!(decode(url.username())?));
    }
    let database = decode(url.path().trim_start_matches('/'))?;
    if !database.is_empty() {
        fields.insert("databases".into(), json!([database]));
    }
    let mut schemas = Vec::new();
    for (name, value) in url.query_pairs() {
        if name == "schema" {
            schemas.extend(value.split(',').map(str::to_owned));
            continue;
        }
        let synonym = SYNONYMS.iter().find(|(synonym, _)| *synonym == name);
        let field = synonym.map_or(&*name, |(_, field)| field);
        let value = typed(field, &value);
        match (fields.get_mut(field), value) {
            (None, value) => drop(fields.insert(field.to_owned(), value)),
            // The path names one database, and the query more of them.
            (Some(Value::Array(given)), Value::Array(more)) => given.extend(more),
            (Some(_), _) => return Err(bad(&format!("`{name}` is given twice"))),
        }
    }
    if !schemas.is_empty() {
        let above = if database.is_empty() { "*".to_owned() } else { escaped(&database) };
        let patterns = schemas.iter().map(|schema| json!(format!("{above}.{schema}")));
        let given = fields.remove("include").and_then(|value| value.as_array().cloned()).unwrap_or_default();
        fields.insert("include".into(), given.into_iter().chain(patterns).collect());
    }
    Ok(Value::Object(fields))
}

/// A value as its field has it.
fn typed(field: &str, value: &str) -> Value {
    match value {
        _ if LISTS.contains(&field) => value.split(',').collect(),
        _ if TEXTS.contains(&field) => json!(value),
        "true" => json!(true),
        "false" => json!(false),
        _ => value.parse::<u64>().map_or_else(|_| json!(value), |number| json!(number)),
    }
}

/// A name as a pattern that means only it.
fn escaped(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '.' | '*' | '?' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::databases::DatabaseConfig;

    #[test]
    fn an_address_says_where_and_what() {
        for (text, expected) in [
            ("postgres://db.example", json!({ "host": "db.example" })),
            ("postgres://ann@[::1]:5433/", json!({ "host": "::1", "port": 5433, "user": "ann" })),
            (
                "postgres://a%40b@h/my%2Fdb?mode=full&sslmode=verify-full&sample_rows=5&system=true",
                json!({
                    "host": "h", "user": "a@b", "databases": ["my/db"], "mode": "full", "tls": "verify-full",
                    "sample_rows": 5, "system": true
                }),
            ),
            (
                "mysql://h/a.b?schema=public,x*&exclude=*.*.log,y&application_name=7",
                json!({
                    "host": "h", "databases": ["a.b"], "include": ["a\\.b.public", "a\\.b.x*"],
                    "exclude": ["*.*.log", "y"], "application_name": "7"
                }),
            ),
            (
                "postgres://h/a?include=b&include=c,d&databases=e",
                json!({ "host": "h", "databases": ["a", "e"], "include": ["b", "c", "d"] }),
            ),
            (
                "postgres://?host=/run/postgresql&schema=s&include=db",
                json!({ "host": "/run/postgresql", "include": ["db", "*.s"] }),
            ),
        ] {
            let configuration = parse_address(text).unwrap();
            assert_eq!(configuration, expected, "{text}");
            DatabaseConfig::parse("postgres", &configuration).unwrap();
        }
    }

    #[test]
    fn what_is_no_list_is_given_once() {
        for (text, name) in [
            ("postgres://h/d?mode=full&mode=sample", "`mode`"),
            ("postgres://h/d?sslmode=require&tls=disable", "`tls`"),
            ("postgres://h/d?host=other", "`host`"),
        ] {
            let told = parse_address(text).unwrap_err().to_string();
            assert!(told.contains(name), "{told}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_and_not_quoted() {
        for text in
            ["hunter2", "postgres://u:hunter2@h/d", "postgres://h:hunter2/d", "postgres://h/%ffhunter2"]
        {
            let told = parse_address(text).unwrap_err().to_string();
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
}
