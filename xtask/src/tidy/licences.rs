//! Licences, bans and sources of every dependency, by the lists in `deny.toml`.
//!
//! The same file serves `cargo deny`, which checks more (advisories) and takes longer to build than the
//! whole product; this much of it needs nothing but what cargo says about the tree.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};
use toml::Table;

use crate::workspace::{Package, Workspace};

/// How cargo writes a source that is a registry.
const REGISTRY: &str = "registry+";

struct Lists {
    licences: Vec<String>,
    banned: Vec<String>,
}

pub fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let text = fs::read_to_string(workspace.root.join("deny.toml")).context("cannot read deny.toml")?;
    let lists = Lists::parse(&text)?;
    let mut offences: Vec<String> =
        workspace.packages.iter().flat_map(|package| lists.offences(package)).collect();
    offences.extend(several_registries(&workspace.packages));
    Ok(offences)
}

/// Everything comes from one registry; that it is the usual one, no manifest says otherwise.
fn several_registries(packages: &[Package]) -> Option<String> {
    let sources = packages.iter().filter_map(|package| package.source.as_deref());
    let registries: BTreeSet<&str> = sources.filter(|source| source.starts_with(REGISTRY)).collect();
    (registries.len() > 1).then(|| format!("dependencies come from several registries: {registries:?}"))
}

impl Lists {
    fn parse(text: &str) -> Result<Lists> {
        let table: Table = text.parse().context("deny.toml is not TOML")?;
        let list = |section: &str, key: &str| -> Result<Vec<toml::Value>> {
            let found =
                table.get(section).and_then(|section| section.get(key)).and_then(toml::Value::as_array);
            Ok(found.with_context(|| format!("deny.toml lacks the list `{section}.{key}`"))?.clone())
        };
        let texts = |values: Vec<toml::Value>| -> Vec<String> {
            values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
        };
        let banned = list("bans", "deny")?;
        let banned = banned.iter().filter_map(|ban| ban.get("crate")?.as_str());
        Ok(Lists { licences: texts(list("licenses", "allow")?), banned: banned.map(str::to_owned).collect() })
    }

    fn offences(&self, package: &Package) -> Vec<String> {
        let name = format!("{} {}", package.name, package.version);
        let mut offences = Vec::new();
        match package.license.as_deref() {
            None => offences.push(format!("{name}: names no licence")),
            Some(licence) if !self.allows(licence) => {
                offences.push(format!("{name}: licence `{licence}` is not among those deny.toml allows"));
            }
            Some(_) => {}
        }
        if self.banned.contains(&package.name) {
            offences.push(format!("{name}: banned by deny.toml, which says why"));
        }
        if let Some(source) = package.source.as_deref().filter(|source| !source.starts_with(REGISTRY)) {
            offences.push(format!("{name}: comes from {source}, and not from the registry"));
        }
        offences
    }

    /// Whether an SPDX expression can be satisfied with allowed licences.
    fn allows(&self, expression: &str) -> bool {
        // An older way to write OR.
        let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut rest = words.as_slice();
        self.either(&mut rest) == Some(true) && rest.is_empty()
    }

    fn either(&self, rest: &mut &[&str]) -> Option<bool> {
        let mut allowed = self.both(rest)?;
        while let Some(after) = strip(rest, "OR") {
            *rest = after;
            allowed |= self.both(rest)?;
        }
        Some(allowed)
    }

    fn both(&self, rest: &mut &[&str]) -> Option<bool> {
        let mut allowed = self.one(rest)?;
        while let Some(after) = strip(rest, "AND") {
            *rest = after;
            allowed &= self.one(rest)?;
        }
        Some(allowed)
    }

    /// A licence, with its exception if it has one, or an expression in parentheses; `None` is no SPDX.
    fn one(&self, rest: &mut &[&str]) -> Option<bool> {
        if let Some(after) = strip(rest, "(") {
            *rest = after;
            let allowed = self.either(rest)?;
            *rest = strip(rest, ")")?;
            return Some(allowed);
        }
        let (&licence, after) = rest.split_first()?;
        *rest = after;
        let mut licence = licence.to_owned();
        if let Some([exception, after @ ..]) = strip(rest, "WITH") {
            *rest = after;
            licence = format!("{licence} WITH {exception}");
        }
        Some(self.licences.contains(&licence))
    }
}

fn strip<'a, 'b>(words: &'a [&'b str], word: &str) -> Option<&'a [&'b str]> {
    words.split_first().filter(|(first, _)| **first == word).map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"]
        [bans]
        deny = [{ crate = "openssl-sys", reason = "rustls" }]
    "#;

    fn check(licence: &str, expect: bool) {
        assert_eq!(Lists::parse(DENY).unwrap().allows(licence), expect, "{licence}");
    }

    #[test]
    fn expressions_are_read_as_spdx_has_them() {
        check("MIT", true);
        check("MIT OR GPL-3.0", true);
        check("MIT/Apache-2.0", true);
        check("GPL-3.0", false);
        check("MIT AND GPL-3.0", false);
        check("(MIT OR GPL-3.0) AND Unicode-3.0", true);
        check("GPL-3.0 OR MIT AND Unicode-3.0", true);
        check("Apache-2.0 WITH LLVM-exception", true);
        check("MIT WITH LLVM-exception", false);
        check("", false);
        check("MIT OR", false);
        check("(MIT", false);
        check("MIT Apache-2.0", false);
    }

    #[test]
    fn bans_sources_and_missing_licences_are_named() {
        let package = Package {
            name: "openssl-sys".to_owned(),
            version: "1.0.0".to_owned(),
            license: None,
            source: Some("git+https://elsewhere".to_owned()),
            dependencies: std::collections::BTreeSet::new(),
        };
        let offences = Lists::parse(DENY).unwrap().offences(&package);
        assert_eq!(offences.len(), 3, "{offences:?}");
        let from = |source: &str| Package { source: Some(source.to_owned()), ..package.clone() };
        assert!(several_registries(&[from("registry+a"), from("registry+a"), from("git+b")]).is_none());
        assert!(several_registries(&[from("registry+a"), from("registry+b")]).is_some());
    }
}
