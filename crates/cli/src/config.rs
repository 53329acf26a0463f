//! The configuration file of a tree, `.domesday.toml`: what is scanned of it, with which rules, and what is allowed.
//!
//! It is found in what is scanned, and so may come from somebody else: it can narrow a scan, it is announced when
//! it does, and it must not be able to do anything else, such as to name a credential. It is read strictly, since a
//! misspelt field would be a setting that silently does nothing. What concerns rules is handed to the engine as text,
//! with everything else blanked out, so that the engine's messages name the right lines.

use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use domesday_control::compose;
use domesday_engine::RuleSource;
use domesday_model::ConfigurationUsed;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::args::values::parse_size;
use crate::args::{LevelArg, ScanArgs};
use crate::document::unknown_field;
use crate::reach::Reach;
use crate::{rules, target};

/// The file's name.
const NAME: &str = ".domesday.toml";
/// Bytes of the file, at most.
const CONFIG_BYTES_MAX: u64 = 4 << 20;
/// The fields that are read here.
const OWN_FIELDS: [&str; 5] = ["exclude", "max_file_size", "level", "rules", "baseline"];
/// The sections that the engine reads.
const RULE_SECTIONS: [&str; 3] = ["select", "allow", "rule"];

/// A configuration that was read. Paths in it are resolved.
#[derive(Default, Debug)]
pub struct Config {
    path: PathBuf,
    /// BLAKE3 of its text, in hexadecimal digits.
    hash: String,
    exclude: Vec<String>,
    pub max_file_size: Option<u64>,
    pub level: Option<LevelArg>,
    rules: Vec<PathBuf>,
    pub baseline: Option<PathBuf>,
    /// Which files it may name.
    pub reach: Reach,
    /// What it says of rules.
    source: Option<RuleSource>,
}

impl Config {
    /// The configuration of a scan: the file that was named, or the one that all targets lead to.
    pub fn of_scan(args: &ScanArgs) -> Result<Option<Config>> {
        match &args.config {
            _ if args.no_config => Ok(None),
            Some(path) => Config::read(path, Reach::Anywhere).map(Some),
            None if args.distrusts_content() => Ok(None),
            None => {
                let read = |path: PathBuf| {
                    let folder = target::folder_of(&path).to_owned();
                    Config::read(&path, Reach::Below(folder))
                };
                found(&args.targets)?.map(read).transpose()
            }
        }
    }

    fn read(path: &Path, reach: Reach) -> Result<Config> {
        let shown = shown(path);
        let about = || format!("cannot read the configuration {shown}");
        let mut text = String::new();
        let file = reach.open(path).with_context(about)?;
        file.take(CONFIG_BYTES_MAX + 1).read_to_string(&mut text).with_context(about)?;
        if text.len() as u64 > CONFIG_BYTES_MAX {
            bail!("{}: it is longer than {CONFIG_BYTES_MAX} bytes", about());
        }
        Ok(Config { reach, ..Config::parse(path, &shown, &text)? })
    }

    fn parse(path: &Path, shown: &str, text: &str) -> Result<Config> {
        let at = |place: usize, what: String| {
            let line =
                1 + text.as_bytes()[..place.min(text.len())].iter().filter(|byte| **byte == b'\n').count();
            anyhow!("{shown}:{line}: {what}")
        };
        let document = DeTable::parse(text).map_err(|error| {
            let place = error.span().map_or(0, |span| span.start);
            at(place, format!("this is not TOML: {}", error.message().replace('\n', ", ")))
        })?;
        let folder = target::folder_of(path);
        let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
        let mut config = Config { path: path.to_owned(), hash, ..Config::default() };
        let mut own: Vec<Range<usize>> = Vec::new();
        for (key, value) in document.get_ref() {
            let name = key.get_ref().as_ref();
            if RULE_SECTIONS.contains(&name) {
                continue;
            }
            if !OWN_FIELDS.contains(&name) {
                let known = OWN_FIELDS.into_iter().chain(RULE_SECTIONS);
                return Err(at(key.span().start, unknown_field(name, known)));
            }
            config
                .set(name, value, folder)
                .map_err(|expected| at(value.span().start, format!("{name}: expected {expected}")))?;
            own.push(key.span().start..value.span().end);
        }
        if RULE_SECTIONS.iter().any(|section| document.get_ref().contains_key(*section)) {
            config.source = Some(RuleSource { name: shown.to_owned(), text: blanked(text, &own) });
        }
        Ok(config)
    }

