//! From a data source's JSON to a connector's typed configuration, with errors that name the field.

use serde::de::DeserializeOwned;

use crate::ConnectorError;

/// The typed configuration, or which field is wrong and why. A missing field is named by its error already,
/// and so is an unknown one.
pub fn parse_configuration<T: DeserializeOwned>(
    kind: &'static str,
    value: &serde_json::Value,
) -> Result<T, ConnectorError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let detail = match path.as_str() {
            "." => error.inner().to_string(),
            _ => format!("field `{path}`: {}", error.inner()),
        };
        ConnectorError::Configuration { kind, detail }
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Config {
        root: String,
        #[serde(default)]
        exclude: Vec<String>,
    }

    #[test]
    fn the_wrong_field_is_named() {
        let parse = |value: Value| parse_configuration::<Config>("test", &value);
        let read = Config { root: "/".into(), exclude: vec!["x".into()] };
        assert_eq!(parse(json!({ "root": "/", "exclude": ["x"] })).unwrap(), read);
        for (value, field) in [
            (json!({}), "missing field `root`"),
            (json!({ "root": 7 }), "field `root`: "),
            (json!({ "root": "/", "exclude": ["x", 7] }), "field `exclude[1]`: "),
            (json!({ "root": "/", "rot": 1 }), "unknown field `rot`"),
            (json!("text"), "invalid type"),
        ] {
            let error = parse(value).unwrap_err().to_string();
            assert!(error.starts_with("configuration of the test data source: "), "{error}");
            assert!(error.contains(field), "{error}");
        }
    }
}
