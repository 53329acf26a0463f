//! What the user defines for a fleet, as the book may have it: secrets in addresses and what is allowed by its content
//! are sealed with the fleet's fingerprint key. Without that key nothing of the kind is put into the book.

use anyhow::{Context, Result, bail};
use domesday_connector::Seal;
use domesday_connector::credentials::CredentialManager;
use domesday_control::seal_source;
use domesday_engine::RuleSource;
use domesday_model::{DatasourceSpec, FingerprintKey, ScanTemplate};
use domesday_store::{AdminStore, Put, ReportStore};

use crate::args::StateArgs;
use crate::book::{self, Place};
use crate::{fingerprint, state};

/// The key to seal with, if this process has it.
pub struct Sealing(Option<Seal>);

impl Sealing {
    /// The key of a book: what `DOMESDAY_FINGERPRINT_KEY` holds, or that of the embedded book.
    pub async fn of(args: &StateArgs, store: &dyn ReportStore) -> Result<Sealing> {
        Sealing::with(None, args, store).await
    }

    /// The same with the key that this reference leads to, if there is one.
    pub async fn with(reference: Option<&str>, args: &StateArgs, store: &dyn ReportStore) -> Result<Sealing> {
        let key = match (fingerprint::reference(reference), book::place(args)?) {
            (Some(reference), _) => {
                Some(fingerprint::resolve(&CredentialManager::default(), &reference).await?)
            }
            // One that cannot be had is missed when there is something to seal.
            (None, Place::Embedded(folder)) => state::fingerprint_key(&folder).ok(),
            (None, Place::Fleet(_)) => None,
        };
        // What is sealed with another key than the book's, no worker could read.
        let held = store.fingerprint_key().await?;
        let is_of_book = |key: &FingerprintKey| held.as_ref().is_none_or(|held| *held == key.id());
        Ok(Sealing(key.filter(is_of_book).as_ref().map(Seal::new)))
    }

    pub fn datasource(&self, spec: &mut DatasourceSpec) -> Result<()> {
        let sealed = self.seal().seal_configuration(&spec.configuration);
        let changes = sealed != spec.configuration;
        spec.configuration = sealed;
        self.check(changes, "an address with a secret in it")
            .with_context(|| format!("datasource {}: configuration", spec.name))
    }

    pub fn template(&self, template: &mut ScanTemplate) -> Result<()> {
        let mut changes = false;
        for rules in &mut template.rules {
            let source = RuleSource { name: rules.name.clone(), text: std::mem::take(&mut rules.text) };
            let sealed = seal_source(&source, &self.seal());
            changes |= sealed != source;
            rules.text = sealed.text;
        }
        self.check(changes, "an allow list with `values`, `regexes` or `stopwords`")
            .with_context(|| format!("template {}: rules", template.name))
    }

    /// Seals what definitions in the book have from before they were sealed.
    pub async fn definitions(&self, store: &dyn AdminStore) -> Result<()> {
        for source in store.managed_datasources().await? {
            let mut sealed = source.spec.clone();
            self.datasource(&mut sealed)?;
            if sealed != source.spec {
                store.put_datasource(&sealed, Put::Replace).await?;
            }
        }
        for stored in store.templates().await? {
            let mut sealed = stored.template.clone();
            self.template(&mut sealed)?;
            if sealed != stored.template {
                store.put_template(&sealed, Put::Replace, stored.next_firing_ms).await?;
            }
        }
        Ok(())
    }

    /// The key, or one that is only good to see what would be sealed.
    pub fn seal(&self) -> Seal {
        self.0.clone().unwrap_or_default()
    }

    fn check(&self, changes: bool, what: &str) -> Result<()> {
        if changes && self.0.is_none() {
            bail!(
                "it has {what}, which the book keeps only sealed with the fleet's fingerprint key: set \
                 DOMESDAY_FINGERPRINT_KEY to the book's key, which `domesday db status` names by its id"
            );
        }
        Ok(())
    }
}