    /// Sets one field, or says what is expected of it.
    fn set(&mut self, field: &str, value: &Spanned<DeValue<'_>>, folder: &Path) -> Result<(), String> {
        let value = value.get_ref();
        let text = || value.as_str().filter(|text| !text.is_empty());
        let texts = || -> Option<Vec<String>> {
            let list = value.as_array()?.iter();
            list.map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
        };
        match field {
            "exclude" => self.exclude = texts().ok_or("a list of patterns, as lines of .gitignore")?,
            "max_file_size" => {
                let bytes = match value {
                    DeValue::Integer(number) => parse_size(&number.to_string()),
                    DeValue::String(text) => parse_size(text),
                    _ => Err(String::new()),
                };
                self.max_file_size = Some(bytes.map_err(|_| "a number of bytes, or text such as \"50M\"")?);
            }
            "level" => {
                let level = text().and_then(|text| LevelArg::from_str(text, false).ok());
                self.level = Some(level.ok_or("low, medium or high")?);
            }
            "rules" => {
                let paths = texts().ok_or("a list of paths of rule files")?;
                self.rules = paths.into_iter().map(|path| folder.join(path)).collect();
            }
            _ => self.baseline = Some(folder.join(text().ok_or("the path of a baseline")?)),
        }
        Ok(())
    }

    /// The rule files that it names, and what it says of rules itself.
    pub fn rules(&self) -> Result<Vec<RuleSource>> {
        let about = || format!("`rules` of the configuration {}", self.shown());
        let mut sources = rules::read(&self.rules, &self.reach).with_context(about)?;
        sources.extend(self.source.clone());
        Ok(sources)
    }

    pub fn used(&self) -> ConfigurationUsed {
        ConfigurationUsed { path: Some(self.shown()), template: None, hash: self.hash.clone() }
    }

    /// Where it was found, for people.
    pub fn shown(&self) -> String {
        shown(&self.path)
    }

    /// Its patterns of what to leave out, for a target at this place. They are relative to the file, and a target
    /// may be a folder below it; one that is elsewhere, or remote, takes them as its own.
    pub fn exclude(&self, target: Option<&Path>) -> Vec<String> {
        let folder = target::folder_of(&self.path).canonicalize().ok();
        let below = target
            .zip(folder)
            .and_then(|(target, folder)| target.strip_prefix(folder).ok().map(Path::to_owned));
        match below.as_deref().and_then(Path::to_str) {
            None | Some("") => self.exclude.clone(),
            Some(below) => self.exclude.iter().filter_map(|pattern| rebased(pattern, below)).collect(),
        }
    }
}

/// The file that all targets lead to. A scan has one set of rules, so that two configurations cannot be honoured.
fn found(targets: &[PathBuf]) -> Result<Option<PathBuf>> {
    let mut files = BTreeSet::new();
    for typed in targets {
        let folder = if typed.as_os_str() == "-" { Path::new(".") } else { typed };
        // An address, or a path that is nowhere: that is for the target to say.
        let real = folder.canonicalize().ok();
        let folder = real.as_deref().and_then(|real| if real.is_dir() { Some(real) } else { real.parent() });
        files.insert(folder.and_then(nearest));
    }
    let mut files = files.into_iter();
    match (files.next(), files.next()) {
        (Some(first), Some(second)) => {
            let name = |file: Option<PathBuf>| file.map_or("none".to_owned(), |file| shown(&file));
            bail!(
                "the targets have different configurations ({}, {}), and a scan has one: name it with --config, or \
                 use none with --no-config",
                name(first),
                name(second)
            )
        }
        (file, _) => Ok(file.flatten()),
    }
}

/// The nearest file of a folder, whatever it is, or one above it inside the same repository. Outside of one only the
/// folder itself counts: whoever can write to a folder far above must not decide what is found here. Nor does what
/// another user put there, a repository around the folder included.
fn nearest(folder: &Path) -> Option<PathBuf> {
    let here = folder.join(NAME);
    if here.symlink_metadata().is_ok() {
        return Some(here);
    }
    let top = target::repository_root(folder).filter(|top| is_ours(top) && is_ours(&top.join(".git")))?;
    let above = folder.ancestors().skip(1).take_while(|folder| folder.starts_with(top));
    let file = above.map(|folder| folder.join(NAME)).find(|file| file.symlink_metadata().is_ok())?;
    if file.parent().is_some_and(is_ours) && is_ours(&file) {
        return Some(file);
    }
    let shown = shown(&file);
    crate::say(format_args!("{shown} is not used: it or its folder is another user's; --config names it"));
    None
}

/// Whether a file or folder belongs to this user or to root.
fn is_ours(path: &Path) -> bool {
    let owner = path.symlink_metadata().map(|metadata| metadata.uid());
    owner.is_ok_and(|owner| owner == 0 || owner == rustix::process::geteuid().as_raw())
}

/// A path for people: from where they stand, if it is below.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let below = here.ok().and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    below.as_deref().unwrap_or(path).display().to_string()
}

/// A text with spaces in place of these parts; lines stay where they are.
fn blanked(text: &str, parts: &[Range<usize>]) -> String {
    let is_kept = |at: usize| !parts.iter().any(|part| part.contains(&at));
    text.char_indices().map(|(at, c)| if is_kept(at) || c == '\n' { c } else { ' ' }).collect()
}

