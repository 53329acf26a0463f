//! `domesday template add|list|show|edit|remove`.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use domesday_model::ScanTemplate;
use domesday_store::{Put, ReportStore, StoredTemplate};
use serde::Serialize;

use super::datasource::write_changes;
use super::{list_format, runtime, stdout_style};
use crate::args::{StateArgs, TemplateAdd, TemplateArgs, TemplateCommand, TemplateEdit};
use crate::book;
use crate::definition::template as definition;
use crate::document;
use crate::sealing::Sealing;
use crate::{Exit, output, say};

pub fn run(args: &TemplateArgs) -> Result<Exit> {
    runtime()?.block_on(async {
        match &args.command {
            TemplateCommand::Add(args) => add(args).await,
            TemplateCommand::List { json, state } => list(*json, state).await,
            TemplateCommand::Show { name, json, state } => show(name, *json, state).await,
            TemplateCommand::Edit(args) => edit(args).await,
            TemplateCommand::Remove { name, state } => remove(name, state).await,
        }
    })
}

#[derive(Serialize)]
struct TemplateJson<'a> {
    #[serde(flatten)]
    template: &'a ScanTemplate,
    #[serde(flatten)]
    firings: FiringsJson,
}

/// A template without the text of its rules.
#[derive(Serialize)]
struct ListedJson<'a> {
    name: &'a str,
    datasources: &'a [String],
    rules: Vec<&'a str>,
    priority: i64,
    schedule: &'a Option<domesday_model::Schedule>,
    #[serde(flatten)]
    firings: FiringsJson,
}

impl<'a> ListedJson<'a> {
    fn new(stored: &'a StoredTemplate) -> ListedJson<'a> {
        let template = &stored.template;
        ListedJson {
            name: &template.name,
            datasources: &template.datasources,
            rules: template.rules.iter().map(|file| file.name.as_str()).collect(),
            priority: template.priority,
            schedule: &template.schedule,
            firings: FiringsJson::new(stored),
        }
    }
}

#[derive(Serialize)]
struct FiringsJson {
    next_firing: Option<String>,
    last_firing: Option<LastFiringJson>,
    updated_at: String,
}

#[derive(Serialize)]
struct LastFiringJson {
    at: String,
    /// Absent when it was skipped.
    job: Option<String>,
}

impl FiringsJson {
    fn new(stored: &StoredTemplate) -> FiringsJson {
        let last = stored.last_firing.map(|(at, job)| LastFiringJson {
            at: output::timestamp(at),
            job: job.map(|job| job.to_string()),
        });
        FiringsJson {
            next_firing: stored.next_firing_ms.map(output::timestamp),
            last_firing: last,
            updated_at: output::timestamp(stored.updated_at_ms),
        }
    }
}

async fn add(args: &TemplateAdd) -> Result<Exit> {
    let mut templates = match (&args.file, &args.name) {
        (Some(file), name) => from_file(file, name.as_deref())?,
        (None, Some(name)) => vec![definition::from_flags(name, &args.fields)?],
        (None, None) => bail!("name the template, or give a --file"),
    };
    let store = book::administer(&args.state).await?;
    let now = store.due_templates().await?.now_ms;
    let taken: BTreeSet<String> = store.templates().await?.into_iter().map(|t| t.template.name).collect();
    let mut seen = BTreeSet::new();
    let mut firings = Vec::new();
    // All are checked before the first is added.
    for template in &templates {
        definition::check(template)?;
        firings.push(definition::firings(template, now)?);
        if taken.contains(&template.name) {
            bail!(
                "template {}: there is one of this name already: `domesday template edit` changes it",
                template.name
            );
        }
        if !seen.insert(&template.name) {
            bail!("template {}: is given twice", template.name);
        }
    }
    let sealing = Sealing::of(&args.state, store.as_ref()).await?;
    templates.iter_mut().try_for_each(|template| sealing.template(template))?;
    let mut added: Vec<&str> = Vec::new();
    for (template, firings) in templates.iter().zip(&firings) {
        if let Err(error) = store.put_template(template, Put::New, firings.first().copied()).await {
            let so_far = if added.is_empty() { "none".to_owned() } else { added.join(", ") };
            return Err(error)
                .with_context(|| format!("template {} (added before it: {so_far})", template.name));
        }
        added.push(&template.name);
    }
    let sources = store.managed_datasources().await?;
    templates.iter().for_each(|template| warn_of_unmatched(template, &sources));
    let added: Vec<AddedJson<'_>> = templates
        .iter()
        .zip(&firings)
        .map(|(template, firings)| AddedJson { name: &template.name, next_firings: shown_times(firings) })
        .collect();
    let lines: Vec<String> = added.iter().map(AddedJson::line).collect();
    let json = serde_json::json!({ "added": added });
    output::write_answer(&mut std::io::stdout().lock(), &json, &lines, list_format(args.json))?;
    Ok(Exit::Clean)
}

#[derive(Serialize)]
struct AddedJson<'a> {
    name: &'a str,
    next_firings: Vec<String>,
}

impl AddedJson<'_> {
    fn line(&self) -> String {
        match self.next_firings.as_slice() {
            [] => format!("{} added", self.name),
            times => format!("{} added; due {}", self.name, times.join(", ")),
        }
    }
}

fn shown_times(times: &[i64]) -> Vec<String> {
    times.iter().copied().map(output::timestamp).collect()
}

