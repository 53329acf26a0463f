//! `domesday datasource add|list|show|edit|test|kinds|remove`.

mod kinds;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use domesday_connector::credentials::CredentialManager;
use domesday_connector::{Step, Surroundings};
use domesday_model::DatasourceSpec;
use domesday_store::{ManagedDatasource, Put, ReportStore};
use serde::Serialize;
use serde_json::Value;

use super::{list_format, runtime, stdout_style};
use crate::args::{AllowArgs, DatasourceAdd, DatasourceArgs, DatasourceCommand, DatasourceEdit, StateArgs};
use crate::book;
use crate::definition::datasource as definition;
use crate::document::{self, Change};
use crate::sealing::Sealing;
use crate::{Exit, output, say, state};

pub fn run(args: &DatasourceArgs) -> Result<Exit> {
    runtime()?.block_on(async {
        match &args.command {
            DatasourceCommand::Add(args) => add(args).await,
            DatasourceCommand::List { json, state } => list(*json, state).await,
            DatasourceCommand::Show { name, json, state } => show(name, *json, state).await,
            DatasourceCommand::Edit(args) => edit(args).await,
            DatasourceCommand::Test { name, allow, json, state } => test(name, allow, *json, state).await,
            DatasourceCommand::Kinds { kind, json } => kinds::run(kind.as_deref(), *json),
            DatasourceCommand::Remove { name, state } => remove(name, state).await,
        }
    })
}

#[derive(Serialize)]
struct DatasourceJson<'a> {
    #[serde(flatten)]
    spec: &'a DatasourceSpec,
    created_at: String,
    updated_at: String,
}

impl<'a> DatasourceJson<'a> {
    fn new(source: &'a ManagedDatasource) -> DatasourceJson<'a> {
        DatasourceJson {
            spec: &source.spec,
            created_at: output::timestamp(source.created_at_ms),
            updated_at: output::timestamp(source.updated_at_ms),
        }
    }
}

async fn add(args: &DatasourceAdd) -> Result<Exit> {
    let mut specs = match (&args.file, &args.name) {
        (Some(file), name) => from_file(file, name.as_deref())?,
        (None, Some(name)) => vec![definition::from_flags(name, &args.fields)?],
        (None, None) => bail!("name the data source, or give a --file"),
    };
    let store = book::administer(&args.state).await?;
    let taken: BTreeSet<String> =
        store.managed_datasources().await?.into_iter().map(|source| source.spec.name).collect();
    let mut seen = BTreeSet::new();
    // All are checked before the first is added.
    for spec in &specs {
        definition::check(spec)?;
        if taken.contains(&spec.name) {
            bail!(
                "datasource {}: there is one of this name already: `domesday datasource edit` changes it",
                spec.name
            );
        }
        if !seen.insert(&spec.name) {
            bail!("datasource {}: is given twice", spec.name);
        }
    }
    let sealing = Sealing::of(&args.state, store.as_ref()).await?;
    specs.iter_mut().try_for_each(|spec| sealing.datasource(spec))?;
    let mut added: Vec<&str> = Vec::new();
    for spec in &specs {
        if let Err(error) = store.put_datasource(spec, Put::New).await {
            let so_far = if added.is_empty() { "none".to_owned() } else { added.join(", ") };
            return Err(error)
                .with_context(|| format!("datasource {} (added before it: {so_far})", spec.name));
        }
        added.push(&spec.name);
    }
    let lines: Vec<String> =
        specs.iter().map(|spec| format!("{} added to node group {}", spec.name, spec.node_group)).collect();
    let json = serde_json::json!({ "added": added });
    output::write_answer(&mut std::io::stdout().lock(), &json, &lines, list_format(args.json))?;
    Ok(Exit::Clean)
}

/// The definitions in a file; a name on the command line is that of the only one.
fn from_file(file: &Path, name: Option<&str>) -> Result<Vec<DatasourceSpec>> {
    let document = document::read(file, "datasource")?;
    if name.is_some() && document.entries.len() > 1 {
        bail!("the file has {} data sources: leave the name out", document.entries.len());
    }
    document.entries.into_iter().map(|entry| definition::from_value(entry, name)).collect()
}

async fn list(json: bool, state: &StateArgs) -> Result<Exit> {
    let store = book::read(state).await?;
    let sources = store.managed_datasources().await?;
    let row = |source: &ManagedDatasource| {
        let spec = &source.spec;
        [
            spec.name.clone(),
            spec.kind.clone(),
            spec.node_group.clone(),
            spec.worker_label.clone().unwrap_or_default(),
            spec.concurrency_limit.map(|limit| limit.to_string()).unwrap_or_default(),
            spec.credential.clone().unwrap_or_default(),
            brief(&spec.configuration),
        ]
    };
    let header = ["name", "kind", "group", "label", "limit", "credential", "configuration"];
    let mut out = std::io::stdout().lock();
    output::write_list(
        &mut out,
        &sources,
        DatasourceJson::new,
        (header, row),
        list_format(json),
        stdout_style(),
    )?;
    Ok(Exit::Clean)
}

/// A configuration on one line: `root=/srv/share exclude=["*.lock"]`.
fn brief(configuration: &Value) -> String {
    let Some(map) = configuration.as_object() else { return configuration.to_string() };
    let fields = map.iter().map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name}={text}"),
        None => format!("{name}={value}"),
    });
    fields.collect::<Vec<_>>().join(" ")
}

