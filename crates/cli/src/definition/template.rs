//! A scan template's definition.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use domesday_control::compose::matches;
use domesday_control::schedule::next_firing;
use domesday_engine::RuleSource;
use domesday_model::{MissedFirings, ScanOptions, ScanTemplate, Schedule, Score, TemplateRules};
use domesday_store::ManagedDatasource;
use serde_json::{Value, json};

use super::check_name;
use crate::args::{LevelArg, TemplateEdit, TemplateFields};
use crate::document::{Fields, unknown_field};
use crate::reach::Reach;
use crate::rules::{self, SELECTION};

/// What `show` adds to a definition.
const ADDED_BY_SHOW: &[&str] = &["next_firing", "last_firing", "updated_at"];
/// The time zone of a schedule that names none.
const TIME_ZONE: &str = "UTC";
/// Firings that are shown.
pub const FIRINGS_SHOWN: usize = 3;

/// From a document. `name` is what the command line says it is called; rule files are beside the document.
pub fn from_value(value: Value, name: Option<&str>, folder: &Path) -> Result<ScanTemplate> {
    let mut fields = Fields::new("template", value)?;
    let given = fields.text("name")?;
    let name = match (given, name) {
        (Some(given), Some(name)) if given != name => {
            bail!("template {name}: name: the file says `{given}`; a name cannot be changed")
        }
        (Some(name), _) => name,
        (None, Some(name)) => name.to_owned(),
        (None, None) => bail!("template: name: is missing"),
    };
    fields.what = format!("template {name}");
    fields.leave_out(ADDED_BY_SHOW);
    let datasources: Vec<String> =
        fields.take("datasources", "a list of names, `*` being any characters")?.unwrap_or_default();
    let mut rules = match fields.value("rules") {
        Some(value) => rule_files(&fields.what, value, folder)?,
        None => Vec::new(),
    };
    if let Some(value) = fields.value("select") {
        let (only, skip) = selectors(&fields.what, value)?;
        select(&mut rules, &only, &skip);
    }
    let mut options = ScanOptions::default();
    if let Some(level) = fields.text("level")? {
        options.min_score = floor(&fields.what, &level)?;
    }
    if let Some(trust) = fields.take("trust_content", "yes, no or auto")? {
        options.trust_content = trust;
    }
    if let Some(value) = fields.value("options") {
        let Value::Object(given) = value else { bail!("{}: options: expected a table", fields.what) };
        for (option, value) in given {
            set_option(&fields.what, &mut options, &option, value)?;
        }
    }
    let template = ScanTemplate {
        name,
        datasources,
        rules,
        options,
        priority: fields.take("priority", "a whole number")?.unwrap_or_default(),
        schedule: fields.value("schedule").map(|value| schedule(&fields.what, value)).transpose()?,
    };
    fields.finish()?;
    Ok(template)
}

/// Paths of rule files, or the files themselves as `show` gives them.
fn rule_files(what: &str, value: Value, folder: &Path) -> Result<Vec<TemplateRules>> {
    let expected = || anyhow!("{what}: rules: expected a list of paths, or of rules with a name and a text");
    let Value::Array(entries) = value else { return Err(expected()) };
    let mut files = Vec::new();
    for entry in entries {
        match entry {
            Value::String(path) => files.extend(read_rules(what, &[folder.join(path)])?),
            entry => files.push(serde_json::from_value(entry).map_err(|_| expected())?),
        }
    }
    Ok(files)
}

/// What `select = { only = […], skip = […] }` names.
fn selectors(what: &str, value: Value) -> Result<(Vec<String>, Vec<String>)> {
    let mut fields = Fields::new(format!("{what}: select"), value)?;
    let expected = "a list of rules, such as \"aws-*\" or \"category:secret\"";
    let only: Option<Vec<String>> = fields.take("only", expected)?;
    let skip: Option<Vec<String>> = fields.take("skip", expected)?;
    fields.finish()?;
    Ok((only.unwrap_or_default(), skip.unwrap_or_default()))
}

/// A selection travels among the rules, as what says which of them count. It takes the place of an earlier one.
fn select(rules: &mut Vec<TemplateRules>, only: &[String], skip: &[String]) {
    if let Some(RuleSource { name, text }) = rules::selection(only, skip) {
        rules.retain(|file| file.name != SELECTION);
        rules.push(TemplateRules { name, text });
    }
}

fn read_rules(what: &str, paths: &[PathBuf]) -> Result<Vec<TemplateRules>> {
    let read = rules::read(paths, &Reach::Anywhere).map_err(|error| anyhow!("{what}: rules: {error:#}"))?;
    Ok(read.into_iter().map(|RuleSource { name, text }| TemplateRules { name, text }).collect())
}

