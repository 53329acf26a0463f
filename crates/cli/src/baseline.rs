//! Baselines: what is known already, in a file, so that a report shows what is new.
//!
//! The file is made to be committed: JSON lines in a fixed order, one per finding, and nothing in it tells a
//! value. A finding is known by its rule, the fingerprint of its value and its object, never by its line, so that
//! it stays known when the file around it changes. Objects are named so that scans of a tree from other folders
//! and on other machines agree: a local one by its path from the root of the repository the baseline is in.
//!
//! This module must not read the book; it names findings, and says which of them are known.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use domesday_connector::Coverage;
use domesday_model::DatasourceSpec;
use domesday_model::key::escaped;
use domesday_store::{Datasource, Occurrence};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::output::{self, RuleInfo};
use crate::reach::Reach;
use crate::{connectors, target};

/// The name of a baseline that was given none.
pub const DEFAULT_FILE: &str = ".domesday-baseline.jsonl";
/// Version of the format.
const FORMAT: u32 = 1;
/// Bytes of a line, at most: a path has 4 KiB, and archives may be nested in it.
const LINE_LEN_MAX: u64 = 256 << 10;
/// Entries of a baseline, at most.
pub const ENTRIES_MAX: usize = 4_000_000;

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    domesday_baseline: u32,
    /// Id of the key that the fingerprints are made with.
    fingerprint_key: String,
}

/// One known finding. Fields are in the order that lines are sorted by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The source's name; none for what is on this machine and was typed as a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    datasource: Option<String>,
    path: String,
    rule: String,
    fingerprint: String,
}

impl Entry {
    /// What a set of entries knows it by.
    fn hash(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        for part in
            [self.datasource.as_deref().unwrap_or_default(), &self.path, &self.rule, &self.fingerprint]
        {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let mut hash = [0; 16];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        hash
    }

    /// What a person may have broken by hand.
    fn check(&self) -> Result<(), &'static str> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if self.fingerprint.len() != 32 || !self.fingerprint.bytes().all(is_digit) {
            return Err("`fingerprint` is not 32 hexadecimal digits in lower case");
        }
        if self.rule.is_empty() { Err("`rule` is empty") } else { Ok(()) }
    }
}

/// How findings of one data source are named in a baseline, and which entries are about it.
struct Naming {
    datasource: Option<String>,
    /// What goes before a key, with the slash behind it; may be empty.
    prefix: String,
    /// A folder of keys that is no part of paths.
    hidden: Vec<u8>,
    /// The one path that is scanned, where it is one.
    only: Option<String>,
    /// Whether a part of a history was asked for, so that what is not found may be there all the same.
    is_part: bool,
}

impl Naming {
    fn of(source: SourceRef<'_>, anchor: &Path) -> Naming {
        let Coverage { root, only, is_part } =
            connectors::known().coverage(source.kind, source.configuration);
        let description = connectors::known().describe(source.kind);
        // The name of a target that was typed is its kind and its place. Another has a name that people gave it,
        // and a remote one an address, which are the same everywhere.
        let is_typed = source.name.strip_prefix(source.kind).is_some_and(|rest| rest.starts_with(':'));
        let is_local = description.is_standard_input || is_typed && root.is_some();
        let below = root.filter(|_| is_local);
        let below = below.as_deref().and_then(|root| root.strip_prefix(anchor).ok());
        let prefix = match below.map(|path| path.as_os_str().as_bytes()) {
            None | Some(b"") => String::new(),
            Some(path) => format!("{}/", escaped(path)),
        };
        Naming {
            datasource: (!is_local).then(|| source.name.to_owned()),
            only: only.map(|file| format!("{prefix}{file}")),
            prefix,
            hidden: description.hidden_key_prefix.to_vec(),
            is_part,
        }
    }

