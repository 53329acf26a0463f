//! Which findings a report has by what their disclosure would mean: `--sensitivity` and `--regulation`.
//!
//! Applied where rows are counted, so that the report, its summary and the exit code speak of the same findings.

use anyhow::{Result, bail};
use domesday_engine::Class;
use domesday_model::{Regulation, Sensitivity};

use super::RuleInfo;

/// The findings that were asked for; by default all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClassFilter {
    sensitivity: Option<Sensitivity>,
    regulation: Option<Regulation>,
}

impl ClassFilter {
    /// Refuses a regulation that concerns no rule: a misspelt one would make every report a clean one.
    pub fn new(
        sensitivity: Option<Sensitivity>,
        regulation: Option<Regulation>,
        rules: &[RuleInfo],
    ) -> Result<ClassFilter> {
        let concerned = || rules.iter().flat_map(|rule| &rule.class.regulations);
        if let Some(regulation) = &regulation
            && !concerned().any(|known| known == regulation)
        {
            let mut known: Vec<_> = concerned().collect();
            known.sort();
            known.dedup();
            let known: Vec<_> = known.into_iter().map(Regulation::as_str).collect();
            bail!("no rule of this scan concerns {regulation}: use one of {}", known.join(", "));
        }
        Ok(ClassFilter { sensitivity, regulation })
    }

    pub fn admits(&self, class: &Class) -> bool {
        self.sensitivity.is_none_or(|least| class.sensitivity >= least)
            && self.regulation.as_ref().is_none_or(|wanted| class.regulations.contains(wanted))
    }
}

/// The names in one line, for people.
pub fn regulations(class: &Class) -> String {
    class.regulations.iter().map(Regulation::as_str).collect::<Vec<_>>().join(", ")
}
