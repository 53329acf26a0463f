//! The identity of a request: what makes two commands the same scan.

use anyhow::Result;
use domesday_model::{DatasourceSpec, Level, RuleSetHash, ScanOptions, TrustContent};

use crate::state::random_bytes;
use crate::target::Target;

/// Before the request's key, in the node group of a scan.
pub const GROUP_PREFIX: &str = "local";

pub fn options(level: Level, trust_content: TrustContent, strict: bool) -> ScanOptions {
    ScanOptions { min_score: level.floor(), trust_content, strict, ..ScanOptions::default() }
}

/// The node group of a scan: each is one of its own, so that a process does what it was asked for, and an
/// unfinished scan waits for its own command.
pub fn node_group(key: [u8; 16]) -> String {
    format!("{GROUP_PREFIX}-{:032x}", u128::from_be_bytes(key))
}

/// What makes two commands the same scan: targets, rules, options and the fingerprint key. What cannot
/// be read again, as standard input, is never the same.
pub fn key(
    targets: &[Target],
    rules: RuleSetHash,
    options: &ScanOptions,
    fingerprint_key: &str,
) -> Result<[u8; 16]> {
    let mut hasher = blake3::Hasher::new_derive_key("domesday scan request 1");
    let specs: Vec<DatasourceSpec> = targets.iter().map(Target::identity).collect();
    hasher.update(&serde_json::to_vec(&(specs, rules.to_string(), options, fingerprint_key))?);
    if targets.iter().any(|target| !target.is_repeatable()) {
        hasher.update(&random_bytes::<16>());
    }
    let mut key = [0; 16];
    key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Ok(key)
}
