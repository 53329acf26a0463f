//! The kinds of data source a process can read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domesday_model::TrustContent;

use crate::address::{Address, Scheme};
use crate::fields::Field;
use crate::sealed_names::{SealedNames, redacted};
use crate::{
    Connector, ConnectorError, ConnectorFactory, Coverage, Description, NamedBy, Recognition, Surroundings,
    TargetError, TargetFlags, trust,
};

/// Factories by kind. A connector exists once its line is here.
#[derive(Clone, Default)]
pub struct Registry {
    factories: BTreeMap<&'static str, Arc<dyn ConnectorFactory>>,
}

impl Registry {
    #[must_use]
    pub fn with(mut self, factory: impl ConnectorFactory + 'static) -> Registry {
        self.factories.insert(factory.kind(), Arc::new(factory));
        self
    }

    pub fn create(
        &self,
        kind: &str,
        configuration: &serde_json::Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        match self.factories.get(kind) {
            Some(factory) => {
                let (configuration, said) = trust::split(factory.kind(), configuration)?;
                let said = said.and(surroundings.trust_content);
                let trust_content = trust::resolve(factory.as_ref(), &configuration, said);
                let configuration = surroundings.seal.open_configuration(&configuration);
                let surroundings = Surroundings { trust_content, ..surroundings.clone() };
                let connector = factory.create(&configuration, &surroundings).map_err(redacted)?;
                Ok(Arc::new(SealedNames { connector, seal: surroundings.seal }))
            }
            None => {
                let known = self.kinds().collect::<Vec<_>>().join(", ");
                Err(ConnectorError::UnknownKind(kind.to_owned(), known))
            }
        }
    }

    /// What is wrong with a configuration, by the name of its field. The data source itself is not reached for.
    pub fn check(&self, kind: &str, configuration: &serde_json::Value) -> Result<(), ConnectorError> {
        self.create(kind, configuration, &Surroundings::default()).map(|_| ())
    }

    /// Whether the content of a data source may say what is reported of it, where a job says `asked` of all.
    pub fn trusts_content(
        &self,
        kind: &str,
        configuration: &serde_json::Value,
        asked: TrustContent,
    ) -> Result<bool, ConnectorError> {
        let Some(factory) = self.factories.get(kind) else { return Ok(false) };
        let (configuration, said) = trust::split(factory.kind(), configuration)?;
        Ok(trust::resolve(factory.as_ref(), &configuration, said.and(asked)) == TrustContent::Yes)
    }

    /// What is shown before the keys of a data source's objects.
    pub fn display_root(&self, kind: &str, configuration: &serde_json::Value, named: NamedBy<'_>) -> Vec<u8> {
        let Some(factory) = self.get(kind) else { return Vec::new() };
        trust::split(factory.kind(), configuration)
            .map(|(configuration, _)| factory.display_root(&configuration, named))
            .unwrap_or_default()
    }

    /// Which part of this machine's files a data source covers.
    pub fn coverage(&self, kind: &str, configuration: &serde_json::Value) -> Coverage {
        let Some(factory) = self.get(kind) else { return Coverage::default() };
        trust::split(factory.kind(), configuration)
            .map(|(configuration, _)| factory.coverage(&configuration))
            .unwrap_or_default()
    }

    /// Folders outside of a data source that its content leads to.
    pub fn leads_out(&self, kind: &str, configuration: &serde_json::Value) -> Vec<PathBuf> {
        let Some(factory) = self.get(kind) else { return Vec::new() };
        trust::split(factory.kind(), configuration)
            .map(|(configuration, _)| factory.leads_out(&configuration))
            .unwrap_or_default()
    }

    /// The fields of a kind's configuration: its own, and the one that all have.
    pub fn fields(&self, kind: &str) -> Vec<Field> {
        let own = self.get(kind).map(ConnectorFactory::fields).unwrap_or_default();
        own.into_iter().chain([trust::field()]).collect()
    }

    pub fn get(&self, kind: &str) -> Option<&dyn ConnectorFactory> {
        self.factories.get(kind).map(AsRef::as_ref)
    }

    /// The facts about a kind; those of a kind that is not known are the defaults.
    pub fn describe(&self, kind: &str) -> Description {
        self.get(kind).map(ConnectorFactory::describe).unwrap_or_default()
    }

    /// The factories, in the order of their kinds' names.
    pub fn factories(&self) -> impl Iterator<Item = &dyn ConnectorFactory> {
        self.factories.values().map(AsRef::as_ref)
    }

    /// How addresses begin.
    pub fn schemes(&self) -> impl Iterator<Item = Scheme> {
        self.factories().flat_map(|factory| factory.describe().schemes.iter().copied())
    }

    /// The factory that reads an address: the one of the kind that was asked for, or the surest.
    pub fn for_address(&self, address: &Address, kind: Option<&str>) -> Option<&dyn ConnectorFactory> {
        match kind {
            Some(kind) => {
                self.get(kind).filter(|factory| factory.describe().schemes.iter().any(Scheme::is_remote))
            }
            None => surest(self.factories().map(|factory| (factory.recognises(address), factory))),
        }
    }

    /// The factory that reads a path of this machine: the surest. Links are resolved in the path.
    pub fn for_path(
        &self,
        path: &Path,
        flags: &TargetFlags,
    ) -> Result<Option<&dyn ConnectorFactory>, TargetError> {
        let mut candidates = Vec::new();
        for factory in self.factories() {
            candidates.push((factory.recognises_path(path, flags)?, factory));
        }
        Ok(surest(candidates))
    }

    /// The kinds there are, in the order of their names.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.factories.keys().copied()
    }
}

/// The first of those that are surest.
fn surest<'a>(
    candidates: impl IntoIterator<Item = (Recognition, &'a dyn ConnectorFactory)>,
) -> Option<&'a dyn ConnectorFactory> {
    let mut best = (Recognition::No, None);
    for (recognition, factory) in candidates {
        if recognition > best.0 {
            best = (recognition, Some(factory));
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_names_the_known_ones() {
        let error = Registry::default().create("ftp", &serde_json::Value::Null, &Surroundings::default());
        let message = error.err().map(|error| error.to_string());
        assert_eq!(message.as_deref(), Some("no connector for data sources of kind `ftp`; known: "));
    }
}