/// A pattern of a folder as one of the folder `below` it; `None` when it is about something else there. A folder
/// that was named as a target is scanned, whatever is said of it from above.
fn rebased(pattern: &str, below: &str) -> Option<String> {
    let (negation, body) = match pattern.strip_prefix('!') {
        Some(body) => ("!", body),
        None => ("", pattern),
    };
    // Without a slash but at its end, a pattern is about names at any depth.
    if !body.trim_end_matches('/').contains('/') {
        return Some(pattern.to_owned());
    }
    let mut rest = body.strip_prefix('/').unwrap_or(body);
    for folder in below.split('/') {
        if rest.starts_with("**/") {
            return Some(format!("{negation}{rest}"));
        }
        let (first, after) = rest.split_once('/')?;
        rest = after;
        if !compose::matches(first, folder) || rest.is_empty() {
            return None;
        }
    }
    Some(format!("{negation}/{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config> {
        Config::parse(Path::new("/srv/shop/.domesday.toml"), ".domesday.toml", text)
    }

    #[test]
    fn fields_are_read_and_paths_are_beside_the_file() {
        let config = parse(
            "# what we scan\nexclude = [\n  \"*.lock\", # locks\n]\nmax_file_size = \"2K\"\nlevel = \"high\"\n\
             rules = [\"rules/acme.toml\", \"/etc/rules\"]\nbaseline = \"known.jsonl\"\n\n\
             [select]\nskip = [\"tag:x\"]\n[[allow]]\nvalues = [\"é\"]\n",
        )
        .unwrap();
        assert_eq!((config.exclude, config.max_file_size), (vec!["*.lock".to_owned()], Some(2_048)));
        assert_eq!(config.level, Some(LevelArg::High));
        assert_eq!(config.rules, [Path::new("/srv/shop/rules/acme.toml"), Path::new("/etc/rules")]);
        assert_eq!(config.baseline.as_deref(), Some(Path::new("/srv/shop/known.jsonl")));
        let source = config.source.unwrap();
        assert_eq!(source.name, ".domesday.toml");
        let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
        let expected = [
            "# what we scan",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "",
            "[select]",
            "skip = [\"tag:x\"]",
            "[[allow]]",
            "values = [\"é\"]",
        ];
        assert_eq!(lines, expected);
        assert!(parse("max_file_size = 7").unwrap().source.is_none());
    }

    #[test]
    fn problems_are_told_with_their_line() {
        for (text, problem) in [
            (
                "level = \"high\"\nexlude = []",
                ".domesday.toml:2: unknown field `exlude`; did you mean `exclude`?",
            ),
            ("[zzz]\n", ".domesday.toml:1: unknown field `zzz`; known: `exclude`,"),
            ("\nexclude = \"a\"", ".domesday.toml:2: exclude: expected a list"),
            ("exclude = [1]", ".domesday.toml:1: exclude: expected a list"),
            ("max_file_size = \"5 M\"", ".domesday.toml:1: max_file_size: expected a number of bytes"),
            ("max_file_size = -1", ".domesday.toml:1: max_file_size: expected"),
            ("level = \"hihg\"", ".domesday.toml:1: level: expected low, medium or high"),
            ("rules = \"a\"", ".domesday.toml:1: rules: expected a list of paths"),
            ("baseline = \"\"", ".domesday.toml:1: baseline: expected the path"),
            ("\n\nlevel =", ".domesday.toml:3: this is not TOML"),
        ] {
            let told = parse(text).unwrap_err().to_string();
            assert!(told.starts_with(problem), "{told}");
        }
    }

    #[test]
    fn patterns_are_relative_to_the_file() {
        for (pattern, below, expected) in [
            ("*.lock", "src", Some("*.lock")),
            ("target/", "src", Some("target/")),
            ("/src/gen", "src", Some("/gen")),
            ("src/gen/*.py", "src/gen", Some("/*.py")),
            ("!src/gen/keep", "src", Some("!/gen/keep")),
            ("docs/x", "src", None),
            ("/src", "src", None),
            ("/src/", "src", None),
            ("*/gen", "src", Some("/gen")),
            ("**/gen", "src", Some("**/gen")),
            ("a/**/b", "a/x/y", Some("**/b")),
            ("a/**/b", "a", Some("/**/b")),
        ] {
            assert_eq!(rebased(pattern, below).as_deref(), expected, "{pattern} in {below}");
        }
    }

    #[test]
    fn the_nearest_file_inside_the_repository_counts() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let deep = top.join("shop/src/app");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(top.join(NAME), "").unwrap();
        assert_eq!(nearest(&deep), None, "nothing above counts without a repository");
        assert_eq!(nearest(&top), Some(top.join(NAME)));
        std::fs::create_dir(top.join("shop/.git")).unwrap();
        assert_eq!(nearest(&deep), None, "nor what is above the repository");
        std::fs::write(top.join("shop").join(NAME), "").unwrap();
        assert_eq!(nearest(&deep), Some(top.join("shop").join(NAME)));
        std::fs::write(deep.join(NAME), "").unwrap();
        assert_eq!(nearest(&deep), Some(deep.join(NAME)));
        assert!(found(&[deep.clone(), top.join("shop")]).unwrap_err().to_string().contains("--no-config"));
        assert!(
            found(&[deep.clone(), "https://example.com".into()]).unwrap_err().to_string().contains("none")
        );
        assert_eq!(found(&[deep.clone(), deep.clone()]).unwrap(), Some(deep.join(NAME)));
    }
}