async fn find(store: &dyn ReportStore, name: &str) -> Result<ManagedDatasource> {
    if let Some(source) = store.managed_datasource(name).await? {
        return Ok(source);
    }
    let all = store.managed_datasources().await?;
    match document::nearest(name, all.iter().map(|source| source.spec.name.as_str())) {
        Some(near) => bail!("there is no datasource `{name}`; did you mean `{near}`?"),
        None => bail!("there is no datasource `{name}`: `domesday datasource list` shows them"),
    }
}

async fn show(name: &str, json: bool, state: &StateArgs) -> Result<Exit> {
    let store = book::read(state).await?;
    let source = find(store.as_ref(), name).await?;
    let spec = &source.spec;
    let fields = vec![
        ("name", spec.name.clone()),
        ("kind", spec.kind.clone()),
        ("node group", spec.node_group.clone()),
        ("label", spec.worker_label.clone().unwrap_or_default()),
        ("limit", spec.concurrency_limit.map(|limit| format!("{limit} tasks at once")).unwrap_or_default()),
        ("credential", spec.credential.clone().unwrap_or_default()),
        ("configuration", serde_json::to_string_pretty(&spec.configuration)?),
        ("created", output::timestamp(source.created_at_ms)),
        ("updated", output::timestamp(source.updated_at_ms)),
    ];
    let mut out = std::io::stdout().lock();
    output::write_detail(&mut out, &DatasourceJson::new(&source), fields, list_format(json), stdout_style())?;
    Ok(Exit::Clean)
}

async fn edit(args: &DatasourceEdit) -> Result<Exit> {
    let store = book::administer(&args.state).await?;
    let before = find(store.as_ref(), &args.name).await?.spec;
    let mut after = match &args.file {
        Some(file) => match from_file(file, Some(&args.name))?.pop() {
            Some(spec) => spec,
            None => bail!("{}: there is no datasource in it", file.display()),
        },
        None => definition::edited(&before, args)?,
    };
    definition::check(&after)?;
    Sealing::of(&args.state, store.as_ref()).await?.datasource(&mut after)?;
    let changes = document::changes(&serde_json::to_value(&before)?, &serde_json::to_value(&after)?);
    if !changes.is_empty() {
        store.put_datasource(&after, Put::Replace).await?;
    }
    write_changes(&args.name, &changes, args.json)?;
    Ok(Exit::Clean)
}

