//! From a template to a master job: the sources it names, the rules it uses, grouped by node group.
//!
//! The command line composes when a user starts a job, an orchestrator when a schedule is due; the job is
//! complete in itself, so that nothing that changes later changes it.

use std::collections::BTreeSet;

use domesday_engine::{RuleSet, RuleSource};
use domesday_model::{ConfigurationUsed, DatasourceSpec, JobConfiguration, MasterJobId, ScanTemplate};
use domesday_store::{ComposerStore, ManagedDatasource, NewMasterJob, StoreError};

use crate::rules::RuleCache;

/// Why no job can be made of a template.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    #[error(
        "template `{template}`: no data source matches `{pattern}`; `domesday datasource list` shows them"
    )]
    NoSource { template: String, pattern: String },
    #[error("template `{template}`: {detail}")]
    Rules { template: String, detail: String },
    #[error(
        "this book has no fingerprint key yet: start a worker, which brings its own, or name it with \
         `domesday db migrate --fingerprint-key env:NAME`"
    )]
    NoKey,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A job that is ready to be submitted. Its rule set is in the book already.
pub async fn compose(
    store: &dyn ComposerStore,
    template: &ScanTemplate,
    id: MasterJobId,
) -> Result<NewMasterJob, ComposeError> {
    let sources = selected(template, store.managed_datasources().await?)?;
    let key = store.fingerprint_key().await?.ok_or(ComposeError::NoKey)?;
    let rules = rules(template)?;
    store.put_rule_set(rules.hash(), &RuleCache::text(&rules)).await?;
    let used = configuration_used(template, &rules, &sources);
    Ok(NewMasterJob {
        id,
        request_key: id.0,
        description: template.name.clone(),
        template: Some(template.name.clone()),
        priority: template.priority,
        configuration: JobConfiguration {
            datasources: sources,
            rule_set: rules.hash().to_string(),
            options: template.options.clone(),
            fingerprint_key: key,
            engine_version: domesday_engine::VERSION,
            incremental: true,
            configuration: Some(used),
        },
    })
}

/// What reports say that the job's settings are from. The hash is that of all that decides what is found, and changes
/// with each of it.
fn configuration_used(
    template: &ScanTemplate,
    rules: &RuleSet,
    sources: &[DatasourceSpec],
) -> ConfigurationUsed {
    let sources: Vec<_> =
        sources.iter().map(|source| (&source.name, &source.kind, &source.configuration)).collect();
    let settings = serde_json::json!([rules.hash().to_string(), template.options, sources]);
    ConfigurationUsed {
        path: None,
        template: Some(template.name.clone()),
        hash: blake3::hash(settings.to_string().as_bytes()).to_hex().to_string(),
    }
}

/// The sources a template names, each once, in the order of their names. A pattern that no source matches is
/// an error: a scan of less than was asked for must not look complete.
pub fn selected(
    template: &ScanTemplate,
    sources: Vec<ManagedDatasource>,
) -> Result<Vec<DatasourceSpec>, ComposeError> {
    let mut chosen = BTreeSet::new();
    for pattern in &template.datasources {
        let matching: Vec<&str> = sources
            .iter()
            .map(|source| source.spec.name.as_str())
            .filter(|name| matches(pattern, name))
            .collect();
        if matching.is_empty() {
            let (template, pattern) = (template.name.clone(), pattern.clone());
            return Err(ComposeError::NoSource { template, pattern });
        }
        chosen.extend(matching);
    }
    let chosen: BTreeSet<String> = chosen.into_iter().map(str::to_owned).collect();
    Ok(sources.into_iter().map(|source| source.spec).filter(|spec| chosen.contains(&spec.name)).collect())
}

/// The built-in rules of this version, and the template's own.
pub fn rules(template: &ScanTemplate) -> Result<RuleSet, ComposeError> {
    let mut sources = RuleSet::builtin_sources();
    let own = template.rules.iter();
    sources.extend(own.map(|file| RuleSource { name: file.name.clone(), text: file.text.clone() }));
    RuleSet::load(&sources)
        .map_err(|errors| ComposeError::Rules { template: template.name.clone(), detail: errors.to_string() })
}

/// Whether a name is what a pattern says, `*` being any run of characters. Linear: only the last star is
/// ever gone back to.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, n) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_run_of_characters() {
        for (pattern, name, is) in [
            ("share", "share", true),
            ("share", "shares", false),
            ("share-*", "share-eu", true),
            ("*-eu", "share-eu", true),
            ("s*-*u", "share-eu", true),
            ("*", "", true),
            ("", "x", false),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXb", false),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_without_a_source_is_an_error() {
        let source = |id, name: &str| ManagedDatasource {
            id: domesday_model::DatasourceId(id),
            spec: DatasourceSpec::new(name, "filesystem", "eu", serde_json::Value::Null),
            created_at_ms: 0,
            updated_at_ms: 0,
        };
        let template = |patterns: &[&str]| ScanTemplate {
            name: "t".into(),
            datasources: patterns.iter().map(|&pattern| pattern.to_owned()).collect(),
            rules: Vec::new(),
            options: Default::default(),
            priority: 0,
            schedule: None,
        };
        let sources = || vec![source(1, "a1"), source(2, "a2"), source(3, "b")];
        let names = |specs: Vec<DatasourceSpec>| specs.into_iter().map(|spec| spec.name).collect::<Vec<_>>();
        assert_eq!(names(selected(&template(&["b", "a*", "a1"]), sources()).unwrap()), ["a1", "a2", "b"]);
        let error = selected(&template(&["a*", "c"]), sources()).unwrap_err().to_string();
        assert!(error.contains("no data source matches `c`"), "{error}");
    }
}
