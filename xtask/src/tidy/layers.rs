//! Crate layers: which crate of the workspace may know which, and which outside crate belongs to only one.

use std::collections::BTreeSet;

use crate::workspace::{Package, Workspace};

/// Each crate, lowest first, with those it may depend on. Every one is above itself in this list, so
/// there can be no cycle, and what is absent is absent on purpose: the store does not know what a finding
/// is made of, a connector never sees the book, and the services know no concrete connector.
const LAYERS: &[(&str, &[&str])] = &[
    ("domesday-model", &[]),
    ("domesday-engine", &["domesday-model"]),
    ("domesday-columns", &["domesday-model", "domesday-engine"]),
    ("domesday-content", &["domesday-model"]),
    ("domesday-scheduler", &["domesday-model", "domesday-engine", "domesday-columns", "domesday-content"]),
    ("domesday-tls", &[]),
    ("domesday-store", &["domesday-model", "domesday-tls"]),
    ("domesday-connector", &["domesday-model", "domesday-content", "domesday-scheduler"]),
    (
        "domesday-connectors",
        &["domesday-model", "domesday-content", "domesday-scheduler", "domesday-tls", "domesday-connector"],
    ),
    ("domesday-git", &["domesday-model", "domesday-content", "domesday-scheduler", "domesday-connector"]),
    (
        "domesday-control",
        &[
            "domesday-model",
            "domesday-engine",
            "domesday-content",
            "domesday-scheduler",
            "domesday-store",
            "domesday-connector",
        ],
    ),
    (
        "domesday",
        &[
            "domesday-model",
            "domesday-engine",
            "domesday-columns",
            "domesday-content",
            "domesday-scheduler",
            "domesday-store",
            "domesday-connector",
            "domesday-connectors",
            "domesday-git",
            "domesday-control",
        ],
    ),
    // For tests only: no crate of the product may have it but as a dev-dependency.
    ("domesday-testkit", &[]),
    // For tests only, too: it drives the parsers of hostile bytes, whichever crate they are in.
    (
        "domesday-fuzz-targets",
        &[
            "domesday-model",
            "domesday-engine",
            "domesday-content",
            "domesday-scheduler",
            "domesday-connector",
            "domesday-connectors",
            "domesday-git",
        ],
    ),
    // Beside the product, not above it: it runs the binary as a user does, and the servers it needs; only the
    // evaluation of detection asks the engine itself.
    ("xtask", &["domesday-model", "domesday-engine", "domesday-columns", "domesday-testkit"]),
];

/// Outside crates that only some of the product's may use.
const CONFINED: &[(&str, &[&str])] = &[
    ("anyhow", &["domesday"]),
    ("clap", &["domesday"]),
    ("indicatif", &["domesday"]),
    ("rusqlite", &["domesday-content", "domesday-store"]),
    ("tokio-postgres", &["domesday-tls", "domesday-store", "domesday-connectors"]),
];

/// What no user runs may use what it likes.
const BESIDE_THE_PRODUCT: &[&str] = &["domesday-testkit", "domesday-fuzz-targets", "xtask"];

pub fn check(workspace: &Workspace) -> Vec<String> {
    let members: BTreeSet<&str> = workspace.members().map(|package| package.name.as_str()).collect();
    workspace.members().flat_map(|package| offences(package, &members)).collect()
}

fn offences(package: &Package, members: &BTreeSet<&str>) -> Vec<String> {
    let name = package.name.as_str();
    let Some((_, may)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
        return vec![format!(
            "{name}: has no place among the crate layers; give it one in xtask/src/tidy/layers.rs"
        )];
    };
    let known = package.dependencies.iter().map(String::as_str);
    let mut offences: Vec<String> = known
        .clone()
        .filter(|dependency| members.contains(dependency) && !may.contains(dependency))
        .map(|dependency| format!("{name}: must not depend on {dependency}"))
        .collect();
    if !BESIDE_THE_PRODUCT.contains(&name) {
        offences.extend(known.filter_map(|dependency| {
            let (_, owners) = CONFINED.iter().find(|(confined, _)| *confined == dependency)?;
            let confined = !owners.contains(&name);
            confined
                .then(|| format!("{name}: must not use {dependency}; that is for {}", owners.join(" and ")))
        }));
    }
    offences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            license: None,
            source: None,
            dependencies: dependencies.iter().map(|&dependency| dependency.to_owned()).collect(),
        }
    }

    fn check(name: &str, dependencies: &[&str], expect: &[&str]) {
        let members = LAYERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(offences(&package(name, dependencies), &members), expect);
    }

    #[test]
    fn a_crate_depends_only_on_those_below_it() {
        check("domesday-store", &["domesday-model", "rusqlite"], &[]);
        check(
            "domesday-store",
            &["domesday-engine"],
            &["domesday-store: must not depend on domesday-engine"],
        );
        check(
            "domesday-connectors",
            &["domesday-store"],
            &["domesday-connectors: must not depend on domesday-store"],
        );
        check(
            "domesday-control",
            &["domesday-connectors"],
            &["domesday-control: must not depend on domesday-connectors"],
        );
        check(
            "domesday-scheduler",
            &["domesday-store"],
            &["domesday-scheduler: must not depend on domesday-store"],
        );
    }

    #[test]
    fn some_crates_belong_to_one_layer() {
        check("domesday", &["clap"], &[]);
        check("domesday-control", &["clap"], &["domesday-control: must not use clap; that is for domesday"]);
        check("xtask", &["rusqlite", "anyhow"], &[]);
    }

    #[test]
    fn a_new_crate_needs_a_place() {
        let offences = offences(&package("domesday-policy", &[]), &BTreeSet::new());
        assert!(offences[0].contains("has no place"), "{offences:?}");
    }

    #[test]
    fn layers_only_look_down() {
        for (index, (name, may)) in LAYERS.iter().enumerate() {
            for below in *may {
                assert!(
                    LAYERS[..index].iter().any(|(lower, _)| lower == below),
                    "{name} looks up to {below}"
                );
            }
        }
    }
}
