//! `domesday rules list|show|test|check`.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use domesday_engine::{Ground, Literal, Rule, Shape, Trigger, Validator};
use domesday_model::key::escaped;

use super::sample::{self, Sample};
use super::{list_format, stdout_style};
use crate::args::{RulesArgs, RulesCommand, SelectArgs};
use crate::reach::Reach;
use crate::{Exit, output, rules};

pub fn run(args: &RulesArgs) -> Result<Exit> {
    match &args.command {
        RulesCommand::List { rules, select, json } => list(rules, select, *json),
        RulesCommand::Show { id, rules } => show(id, rules),
        RulesCommand::Test { sample, rule, rules, show_values, json } => {
            sample::test(&Sample { path: sample, only: rule, rules, show_values: *show_values, json: *json })
        }
        RulesCommand::Check { paths } => check(paths),
    }
}

fn list(paths: &[PathBuf], select: &SelectArgs, json: bool) -> Result<Exit> {
    let set = rules::load_with(
        rules::read(paths, &Reach::Anywhere)?.into_iter().chain(rules::selection(&select.only, &select.skip)),
    )?;
    rules::say_notes(&set);
    let infos = rules::infos(&Arc::new(set));
    output::write_rules(&mut std::io::stdout().lock(), &infos, list_format(json), stdout_style())?;
    Ok(Exit::Clean)
}

fn show(id: &str, paths: &[PathBuf]) -> Result<Exit> {
    let set = rules::load(paths)?;
    let Some(rule) = set.get(id) else { bail!("there is no rule `{id}`: `domesday rules list` shows all") };
    output::write_rule_detail(&mut std::io::stdout().lock(), &fields(rule), stdout_style())?;
    Ok(Exit::Clean)
}

fn fields(rule: &Rule) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("id", rule.id.to_string()),
        ("description", rule.description.clone()),
        ("category", rule.category.to_string()),
        ("sensitivity", rule.class().sensitivity.to_string()),
        ("regulations", rule.grounds().iter().map(ground).collect::<Vec<_>>().join("\n")),
        ("family", rule.family.to_string()),
        ("regex", rule.regex.clone()),
        ("longest match", format!("{} bytes", rule.max_len)),
        ("trigger", trigger(&rule.trigger)),
        ("score", format!("{} ({})", rule.score.0, rule.score.level())),
    ];
    if !rule.validators.is_empty() {
        fields.push(("validators", rule.validators.iter().map(validator).collect::<Vec<_>>().join(", ")));
    }
    if let Some(context) = &rule.context {
        let needed = if context.required { "needed for more than low" } else { "adds" };
        let words = context.words.join(", ");
        fields.push((
            "context",
            format!("{words} (within {} bytes; {needed} {})", context.within, context.boost),
        ));
    }
    for (label, list) in [("tags", &rule.tags), ("regions", &rule.regions)] {
        if !list.is_empty() {
            fields.push((label, list.join(", ")));
        }
    }
    fields.extend(rule.positive.iter().map(|text| ("finds", text.clone())));
    fields.extend(rule.negative.iter().map(|text| ("not", text.clone())));
    fields
}

fn ground(ground: &Ground) -> String {
    let about: Vec<_> = ground.title.into_iter().chain(ground.notes.iter().copied()).collect();
    let separator = if about.is_empty() { "" } else { ": " };
    format!("{}{separator}{}", ground.regulation, about.join("; "))
}

fn trigger(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Literals(literals) => {
            let shown = |literal: &Literal| {
                let case = if literal.any_case { " in any case" } else { "" };
                format!("`{}`{case}", escaped(&literal.bytes))
            };
            literals.iter().map(shown).collect::<Vec<_>>().join(", ")
        }
        Trigger::Shape(shape) => match shape {
            Shape::Digits { min } => format!("{min} digits or more, single separators between them allowed"),
            Shape::At => "`@`".into(),
            Shape::DottedQuad => "four numbers with dots between".into(),
            Shape::HexColon { min } => format!("hexadecimal groups with {min} colons or more"),
            Shape::WordDigits { min, len } => {
                format!("a word of {len} characters or more, {min} digits among them")
            }
        },
    }
}

pub fn validator(validator: &Validator) -> String {
    match validator {
        Validator::Named { name, .. } => name.clone(),
        Validator::Entropy { min } => format!("entropy of at least {min} bits per byte"),
        Validator::Stopwords { .. } => "no placeholder".into(),
        Validator::Distinct { min } => format!("at least {min} different bytes"),
    }
}

/// Checks the files as a scan would load them, with every example in them.
fn check(paths: &[PathBuf]) -> Result<Exit> {
    let count = rules::check(&rules::read(paths, &Reach::Anywhere)?)?;
    writeln!(std::io::stdout(), "{count} rules are in order")?;
    Ok(Exit::Clean)
}