fn floor(what: &str, level: &str) -> Result<Score> {
    let level = <LevelArg as clap::ValueEnum>::from_str(level, false)
        .map_err(|_| anyhow!("{what}: level: expected low, medium or high"))?;
    Ok(domesday_model::Level::from(level).floor())
}

/// Sets one option by its name.
fn set_option(what: &str, options: &mut ScanOptions, option: &str, value: Value) -> Result<()> {
    let mut all = serde_json::to_value(&*options)?;
    // Left out unless it is set.
    all["strict"] = options.strict.into();
    let known = all.as_object_mut().ok_or_else(|| anyhow!("{what}: options: expected a table"))?;
    if !known.contains_key(option) {
        bail!("{what}: options: {}", unknown_field(option, known.keys().map(String::as_str)));
    }
    let expected = match known[option] {
        Value::Bool(_) => "true or false",
        Value::String(_) => "yes, no or auto",
        _ => "a number from 0 up, within its limits",
    };
    known.insert(option.to_owned(), value);
    *options = serde_json::from_value(all)
        .ok()
        .filter(|options: &ScanOptions| options.min_score <= Score::MAX)
        .ok_or_else(|| anyhow!("{what}: options.{option}: expected {expected}"))?;
    Ok(())
}

fn schedule(what: &str, value: Value) -> Result<Schedule> {
    let mut fields = Fields::new(format!("{what}: schedule"), value)?;
    let schedule = Schedule {
        cron: fields.needed_text("cron")?,
        time_zone: fields.text("time_zone")?.unwrap_or_else(|| TIME_ZONE.to_owned()),
        missed: fields.take("missed", "run-once or skip")?.unwrap_or_default(),
    };
    fields.finish()?;
    Ok(schedule)
}

pub fn from_flags(name: &str, flags: &TemplateFields) -> Result<ScanTemplate> {
    let empty = ScanTemplate {
        name: name.to_owned(),
        datasources: Vec::new(),
        rules: Vec::new(),
        options: ScanOptions::default(),
        priority: 0,
        schedule: None,
    };
    with_flags(empty, flags)
}

/// What an edit by flags makes of a template: only what is given changes; a list is replaced whole.
pub fn edited(before: &ScanTemplate, edit: &TemplateEdit) -> Result<ScanTemplate> {
    let mut template = before.clone();
    if edit.no_rules {
        template.rules.retain(|file| file.name == SELECTION);
    }
    if edit.no_select {
        template.rules.retain(|file| file.name != SELECTION);
    }
    template.schedule = template.schedule.filter(|_| !edit.no_schedule);
    with_flags(template, &edit.fields)
}

fn with_flags(mut template: ScanTemplate, flags: &TemplateFields) -> Result<ScanTemplate> {
    let what = format!("template {}", template.name);
    if !flags.datasource.is_empty() {
        template.datasources = flags.datasource.clone();
    }
    if !flags.rules.is_empty() {
        template.rules.retain(|file| file.name == SELECTION);
        template.rules.splice(0..0, read_rules(&what, &flags.rules)?);
    }
    select(&mut template.rules, &flags.only, &flags.skip);
    if let Some(level) = flags.level {
        template.options.min_score = domesday_model::Level::from(level).floor();
    }
    template.options.trust_content = flags.trust_content.unwrap_or(template.options.trust_content);
    for setting in &flags.option {
        set_option(&what, &mut template.options, &setting.path.join("."), setting.value.clone())?;
    }
    template.priority = flags.priority.unwrap_or(template.priority);
    template.schedule = with_schedule(&what, template.schedule, flags)?;
    Ok(template)
}

fn with_schedule(what: &str, before: Option<Schedule>, flags: &TemplateFields) -> Result<Option<Schedule>> {
    if flags.cron.is_none() && flags.time_zone.is_none() && flags.missed.is_none() {
        return Ok(before);
    }
    let Some(cron) = flags.cron.clone().or(before.as_ref().map(|schedule| schedule.cron.clone())) else {
        bail!("{what}: schedule.cron: is missing: give --cron");
    };
    let (time_zone, missed) = match before {
        Some(schedule) => (schedule.time_zone, schedule.missed),
        None => (TIME_ZONE.to_owned(), MissedFirings::default()),
    };
    Ok(Some(Schedule {
        cron,
        time_zone: flags.time_zone.clone().unwrap_or(time_zone),
        missed: flags.missed.map_or(missed, MissedFirings::from),
    }))
}