    fn entry(&self, found: &Occurrence) -> Entry {
        let place = output::place(found);
        let key = place.key.as_bytes();
        let below = key.strip_prefix(self.hidden.as_slice()).and_then(|rest| rest.strip_prefix(b"/"));
        let shown = below.filter(|_| !self.hidden.is_empty()).unwrap_or(key);
        let mut path = format!("{}{}", self.prefix, escaped(shown));
        // By their names alone: the order of an archive's entries says nothing.
        for step in &place.nested {
            path.push_str("!/");
            path.push_str(&escaped(&step.name));
        }
        let (datasource, rule) = (self.datasource.clone(), found.rule.clone());
        Entry { datasource, path, rule, fingerprint: found.fingerprint.to_string() }
    }

    /// Whether a scan of this source finds what the entry names, if it is still there.
    fn covers(&self, entry: &Entry) -> bool {
        entry.datasource == self.datasource
            && match &self.only {
                Some(file) => entry
                    .path
                    .strip_prefix(file.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with("!/")),
                None => entry.path.starts_with(&self.prefix),
            }
    }
}

/// What names need to know of a data source.
#[derive(Clone, Copy)]
pub struct SourceRef<'a> {
    pub name: &'a str,
    pub kind: &'a str,
    pub configuration: &'a Value,
}

impl<'a> From<&'a Datasource> for SourceRef<'a> {
    fn from(source: &'a Datasource) -> SourceRef<'a> {
        SourceRef { name: &source.name, kind: &source.kind, configuration: &source.configuration }
    }
}

impl<'a> From<&'a DatasourceSpec> for SourceRef<'a> {
    fn from(source: &'a DatasourceSpec) -> SourceRef<'a> {
        SourceRef { name: &source.name, kind: &source.kind, configuration: &source.configuration }
    }
}

/// How the findings of a job are named in the baseline at one place.
pub struct Names(HashMap<String, Naming>);

impl Names {
    pub fn new<'a>(baseline: &Path, sources: impl IntoIterator<Item = SourceRef<'a>>) -> Result<Names> {
        let anchor = anchor(baseline)?;
        let naming = |source: SourceRef<'_>| (source.name.to_owned(), Naming::of(source, &anchor));
        Ok(Names(sources.into_iter().map(naming).collect()))
    }

    /// A finding of this source as an entry; `None` for a source that is not among them.
    pub fn entry(&self, source: &str, found: &Occurrence) -> Option<Entry> {
        Some(self.0.get(source)?.entry(found))
    }

    fn cover(&self, entry: &Entry) -> bool {
        self.0.values().any(|naming| naming.covers(entry))
    }
}

/// The root of the repository that a baseline is in, or else its folder.
fn anchor(baseline: &Path) -> Result<PathBuf> {
    let folder = target::folder_of(baseline);
    let real =
        folder.canonicalize().with_context(|| format!("cannot read the folder {}", folder.display()))?;
    Ok(target::repository_root(&real).map_or_else(|| real.clone(), Path::to_owned))
}

/// A baseline that was read, for one report.
pub struct Baseline {
    /// Each entry by its hash, and whether this report would have it if it still occurred.
    known: HashMap<[u8; 16], bool>,
    names: Names,
}

impl Baseline {
    /// Reads a baseline whole, so that what is wrong with it is known before a scan and not after it. `sources` and
    /// `rules` are those of the report.
    pub fn load<'a>(
        path: &Path,
        reach: &Reach,
        key: &str,
        sources: impl IntoIterator<Item = SourceRef<'a>>,
        rules: &[RuleInfo],
    ) -> Result<Baseline> {
        let names = Names::new(path, sources)?;
        let rules: HashSet<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
        let mut known = HashMap::new();
        read(path, reach, key, |entry| {
            known.insert(entry.hash(), rules.contains(entry.rule.as_str()) && names.cover(&entry));
        })?;
        Ok(Baseline { known, names })
    }

    /// Begins to compare a report with it.
    pub fn compare(&self) -> Comparison<'_> {
        Comparison { baseline: self, hidden: 0, seen: HashSet::new() }
    }
}

/// A report being compared with a baseline.
pub struct Comparison<'a> {
    baseline: &'a Baseline,
    pub hidden: u64,
    seen: HashSet<[u8; 16]>,
}

