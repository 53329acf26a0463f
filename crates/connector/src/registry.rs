//! The kinds of data source a process can read.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Connector, ConnectorError, ConnectorFactory, Surroundings};

/// Factories by kind. A connector exists once its line is here.
#[derive(Default)]
pub struct Registry {
    factories: BTreeMap<&'static str, Box<dyn ConnectorFactory>>,
}

impl Registry {
    #[must_use]
    pub fn with(mut self, factory: impl ConnectorFactory + 'static) -> Registry {
        self.factories.insert(factory.kind(), Box::new(factory));
        self
    }

    pub fn create(
        &self,
        kind: &str,
        configuration: &serde_json::Value,
        surroundings: &Surroundings,
    ) -> Result<Arc<dyn Connector>, ConnectorError> {
        match self.factories.get(kind) {
            Some(factory) => factory.create(configuration, surroundings),
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

    /// The kinds there are, in the order of their names.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.factories.keys().copied()
    }
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