/// Whether a template can be what it says; its rules are loaded and run on their examples.
pub fn check(template: &ScanTemplate) -> Result<()> {
    let what = format!("template {}", template.name);
    check_name("template", &template.name)?;
    if template.datasources.is_empty() {
        bail!("{what}: datasources: is missing: name at least one, or `*` for all");
    }
    if !template.rules.is_empty() {
        let own = template.rules.iter();
        let own: Vec<RuleSource> =
            own.map(|file| RuleSource { name: file.name.clone(), text: file.text.clone() }).collect();
        rules::check(&own).map_err(|error| anyhow!("{what}: rules: {error:#}"))?;
    }
    Ok(())
}

/// Patterns that no data source has: allowed, since one may come later, but worth a word.
pub fn unmatched<'a>(template: &'a ScanTemplate, sources: &[ManagedDatasource]) -> Vec<&'a str> {
    let patterns = template.datasources.iter().map(String::as_str);
    patterns.filter(|pattern| !sources.iter().any(|source| matches(pattern, &source.spec.name))).collect()
}

/// The next times a template is due.
pub fn firings(template: &ScanTemplate, now_ms: i64) -> Result<Vec<i64>> {
    let Some(schedule) = &template.schedule else { return Ok(Vec::new()) };
    let mut times = Vec::new();
    let mut after = now_ms;
    while times.len() < FIRINGS_SHOWN {
        let next =
            next_firing(schedule, after).map_err(|error| anyhow!("template {}: {error}", template.name))?;
        let Some(next) = next else { break };
        times.push(next);
        after = next;
    }
    if times.is_empty() {
        bail!("template {}: schedule.cron: is never due", template.name);
    }
    Ok(times)
}

/// A template for comparison: rule files by what is in them, not with all their text.
pub fn comparable(template: &ScanTemplate) -> Result<Value> {
    let mut value = serde_json::to_value(template)?;
    let file = |file: &TemplateRules| {
        let hash = blake3::hash(file.text.as_bytes()).to_hex();
        (file.name.clone(), json!(format!("{} bytes, blake3 {}", file.text.len(), &hash[..8])))
    };
    value["rules"] = template.rules.iter().map(file).collect::<serde_json::Map<_, _>>().into();
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(value: Value) -> Result<ScanTemplate> {
        let template = from_value(value, None, Path::new(""))?;
        check(&template)?;
        Ok(template)
    }

    #[test]
    fn a_template_has_defaults() {
        let made =
            template(json!({"name": "t", "datasources": ["*"], "schedule": {"cron": "0 2 * * *"}})).unwrap();
        assert_eq!(made.options, ScanOptions::default());
        let schedule = made.schedule.unwrap();
        assert_eq!((schedule.time_zone.as_str(), schedule.missed), ("UTC", MissedFirings::RunOnce));
        let made = template(json!({
            "name": "t", "datasources": ["*"], "level": "high", "options": {"max_depth": 3}, "priority": -2,
        }))
        .unwrap();
        assert_eq!((made.options.min_score, made.options.max_depth, made.priority), (Score::HIGH, 3, -2));
    }

    #[test]
    fn problems_are_told_by_their_field() {
        let good = json!({"name": "t", "datasources": ["*"]});
        template(good.clone()).unwrap();
        for (field, value, problem) in [
            ("datasources", json!([]), "template t: datasources: is missing"),
            ("datasources", json!("a"), "template t: datasources: expected a list"),
            (
                "datasource",
                json!(["a"]),
                "template t: unknown field `datasource`; did you mean `datasources`?",
            ),
            ("level", json!("hihg"), "template t: level: expected low, medium or high"),
            (
                "options",
                json!({"max_dept": 1}),
                "template t: options: unknown field `max_dept`; did you mean `max_depth`?",
            ),
            ("options", json!({"max_depth": -1}), "template t: options.max_depth: expected a number"),
            ("options", json!({"strict": 1}), "template t: options.strict: expected true or false"),
            ("options", json!({"min_score": 101}), "template t: options.min_score: expected a number"),
            ("schedule", json!({"time_zone": "UTC"}), "template t: schedule: cron: is missing"),
            (
                "schedule",
                json!({"cron": "* * * * *", "missed": "x"}),
                "template t: schedule: missed: expected run-once or skip",
            ),
            ("rules", json!(["/no/such.toml"]), "template t: rules: cannot read rules from /no/such.toml"),
            ("rules", json!([{"name": "x", "text": "[[rule]"}]), "template t: rules: x:1"),
        ] {
            let mut value_with = good.clone();
            value_with[field] = value;
            let told = format!("{:#}", template(value_with).unwrap_err());
            assert!(told.contains(problem), "{told}");
        }
    }
}
