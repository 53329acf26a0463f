//! A data source's definition.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use domesday_connector::credentials::{CredentialReference, reference_forms};
use domesday_connector::{Connector, ConnectorError, Registry, Surroundings, Trial};
use domesday_model::DatasourceSpec;
use serde_json::{Value, json};

use super::check_name;
use crate::args::{DatasourceEdit, DatasourceFields};
use crate::connectors;
use crate::document::{self, Fields, unknown_field};

/// What `show` adds to a definition.
const ADDED_BY_SHOW: &[&str] = &["created_at", "updated_at"];

/// From a document. `name` is what the command line says it is called, if it does.
pub fn from_value(value: Value, name: Option<&str>) -> Result<DatasourceSpec> {
    // As `show` writes it for a source whose limit was taken away; one that does not say gets its kind's.
    let is_unlimited = value.get("concurrency_limit").is_some_and(Value::is_null);
    let mut fields = Fields::new("datasource", value)?;
    let given = fields.text("name")?;
    let name = match (given, name) {
        (Some(given), Some(name)) if given != name => {
            bail!("datasource {name}: name: the file says `{given}`; a name cannot be changed")
        }
        (Some(name), _) => name,
        (None, Some(name)) => name.to_owned(),
        (None, None) => bail!("datasource: name: is missing"),
    };
    fields.what = format!("datasource {name}");
    fields.leave_out(ADDED_BY_SHOW);
    let kind = fields.needed_text("kind")?;
    let limit = fields.take("concurrency_limit", "a number of tasks, from 1")?;
    let default = connectors::known().describe(&kind).default_concurrency.filter(|_| !is_unlimited);
    let spec = DatasourceSpec {
        name,
        kind,
        node_group: fields.needed_text("node_group")?,
        configuration: fields.value("configuration").unwrap_or_else(|| json!({})),
        concurrency_limit: limit.or(default),
        worker_label: fields.take("worker_label", "a label, such as host=nas1")?,
        credential: fields.take("credential", &format!("a reference: {}", reference_forms()))?,
    };
    fields.finish()?;
    Ok(spec)
}

pub fn from_flags(name: &str, flags: &DatasourceFields) -> Result<DatasourceSpec> {
    let needed = |value: &Option<String>, field: &str, flag: &str| {
        value.clone().ok_or_else(|| anyhow!("datasource {name}: {field}: is missing: give {flag}"))
    };
    let kind = needed(&flags.kind, "kind", "--kind")?;
    let node_group = needed(&flags.node_group, "node_group", "--node-group")?;
    let concurrency_limit = connectors::known().describe(&kind).default_concurrency;
    let empty =
        DatasourceSpec { concurrency_limit, ..DatasourceSpec::new(name, kind, node_group, json!({})) };
    with_flags(empty, flags)
}

/// What an edit by flags makes of a data source: only what is given changes.
pub fn edited(before: &DatasourceSpec, edit: &DatasourceEdit) -> Result<DatasourceSpec> {
    let mut spec = before.clone();
    for field in &edit.unset {
        if !document::remove(field, &mut spec.configuration) {
            bail!("datasource {}: configuration.{field}: is not set", spec.name);
        }
    }
    spec.worker_label = spec.worker_label.filter(|_| !edit.no_label);
    spec.credential = spec.credential.filter(|_| !edit.no_credential);
    spec.concurrency_limit = spec.concurrency_limit.filter(|_| !edit.no_limit);
    with_flags(spec, &edit.fields)
}

fn with_flags(mut spec: DatasourceSpec, flags: &DatasourceFields) -> Result<DatasourceSpec> {
    document::apply(&flags.set, &mut spec.configuration)
        .with_context(|| format!("datasource {}: configuration", spec.name))?;
    spec.kind = flags.kind.clone().unwrap_or(spec.kind);
    spec.node_group = flags.node_group.clone().unwrap_or(spec.node_group);
    spec.worker_label = flags.label.clone().or(spec.worker_label);
    spec.credential = flags.credential.clone().or(spec.credential);
    spec.concurrency_limit = flags.limit.or(spec.concurrency_limit);
    Ok(spec)
}

/// Whether a data source can be what it says, by all that can be known without reaching for it.
pub fn check(spec: &DatasourceSpec) -> Result<()> {
    let what = format!("datasource {}", spec.name);
    check_name("datasource", &spec.name)?;
    if spec.node_group.is_empty() || spec.node_group.chars().any(|c| c.is_control() || c.is_whitespace()) {
        bail!("{what}: node_group: must be a word");
    }
    if spec.concurrency_limit == Some(0) {
        bail!("{what}: concurrency_limit: expected a number of tasks, from 1");
    }
    if let Some(label) = &spec.worker_label {
        crate::args::values::parse_label(label).map_err(|why| anyhow!("{what}: worker_label: {why}"))?;
    }
    if let Some(credential) = &spec.credential {
        CredentialReference::defined(credential).with_context(|| format!("{what}: credential"))?;
    }
    let surroundings = Surroundings::default().for_source(spec.credential.as_deref())?;
    connector(&connectors::of_fleet(), spec, &surroundings).map(drop).with_context(|| what)
}

/// A connector for a data source. Reaches for nothing yet.
fn connector(
    registry: &Registry,
    spec: &DatasourceSpec,
    surroundings: &Surroundings,
) -> Result<Arc<dyn Connector>> {
    let made = registry.create(&spec.kind, &spec.configuration, surroundings);
    made.map_err(|error| anyhow!("{}", by_field(&error)))
}

