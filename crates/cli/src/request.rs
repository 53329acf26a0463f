//! What the user asked for: targets as data sources, and the identity of the request.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use domesday_connectors::filesystem::{self, FilesystemConfig};
use domesday_connectors::stdin;
use domesday_model::{DatasourceSpec, Level, ObjectKey, RuleSetHash, ScanOptions};

use crate::args::ScanArgs;
use crate::output::Source;
use crate::state::random_bytes;

/// Before the request's key, in the node group of a scan.
const GROUP_PREFIX: &str = "local";

/// One target of a scan.
pub struct Target {
    pub spec: DatasourceSpec,
    /// How its objects are shown: as the user named it.
    pub source: Source,
}

/// The data sources of a scan, each once. Domesday's own state is none.
pub fn targets(args: &ScanArgs, state: &Path) -> Result<Vec<Target>> {
    let state = state.canonicalize().unwrap_or_else(|_| state.to_owned());
    let mut seen = BTreeSet::new();
    let mut targets = Vec::new();
    for path in &args.targets {
        let target = if path.as_os_str() == "-" { standard_input() } else { file_tree(args, path, &state)? };
        if seen.insert(target.spec.name.clone()) {
            targets.push(target);
        }
    }
    Ok(targets)
}

fn standard_input() -> Target {
    let spec = DatasourceSpec {
        name: stdin::KIND.into(),
        kind: stdin::KIND.into(),
        node_group: GROUP_PREFIX.into(),
        configuration: serde_json::Value::Null,
        concurrency_limit: None,
        worker_label: None,
        credential: None,
    };
    Target { source: Source { name: spec.name.clone(), root: Vec::new() }, spec }
}

fn file_tree(args: &ScanArgs, path: &Path, state: &Path) -> Result<Target> {
    let real = path.canonicalize().with_context(|| format!("cannot scan {}", path.display()))?;
    if real.starts_with(state) {
        bail!("cannot scan {}: it is Domesday's own state, which is never scanned", path.display());
    }
    let metadata = real.metadata().with_context(|| format!("cannot scan {}", path.display()))?;
    let (root, shown, only) = if metadata.is_dir() {
        (real.clone(), path.to_owned(), None)
    } else if metadata.is_file() {
        let name = real.file_name().context("a file has a name")?;
        let folder = real.parent().context("a file is in a folder")?;
        let shown = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        (folder.to_owned(), shown, Some(ObjectKey::new(name.as_bytes())))
    } else {
        bail!("cannot scan {}: it is neither a folder nor a file; pipe it in with `-`", path.display());
    };
    let config = FilesystemConfig {
        only,
        exclude: args.exclude.clone(),
        max_file_size: args.max_file_size,
        follow_symlinks: args.follow_symlinks,
        ..FilesystemConfig::new(root)
    };
    let spec = DatasourceSpec {
        name: format!("{}:{}", filesystem::KIND, ObjectKey::new(real.as_os_str().as_bytes())),
        kind: filesystem::KIND.into(),
        node_group: GROUP_PREFIX.into(),
        configuration: serde_json::to_value(config)?,
        concurrency_limit: None,
        worker_label: None,
        credential: None,
    };
    let root = if shown.as_os_str() == "." { Vec::new() } else { shown.as_os_str().as_bytes().to_vec() };
    Ok(Target { source: Source { name: spec.name.clone(), root }, spec })
}

pub fn options(level: Level) -> ScanOptions {
    ScanOptions { min_score: level.floor(), ..ScanOptions::default() }
}

/// The node group of a scan: each is one of its own, so that a process does what it was asked for, and an
/// unfinished scan waits for its own command.
pub fn node_group(key: [u8; 16]) -> String {
    format!("{GROUP_PREFIX}-{:032x}", u128::from_be_bytes(key))
}

/// What makes two commands the same scan: targets, rules, options and the fingerprint key. Standard input
/// is never the same.
pub fn key(
    targets: &[Target],
    rules: RuleSetHash,
    options: &ScanOptions,
    fingerprint_key: &str,
) -> Result<[u8; 16]> {
    let mut hasher = blake3::Hasher::new_derive_key("domesday scan request 1");
    let specs: Vec<&DatasourceSpec> = targets.iter().map(|target| &target.spec).collect();
    hasher.update(&serde_json::to_vec(&(specs, rules.to_string(), options, fingerprint_key))?);
    if targets.iter().any(|target| target.spec.kind == stdin::KIND) {
        hasher.update(&random_bytes::<16>());
    }
    let mut key = [0; 16];
    key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Ok(key)
}
