//! The rules of style that a program can check. A rule worth having is a test: `cargo test` runs them all.
//!
//! Each check returns every offence it finds, as one line that names the place; none stops at the first.

mod kinds;
mod layers;
mod licences;
mod sources;

use std::path::Path;

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// What a person who opens the repository looks for.
const DOCUMENTS: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "deny.toml",
];

pub fn run() -> Result<()> {
    let workspace = Workspace::load()?;
    let offences = check(&workspace)?;
    if !offences.is_empty() {
        bail!("not tidy ({}):\n  {}", offences.len(), offences.join("\n  "));
    }
    println!("tidy: {} packages checked", workspace.packages.len());
    Ok(())
}

fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let mut offences = documents(&workspace.root);
    offences.extend(layers::check(workspace));
    offences.extend(sources::check(&workspace.root)?);
    offences.extend(kinds::check(&workspace.root)?);
    offences.extend(licences::check(workspace)?);
    Ok(offences)
}

fn documents(root: &Path) -> Vec<String> {
    let missing = DOCUMENTS.iter().filter(|name| !root.join(name).is_file());
    missing.map(|name| format!("{name}: is missing")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tidy() {
        let offences = check(&Workspace::load().unwrap()).unwrap();
        assert!(offences.is_empty(), "{}", offences.join("\n"));
    }

    #[test]
    fn a_missing_document_is_named() {
        let nowhere = documents(Path::new("/nonexistent"));
        assert_eq!(nowhere.len(), DOCUMENTS.len());
        assert_eq!(nowhere[0], "ARCHITECTURE.md: is missing");
    }
}