/// A connector's complaint in the form `configuration.root: is missing`.
fn by_field(error: &ConnectorError) -> String {
    let ConnectorError::Configuration { detail, .. } = error else {
        return match error {
            ConnectorError::UnknownKind(..) => format!("kind: {error}"),
            _ => error.to_string(),
        };
    };
    let (field, problem) = match detail.strip_prefix("field `").and_then(|rest| rest.split_once("`: ")) {
        Some((field, problem)) => (Some(field), problem),
        None => (None, detail.as_str()),
    };
    let quoted = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    if problem.starts_with("unknown field `") {
        let mut names = quoted(problem).into_iter();
        let unknown = names.next().unwrap_or_default();
        let known: Vec<String> = names.collect();
        return format!("configuration: {}", unknown_field(&unknown, known.iter().map(String::as_str)));
    }
    if let Some(missing) = problem.strip_prefix("missing field `") {
        return format!("configuration.{}: is missing", missing.trim_end_matches('`'));
    }
    // A deserializer quotes the value it could not use; it is enough to say what is expected.
    let is_of_wrong_type = problem.starts_with("invalid type: ") || problem.starts_with("invalid value: ");
    let problem = match problem.rsplit_once(", expected ") {
        Some((_, expected)) if is_of_wrong_type => format!("expected {expected}"),
        _ => problem.to_owned(),
    };
    match field {
        Some("credential") => format!("credential: {problem}"),
        Some(field) => format!("configuration.{field}: {problem}"),
        None => format!("configuration: {problem}"),
    }
}

/// Tries to read a data source from here, as a worker would.
pub async fn try_out(spec: &DatasourceSpec, surroundings: &Surroundings) -> Result<Trial> {
    let surroundings = surroundings.for_source(spec.credential.as_deref())?;
    let connector = connector(&connectors::of_fleet(), spec, &surroundings)?;
    // A method that there is not is the connector's to complain about, and it did not.
    let method = spec
        .configuration
        .get("authentication")
        .cloned()
        .and_then(|value| serde_json::from_value(value).ok());
    Ok(Trial::of(connector, &surroundings, method).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(value: Value) -> Result<DatasourceSpec> {
        let spec = from_value(value, None)?;
        check(&spec)?;
        Ok(spec)
    }

    #[test]
    fn problems_are_told_by_their_field() {
        let good =
            json!({"name": "a", "kind": "filesystem", "node_group": "eu", "configuration": {"root": "/srv"}});
        spec(good.clone()).unwrap();
        for (field, value, problem) in [
            ("kind", json!("ftp"), "datasource a: kind: no connector for data sources of kind `ftp`"),
            ("kind", json!(null), "datasource a: kind: is missing"),
            ("name", json!(null), "datasource: name: is missing"),
            ("node_group", json!("e u"), "datasource a: node_group: must be a word"),
            ("node_grop", json!("eu"), "datasource a: unknown field `node_grop`; did you mean `node_group`?"),
            ("concurrency_limit", json!(0), "datasource a: concurrency_limit: expected a number"),
            ("concurrency_limit", json!(-1), "datasource a: concurrency_limit: expected a number"),
            ("worker_label", json!("nas1"), "datasource a: worker_label: "),
            ("configuration", json!({}), "datasource a: configuration.root: is missing"),
            ("configuration", json!({"root": "x"}), "absolute path"),
            (
                "configuration",
                json!({"root": "/", "rot": 1}),
                "datasource a: configuration: unknown field `rot`; did you mean `root`?",
            ),
        ] {
            let mut value_with = good.clone();
            value_with[field] = value;
            let told = format!("{:#}", spec(value_with).unwrap_err());
            assert!(told.contains(problem), "{told}");
        }
    }

    #[test]
    fn a_deserializers_words_become_ours() {
        for (detail, told) in [
            (
                "field `exclude[1]`: invalid type: string \"hunter2\", expected u64",
                "configuration.exclude[1]: expected u64",
            ),
            (
                "field `rot`: unknown field `rot`, expected `root` or `only`",
                "configuration: unknown field `rot`; did you mean `root`?",
            ),
            ("missing field `root`", "configuration.root: is missing"),
            ("field `credential`: leave it out", "credential: leave it out"),
            ("odd", "configuration: odd"),
        ] {
            let error = ConnectorError::Configuration { kind: "x", detail: detail.into() };
            assert_eq!(by_field(&error), told);
        }
    }

    #[test]
    fn a_shown_definition_can_be_given_back_and_a_name_stays() {
        let value = json!({
            "name": "a", "kind": "filesystem", "node_group": "eu", "configuration": {"root": "/srv"},
            "concurrency_limit": null, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
        });
        assert_eq!(from_value(value.clone(), Some("a")).unwrap().concurrency_limit, None);
        let told = from_value(value, Some("b")).unwrap_err().to_string();
        assert!(told.contains("datasource b: name: the file says `a`"), "{told}");
    }

    #[test]
    fn a_database_server_has_a_limit_unless_it_was_taken_away() {
        let mut value = json!({ "name": "a", "kind": "postgres", "node_group": "eu" });
        assert_eq!(from_value(value.clone(), None).unwrap().concurrency_limit, Some(4));
        value["concurrency_limit"] = json!(9);
        assert_eq!(from_value(value.clone(), None).unwrap().concurrency_limit, Some(9));
        value["concurrency_limit"] = Value::Null;
        assert_eq!(from_value(value, None).unwrap().concurrency_limit, None);
        let by_flags = |kind: &str| {
            let flags = DatasourceFields {
                kind: Some(kind.to_owned()),
                node_group: Some("eu".to_owned()),
                ..DatasourceFields::default()
            };
            from_flags("a", &flags).unwrap().concurrency_limit
        };
        assert_eq!(by_flags("mysql"), Some(4));
        assert_eq!(by_flags("filesystem"), None);
    }
}
