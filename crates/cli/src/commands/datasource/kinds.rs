//! `domesday datasource kinds`: what can be scanned, and the fields that configure it.

use anyhow::{Result, bail};
use domesday_connector::fields::Field;
use domesday_connector::{ConnectorFactory, Registry};
use serde::Serialize;
use serde_json::Value;

use super::{list_format, stdout_style};
use crate::{Exit, connectors, document, output};

#[derive(Serialize)]
struct KindJson {
    kind: &'static str,
    about: &'static str,
    /// How its addresses begin.
    schemes: Vec<&'static str>,
    /// Tasks at once across the fleet, unless a data source says otherwise.
    default_concurrency: Option<u32>,
    fields: Vec<Field>,
}

impl KindJson {
    fn of(registry: &Registry, factory: &dyn ConnectorFactory) -> KindJson {
        let description = factory.describe();
        KindJson {
            kind: factory.kind(),
            about: description.about,
            schemes: description.schemes.iter().map(|scheme| scheme.name).collect(),
            default_concurrency: description.default_concurrency,
            fields: registry.fields(factory.kind()),
        }
    }
}

pub fn run(kind: Option<&str>, json: bool) -> Result<Exit> {
    let registry = connectors::of_fleet();
    let mut out = std::io::stdout().lock();
    let (format, style) = (list_format(json), stdout_style());
    let Some(kind) = kind else {
        let kinds: Vec<KindJson> =
            registry.factories().map(|factory| KindJson::of(&registry, factory)).collect();
        let limit = |kind: &KindJson| kind.default_concurrency.map(|limit| limit.to_string());
        let row = |kind: &KindJson| {
            [
                kind.kind.to_owned(),
                kind.schemes.join(", "),
                limit(kind).unwrap_or_default(),
                kind.about.to_owned(),
            ]
        };
        let header = ["kind", "addresses", "limit", "about"];
        output::write_list(&mut out, &kinds, |kind| kind, (header, row), format, style)?;
        return Ok(Exit::Clean);
    };
    let fields = registry.fields(find(&registry, kind)?.kind());
    let row =
        |field: &Field| [field.name.clone(), field.type_name.clone(), default_of(field), field.doc.clone()];
    let header = ["field", "type", "default", "about"];
    output::write_list(&mut out, &fields, |field| field, (header, row), format, style)?;
    Ok(Exit::Clean)
}

fn find<'r>(registry: &'r Registry, kind: &str) -> Result<&'r dyn ConnectorFactory> {
    if let Some(factory) = registry.get(kind) {
        return Ok(factory);
    }
    match document::nearest(kind, registry.kinds()) {
        Some(near) => bail!("there is no kind `{kind}`; did you mean `{near}`?"),
        None => bail!("there is no kind `{kind}`: `domesday datasource kinds` shows them"),
    }
}

/// What a field is where it is left out.
fn default_of(field: &Field) -> String {
    match &field.default {
        _ if field.is_required => "required".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::Path;

    use super::*;

    const BEGIN: &str = "<!-- generated: configuration fields -->\n";
    const END: &str = "<!-- end of generated -->\n";

    fn reference(registry: &Registry) -> String {
        let mut text = String::new();
        for factory in registry.factories() {
            let kind = KindJson::of(registry, factory);
            write!(text, "\n### `{}`: {}\n\n", kind.kind, kind.about).unwrap();
            if kind.fields.is_empty() {
                text.push_str("It has no fields.\n");
                continue;
            }
            text.push_str("| field | type | default | |\n|---|---|---|---|\n");
            for field in &kind.fields {
                let default = default_of(field);
                let default =
                    if default.is_empty() || field.is_required { default } else { format!("`{default}`") };
                let doc = field.doc.replace('|', "\\|");
                writeln!(text, "| `{}` | {} | {default} | {doc} |", field.name, field.type_name).unwrap();
            }
        }
        text.push('\n');
        text
    }

    #[test]
    fn every_kind_describes_itself() {
        for factory in connectors::of_fleet().factories() {
            let kind = factory.kind();
            assert!(!factory.describe().about.is_empty(), "{kind}: about");
            assert!(!factory.fields().is_empty(), "{kind}: fields");
            for field in factory.fields() {
                assert!(!field.doc.is_empty(), "{kind}: {} has no doc comment", field.name);
            }
        }
    }

    #[test]
    fn the_reference_in_the_documents_is_not_stale() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/connectors.md");
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (section, after) = rest.split_once(END).unwrap();
        // All kinds, also those that are no data source of a fleet: `tidy` takes their names from here.
        let expected = reference(connectors::known());
        if section != expected && std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
            return;
        }
        assert_eq!(
            section, expected,
            "stale: run `UPDATE_SNAPSHOTS=1 cargo test -p domesday kinds` and commit it"
        );
    }

    #[test]
    fn an_unknown_kind_is_told_with_the_nearest() {
        let told = find(&connectors::of_fleet(), "gthub").err().unwrap().to_string();
        assert!(told.contains("did you mean `github`?"), "{told}");
    }
}