impl Comparison<'_> {
    /// Whether the baseline has this finding of the source of this name.
    pub fn knows(&mut self, source: &str, found: &Occurrence) -> bool {
        let Some(entry) = self.baseline.names.entry(source, found) else { return false };
        let hash = entry.hash();
        let is_known = self.baseline.known.contains_key(&hash);
        if is_known {
            self.hidden += 1;
            self.seen.insert(hash);
        }
        is_known
    }

    /// Entries that the report would have if they still occurred; `None` if it is of a part of a history.
    pub fn gone(&self) -> Option<u64> {
        if self.baseline.names.0.values().any(|naming| naming.is_part) {
            return None;
        }
        let is_gone = |(hash, expected): &(&[u8; 16], &bool)| **expected && !self.seen.contains(*hash);
        Some(self.baseline.known.iter().filter(is_gone).count() as u64)
    }
}

/// Hands each entry of a file to `each`. `key` is the id of the key that its fingerprints must be made with.
pub fn read(path: &Path, reach: &Reach, key: &str, mut each: impl FnMut(Entry)) -> Result<()> {
    let file = reach.open(path).with_context(|| {
        let path = path.display();
        format!("cannot read the baseline {path}; a scan without it and `domesday baseline create -o {path}` make one")
    })?;
    let mut reader = std::io::BufReader::new(file);
    let (mut line, mut number, mut entries) = (Vec::new(), 0u64, 0);
    loop {
        line.clear();
        number += 1;
        let about = || format!("the baseline {}:{number}", path.display());
        if (&mut reader).take(LINE_LEN_MAX).read_until(b'\n', &mut line).with_context(about)? == 0 {
            if number == 1 {
                bail!("{}: it is empty: `domesday baseline create` makes one", about());
            }
            return Ok(());
        }
        if line.len() as u64 == LINE_LEN_MAX {
            bail!("{}: the line is longer than {LINE_LEN_MAX} bytes", about());
        }
        if number == 1 {
            check_header(&line, key).with_context(about)?;
        } else if !line.trim_ascii().is_empty() {
            let entry: Entry = serde_json::from_slice(&line)
                .map_err(|error| anyhow::anyhow!("this is not an entry: {}", json_problem(&error)))
                .with_context(about)?;
            entry.check().map_err(anyhow::Error::msg).with_context(about)?;
            entries += 1;
            if entries > ENTRIES_MAX {
                bail!("{}: a baseline has at most {ENTRIES_MAX} entries", about());
            }
            each(entry);
        }
    }
}

fn check_header(line: &[u8], key: &str) -> Result<()> {
    let header: Header = serde_json::from_slice(line).map_err(|_| {
        anyhow::anyhow!("this is not the first line of a baseline: `domesday baseline create` writes one")
    })?;
    if header.domesday_baseline != FORMAT {
        bail!(
            "it has the format {}, and this version reads {FORMAT}: make it anew with `domesday baseline create`",
            header.domesday_baseline
        );
    }
    if header.fingerprint_key != key {
        bail!(
            "it was made with the fingerprint key {}, and these findings with {key}, so that nothing in it can be \
             recognised: share one key (--fingerprint-key or DOMESDAY_FINGERPRINT_KEY, the same for whoever makes \
             the baseline and whoever uses it), or make it anew with `domesday baseline create`",
            header.fingerprint_key
        );
    }
    Ok(())
}

/// What serde_json says, without the place in the one line that it knows.
fn json_problem(error: &serde_json::Error) -> String {
    let said = error.to_string();
    said.rsplit_once(" at line ").map_or(said.as_str(), |(what, _)| what).to_owned()
}

/// Writes a baseline; `entries` are in order and each there once.
pub fn write<'a>(
    out: &mut impl Write,
    key: &str,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> Result<()> {
    output::write_json(out, &Header { domesday_baseline: FORMAT, fingerprint_key: key.to_owned() })?;
    out.write_all(b"\n")?;
    for entry in entries {
        output::write_json(out, entry)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