fn warn_of_unmatched(template: &ScanTemplate, sources: &[domesday_store::ManagedDatasource]) {
    for pattern in definition::unmatched(template, sources) {
        say(format_args!(
            "warning: template {}: datasources: no data source matches `{pattern}` yet",
            template.name
        ));
    }
}

/// The definitions in a file; a name on the command line is that of the only one.
fn from_file(file: &Path, name: Option<&str>) -> Result<Vec<ScanTemplate>> {
    let document = document::read(file, "template")?;
    if name.is_some() && document.entries.len() > 1 {
        bail!("the file has {} templates: leave the name out", document.entries.len());
    }
    let entries = document.entries.into_iter();
    entries.map(|entry| definition::from_value(entry, name, &document.folder)).collect()
}

async fn list(json: bool, state: &StateArgs) -> Result<Exit> {
    let store = book::read(state).await?;
    let templates = store.templates().await?;
    let mut out = std::io::stdout().lock();
    let row = |stored: &StoredTemplate| {
        let template = &stored.template;
        let schedule = template.schedule.as_ref();
        [
            template.name.clone(),
            schedule.map(|s| format!("{} {}", s.cron, s.time_zone)).unwrap_or_default(),
            stored.next_firing_ms.map(output::timestamp).unwrap_or_default(),
            stored.last_firing.map(|(at, _)| output::timestamp(at)).unwrap_or_default(),
            template.datasources.join(" "),
        ]
    };
    let header = ["name", "schedule", "next", "last", "data sources"];
    let format = list_format(json);
    output::write_list(&mut out, &templates, ListedJson::new, (header, row), format, stdout_style())?;
    Ok(Exit::Clean)
}

async fn find(store: &dyn ReportStore, name: &str) -> Result<StoredTemplate> {
    if let Some(template) = store.template(name).await? {
        return Ok(template);
    }
    let all = store.templates().await?;
    match document::nearest(name, all.iter().map(|stored| stored.template.name.as_str())) {
        Some(near) => bail!("there is no template `{name}`; did you mean `{near}`?"),
        None => bail!("there is no template `{name}`: `domesday template list` shows them"),
    }
}

async fn show(name: &str, json: bool, state: &StateArgs) -> Result<Exit> {
    let store = book::read(state).await?;
    let stored = find(store.as_ref(), name).await?;
    let template = &stored.template;
    let options = &template.options;
    let schedule = template.schedule.as_ref().map(|schedule| {
        let missed = serde_json::to_value(schedule.missed).unwrap_or_default();
        format!("{} {} (missed: {})", schedule.cron, schedule.time_zone, missed.as_str().unwrap_or_default())
    });
    // A schedule that is due already fires before these.
    let times = match stored.next_firing_ms {
        Some(next) => shown_times(&definition::firings(template, next.saturating_sub(1))?),
        None => Vec::new(),
    };
    let last = stored.last_firing.map(|(at, job)| match job {
        Some(job) => format!("{} as job {job}", output::timestamp(at)),
        None => format!("{} (skipped)", output::timestamp(at)),
    });
    let fields = vec![
        ("name", template.name.clone()),
        ("data sources", template.datasources.join("\n")),
        ("own rules", template.rules.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join("\n")),
        ("level", options.min_score.level().to_string()),
        ("options", serde_json::to_string(options)?),
        ("priority", template.priority.to_string()),
        ("schedule", schedule.unwrap_or_default()),
        ("next", times.join("\n")),
        ("last", last.unwrap_or_default()),
        ("updated", output::timestamp(stored.updated_at_ms)),
    ];
    let json_form = TemplateJson { template, firings: FiringsJson::new(&stored) };
    let mut out = std::io::stdout().lock();
    output::write_detail(&mut out, &json_form, fields, list_format(json), stdout_style())?;
    Ok(Exit::Clean)
}

async fn edit(args: &TemplateEdit) -> Result<Exit> {
    let store = book::administer(&args.state).await?;
    let stored = find(store.as_ref(), &args.name).await?;
    let before = stored.template;
    let mut after = match &args.file {
        Some(file) => match from_file(file, Some(&args.name))?.pop() {
            Some(template) => template,
            None => bail!("{}: there is no template in it", file.display()),
        },
        None => definition::edited(&before, args)?,
    };
    definition::check(&after)?;
    Sealing::of(&args.state, store.as_ref()).await?.template(&mut after)?;
    let now = store.due_templates().await?.now_ms;
    let firings = definition::firings(&after, now)?;
    let changes = document::changes(&definition::comparable(&before)?, &definition::comparable(&after)?);
    if !changes.is_empty() {
        // A firing that is due and not yet done stays due, unless the schedule itself changed.
        let next =
            if before.schedule == after.schedule { stored.next_firing_ms } else { firings.first().copied() };
        store.put_template(&after, Put::Replace, next).await?;
    }
    warn_of_unmatched(&after, &store.managed_datasources().await?);
    write_changes(&args.name, &changes, args.json)?;
    if before.schedule != after.schedule && !firings.is_empty() {
        say(format_args!("due {}", shown_times(&firings).join(", ")));
    }
    Ok(Exit::Clean)
}

async fn remove(name: &str, state: &StateArgs) -> Result<Exit> {
    let store = book::administer(state).await?;
    find(store.as_ref(), name).await?;
    store.remove_template(name).await?;
    let json = serde_json::json!({ "removed": name });
    let line = format!("{name} removed; its jobs stay");
    output::write_answer(&mut std::io::stdout().lock(), &json, &[line], list_format(false))?;
    Ok(Exit::Clean)
}