/// What an edit changed, field by field.
pub fn write_changes(name: &str, changes: &[Change], json: bool) -> Result<()> {
    let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
    let mut lines: Vec<String> = changes
        .iter()
        .map(|change| format!("{}: {} → {}", change.field, shown(&change.from), shown(&change.to)))
        .collect();
    if lines.is_empty() {
        lines.push("nothing changed".to_owned());
    }
    let json_form = serde_json::json!({ "name": name, "changes": changes });
    output::write_answer(&mut std::io::stdout().lock(), &json_form, &lines, list_format(json))?;
    Ok(())
}

#[derive(Serialize)]
struct TestedJson<'a> {
    name: &'a str,
    kind: &'a str,
    node_group: &'a str,
    readable: bool,
    steps: Vec<StepJson<'a>>,
    objects: usize,
    containers: usize,
    skipped: usize,
    /// Whether there is more than was listed.
    more: bool,
}

#[derive(Serialize)]
struct StepJson<'a> {
    step: &'static str,
    /// `ok`, `failed`, or `untried` after one that failed.
    status: &'static str,
    detail: &'a str,
}

async fn test(name: &str, allow: &AllowArgs, json: bool, state: &StateArgs) -> Result<Exit> {
    let store = book::read(state).await?;
    let spec = find(store.as_ref(), name).await?.spec;
    let folder = state::folder(state.state.as_deref())?;
    let policy = allow.policy().context("--allow-credentials")?.keeping_path(folder.clone());
    let credentials = Arc::new(CredentialManager::default().under(policy));
    let seal = Sealing::of(state, store.as_ref()).await?.seal();
    let surroundings = Surroundings { own_state: Some(folder), credentials, seal, ..Surroundings::default() };
    let trial =
        definition::try_out(&spec, &surroundings).await.with_context(|| format!("datasource {name}"))?;
    let steps = Step::ALL.iter().enumerate().map(|(index, step)| {
        let (status, detail) = match (trial.passed.get(index), &trial.problem) {
            (Some(found), _) => ("ok", found.as_str()),
            (None, Some(problem)) if index == trial.passed.len() => ("failed", problem.as_str()),
            (None, _) => ("untried", ""),
        };
        StepJson { step: step.as_str(), status, detail }
    });
    let seen = TestedJson {
        name,
        kind: &spec.kind,
        node_group: &spec.node_group,
        readable: trial.problem.is_none(),
        steps: steps.collect(),
        objects: trial.objects,
        containers: trial.containers,
        skipped: trial.skipped,
        more: trial.has_more,
    };
    let line = |step: &StepJson<'_>| format!("{:<11} {:<8} {}", step.step, step.status, step.detail);
    let lines: Vec<String> = seen.steps.iter().map(|step| line(step).trim_end().to_owned()).collect();
    output::write_answer(&mut std::io::stdout().lock(), &seen, &lines, list_format(json))?;
    if let Some(problem) = &trial.problem {
        say(format_args!("datasource {name}: {problem}"));
        return Ok(Exit::Incomplete);
    }
    say(format_args!(
        "a worker of node group {} must reach it, too: this tried it from here",
        spec.node_group
    ));
    Ok(Exit::Clean)
}

async fn remove(name: &str, state: &StateArgs) -> Result<Exit> {
    let store = book::administer(state).await?;
    find(store.as_ref(), name).await?;
    store.remove_datasource(name).await?;
    let json = serde_json::json!({ "removed": name });
    let line = format!("{name} removed; what was found in it stays");
    output::write_answer(&mut std::io::stdout().lock(), &json, &[line], list_format(false))?;
    Ok(Exit::Clean)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_configuration_fits_a_line() {
        let brief = super::brief(&json!({"root": "/srv", "exclude": ["*.lock"], "follow_symlinks": true}));
        assert_eq!(brief, r#"exclude=["*.lock"] follow_symlinks=true root=/srv"#);
    }
}
