//! From what the user typed to data sources: paths, standard input and addresses.
//!
//! A target has the same name each time it is typed, so that an interrupted scan of it is found again. Secrets
//! in addresses stay in this process: the book gets a reference to them, see [`address`].

mod address;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use domesday_connector::credentials::{CredentialReference, Method, RunSecrets};
use domesday_connectors::databases::{self, mysql, postgres, sqlite, sqlserver};
use domesday_connectors::filesystem::{self, FilesystemConfig};
use domesday_connectors::git::{self, GitConfig};
use domesday_connectors::{github, objects, stdin, url};
use domesday_model::{DatasourceSpec, ObjectKey};
use serde_json::{Value, json};

use crate::args::{GitArgs, ScanArgs, WebArgs};
use crate::config::Config;
use crate::document;
use crate::output::Source;
use crate::request::GROUP_PREFIX;
use address::{Address, Login};

/// One target of a scan.
#[derive(Debug)]
pub struct Target {
    pub spec: DatasourceSpec,
    /// As the user named it, without a secret.
    pub shown: String,
    /// How its objects are shown.
    pub source: Source,
}

/// What a scan is to read.
#[derive(Default)]
pub struct Targets {
    pub targets: Vec<Target>,
    /// The secrets that were typed.
    pub secrets: RunSecrets,
}

/// A kind of address: what it looks like, and what it means to the connector that reads it.
struct Form {
    kinds: &'static [&'static str],
    is: fn(&Address) -> bool,
    /// The kind and its configuration.
    parse: fn(&str) -> Result<(&'static str, Value)>,
}

/// The addresses that are known: one line each, and the first that fits counts.
const FORMS: &[Form] = &[
    Form {
        kinds: &[github::KIND],
        is: |address| address.scheme == "github",
        parse: |text| Ok((github::KIND, github::parse_address(text)?)),
    },
    Form { kinds: &[git::KIND], is: is_repository, parse: |text| Ok((git::KIND, json!({ "url": text }))) },
    Form {
        kinds: &["s3", "gcs", "azure"],
        is: |address| ["s3", "s3a", "gs", "gcs", "az", "azure"].contains(&address.scheme.as_str()),
        parse: |text| Ok(objects::parse_address(text)?),
    },
    Form {
        kinds: &[postgres::KIND],
        is: |address| matches!(address.scheme.as_str(), "postgres" | "postgresql"),
        parse: |text| Ok((postgres::KIND, databases::parse_address(text)?)),
    },
    Form {
        kinds: &[mysql::KIND],
        is: |address| matches!(address.scheme.as_str(), "mysql" | "mariadb"),
        parse: |text| Ok((mysql::KIND, databases::parse_address(text)?)),
    },
    Form {
        kinds: &[sqlserver::KIND],
        is: |address| matches!(address.scheme.as_str(), "sqlserver" | "mssql"),
        parse: |text| Ok((sqlserver::KIND, databases::parse_address(text)?)),
    },
    Form {
        kinds: &[url::KIND],
        is: |address| matches!(address.scheme.as_str(), "http" | "https"),
        parse: |text| Ok((url::KIND, url::parse_address(text)?)),
    },
];

/// Schemes of which repositories are the only thing one can scan.
const REPOSITORY_SCHEMES: &[&str] = &["ssh", "git", "file"];

fn is_repository(address: &Address) -> bool {
    let is_of_github = || {
        let names: Vec<&str> = address.path.split('/').filter(|name| !name.is_empty()).collect();
        address.host == "github.com" && names.len() == 2
    };
    REPOSITORY_SCHEMES.contains(&address.scheme.as_str())
        || (matches!(address.scheme.as_str(), "http" | "https")
            && (address.path.ends_with(".git") || is_of_github()))
}

/// The data sources of a scan, each once. Domesday's own state is none.
pub fn targets(args: &ScanArgs, config: Option<&Config>, state: &Path) -> Result<Targets> {
    let state = state.canonicalize().unwrap_or_else(|_| state.to_owned());
    let credential = args.credential.as_deref().map(CredentialReference::defined).transpose();
    let credential = credential.context("--credential")?;
    let mut found = Targets::default();
    let mut seen = BTreeSet::new();
    let mut has_address = false;
    for typed in &args.targets {
        let target = match address(typed)? {
            _ if typed.as_os_str() == "-" => standard_input(),
            None => local(args, config, typed, &state)?,
            Some(address) => {
                has_address = true;
                remote(args, config, address, credential.as_ref(), &mut found.secrets)?
            }
        };
        if seen.insert(target.spec.name.clone()) {
            found.targets.push(target);
        }
    }
    if credential.is_some() && !has_address {
        bail!("--credential: no target is an address; files are read with your own rights");
    }
    Ok(found)
}

/// An address, unless there is something of this name here.
fn address(typed: &Path) -> Result<Option<Address>> {
    match typed.to_str() {
        Some(text) if typed.symlink_metadata().is_err() => Address::parse(text),
        _ => Ok(None),
    }
}

/// How the objects of a data source are shown, below `root`.
fn source_of(spec: &DatasourceSpec, root: Vec<u8>) -> Source {
    Source { name: spec.name.clone(), root, hidden: hidden(&spec.kind) }
}

/// The folder of a kind's keys that says nothing to people.
pub fn hidden(kind: &str) -> Vec<u8> {
    if kind == git::KIND { git::WORKTREE.to_vec() } else { Vec::new() }
}

/// The folder that a file is in.
pub fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The root of the repository that a folder is in, if it is in one.
pub fn repository_root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

fn standard_input() -> Target {
    let spec = DatasourceSpec::new(stdin::KIND, stdin::KIND, GROUP_PREFIX, Value::Null);
    Target { shown: "-".to_owned(), source: source_of(&spec, Vec::new()), spec }
}

/// What stands before the path of a database that is a file.
const DATABASE_PREFIX: &[u8] = b"sqlite:";

/// What is on this machine.
fn local(args: &ScanArgs, config: Option<&Config>, typed: &Path, state: &Path) -> Result<Target> {
    let file = typed.as_os_str().as_bytes().strip_prefix(DATABASE_PREFIX).filter(|_| !typed.exists());
    let (asked, path) = match file {
        Some(file) => (Some(sqlite::KIND), Path::new(OsStr::from_bytes(file))),
        None => (args.kind.as_deref(), typed),
    };
    let about = || format!("cannot scan {}", path.display());
    let real = path.canonicalize().with_context(about)?;
    if real.starts_with(state) {
        bail!("cannot scan {}: it is Domesday's own state, which is never scanned", path.display());
    }
    let shape = git::discover(&real);
    let (kind, configuration, shown) = match (asked, shape) {
        (Some(sqlite::KIND), _) => {
            (sqlite::KIND, json!({ "path": real.to_str().context("its path is no text")? }), path.to_owned())
        }
        (None, Some(shape)) if !args.git.worktree => repository(args, path, &real, shape)?,
        (Some(git::KIND), Some(shape)) => repository(args, path, &real, shape)?,
        (Some(git::KIND), None) => bail!("cannot scan {}: it is not a git repository", path.display()),
        (None, None) if args.git.selects() || args.git.worktree => bail!(
            "cannot scan {}: it is not the folder of a git repository, of which alone a part can be asked for",
            path.display()
        ),
        (None | Some(filesystem::KIND), _) => file_tree(args, path, &real)?,
        (Some(kind), _) => bail!("cannot scan {} as {kind}: it is on this machine", path.display()),
    };
    let name = format!("{kind}:{}", ObjectKey::new(real.as_os_str().as_bytes()));
    let root = if shown.as_os_str() == "." { Vec::new() } else { shown.as_os_str().as_bytes().to_vec() };
    let folder = if real.is_dir() { Some(real.as_path()) } else { real.parent() };
    let narrowing = match kind {
        // Patterns of the configuration file are of paths.
        sqlite::KIND => Narrowing { exclude: args.exclude.clone(), max_file_size: None },
        _ => Narrowing::new(args, config, folder),
    };
    let spec = spec(args, narrowing, name, kind, configuration).with_context(about)?;
    Ok(Target { shown: path.display().to_string(), source: source_of(&spec, root), spec })
}

/// A repository with its history, and with what is not in it yet unless only a part is asked for.
fn repository(
    args: &ScanArgs,
    path: &Path,
    real: &Path,
    shape: git::Shape,
) -> Result<(&'static str, Value, PathBuf)> {
    let config = GitConfig {
        uncommitted: shape == git::Shape::Worktree && !args.git.selects(),
        staged: args.git.staged,
        ..history(args, GitConfig::new(real.to_owned()))
    };
    Ok((git::KIND, serde_json::to_value(config)?, path.to_owned()))
}

/// A remote repository, of which nothing is staged here.
fn part_of(args: &ScanArgs, configuration: Value) -> Result<Value> {
    if args.git.staged || args.git.worktree {
        bail!("--staged and --worktree are for a repository on this machine");
    }
    let config = GitConfig::parse(&configuration)?;
    Ok(serde_json::to_value(history(args, config))?)
}

/// What the flags say of web addresses.
fn pages(args: &WebArgs, address: &str, configuration: &mut Value) {
    if args.sitemap || args.address_list {
        *configuration = json!({ if args.sitemap { "sitemap" } else { "list" }: address });
    }
    if let Some(depth) = args.crawl {
        configuration["crawl"] = json!({ "depth": depth });
    }
    if args.allow_private {
        configuration["allow_private"] = json!(true);
    }
}

/// The part of a history that is asked for.
fn history(args: &ScanArgs, config: GitConfig) -> GitConfig {
    let GitArgs { branch, since_commit, range, .. } = &args.git;
    GitConfig { refs: branch.clone(), since_commit: since_commit.clone(), range: range.clone(), ..config }
}

fn file_tree(args: &ScanArgs, path: &Path, real: &Path) -> Result<(&'static str, Value, PathBuf)> {
    let metadata = real.metadata().with_context(|| format!("cannot scan {}", path.display()))?;
    let (root, shown, only) = if metadata.is_dir() {
        (real, path.to_owned(), None)
    } else if metadata.is_file() {
        let name = real.file_name().context("a file has a name")?;
        let folder = real.parent().context("a file is in a folder")?;
        let shown = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        (folder, shown, Some(ObjectKey::new(name.as_bytes())))
    } else {
        bail!("cannot scan {}: it is neither a folder nor a file; pipe it in with `-`", path.display());
    };
    let follow_symlinks = args.follow_symlinks;
    let exclude = if args.git.worktree { vec![".git".to_owned()] } else { Vec::new() };
    let config =
        FilesystemConfig { only, follow_symlinks, exclude, ..FilesystemConfig::new(root.to_owned()) };
    Ok((filesystem::KIND, serde_json::to_value(config)?, shown))
}

/// What is elsewhere.
fn remote(
    args: &ScanArgs,
    config: Option<&Config>,
    address: Address,
    credential: Option<&CredentialReference>,
    secrets: &mut RunSecrets,
) -> Result<Target> {
    let about = || format!("cannot scan {address}");
    let form = FORMS.iter().find(|form| match args.kind.as_deref() {
        Some(kind) => form.kinds.contains(&kind),
        None => (form.is)(&address),
    });
    let Some(form) = form else {
        bail!("{}: no connector reads such an address; --kind names one", about());
    };
    let (kind, mut configuration) = (form.parse)(&address.text).with_context(about)?;
    match kind {
        git::KIND => configuration = part_of(args, configuration).with_context(about)?,
        _ if args.git.selects() => bail!("{}: it is not a git repository", about()),
        url::KIND => pages(&args.web, &address.text, &mut configuration),
        _ => {}
    }
    let name = format!("{kind}:{}", ObjectKey::new(address.text.as_bytes()));
    let reference = match (&address.login, credential) {
        (Some(_), Some(_)) => bail!("{}: give either --credential or a password in the address", about()),
        (None, credential) => credential.cloned(),
        (Some(login), None) => {
            let (method, secret) = match login {
                Login::Basic(secret) if address.is_database() => (Method::Database, secret),
                Login::Basic(secret) => (Method::Basic, secret),
                Login::Token(secret) if kind == git::KIND => (Method::Github, secret),
                Login::Token(secret) => (Method::Bearer, secret),
            };
            configuration[AUTHENTICATION] = json!(method);
            Some(secrets.hold(&name, secret.clone()))
        }
    };
    let narrowing = match address.is_database() {
        // What files are left out says nothing of tables.
        true => Narrowing { exclude: args.exclude.clone(), max_file_size: None },
        false => Narrowing::new(args, config, None),
    };
    let mut spec = spec(args, narrowing, name, kind, configuration).with_context(about)?;
    spec.credential = reference.map(String::from);
    // Where keys are addresses, or begin with the name of a repository, they say it all.
    let root = match kind {
        url::KIND | github::KIND => "",
        // Keys begin with the database.
        _ if address.is_database() => address.server(),
        _ => &address.text,
    };
    let source = source_of(&spec, root.as_bytes().to_vec());
    Ok(Target { shown: address.text, source, spec })
}

/// The field of every configuration that says how to authenticate.
const AUTHENTICATION: &str = "authentication";

/// What is left out of a target, by flags and configuration. Of two patterns the later one counts, and flags are
/// later.
struct Narrowing {
    exclude: Vec<String>,
    max_file_size: Option<u64>,
}

impl Narrowing {
    fn new(args: &ScanArgs, config: Option<&Config>, folder: Option<&Path>) -> Narrowing {
        let mut exclude = config.map(|config| config.exclude(folder)).unwrap_or_default();
        exclude.extend_from_slice(&args.exclude);
        let max_file_size = args.max_file_size.or(config.and_then(|config| config.max_file_size));
        Narrowing { exclude, max_file_size }
    }
}

/// A data source of this scan, with what is said about all of them.
fn spec(
    args: &ScanArgs,
    narrowing: Narrowing,
    name: String,
    kind: &str,
    mut configuration: Value,
) -> Result<DatasourceSpec> {
    if !narrowing.exclude.is_empty() {
        // Its `exclude` leaves out repositories.
        let field = if kind == github::KIND { "exclude_paths" } else { "exclude" };
        let own = configuration.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
        configuration[field] =
            own.into_iter().chain(narrowing.exclude.into_iter().map(Value::from)).collect();
    }
    if let Some(size) = narrowing.max_file_size {
        let field = if kind == url::KIND { "max_size" } else { "max_file_size" };
        configuration[field] = json!(size);
    }
    document::apply(&args.set, &mut configuration).context("--set")?;
    Ok(DatasourceSpec::new(name, kind, GROUP_PREFIX, configuration))
}

impl Target {
    /// What makes this the same target as one that was typed before: all of it but the secret that came with it,
    /// so that a scan that was begun with one is found without it.
    pub fn identity(&self) -> DatasourceSpec {
        let mut spec = self.spec.clone();
        if self.has_run_secret() {
            spec.credential = None;
            if let Some(fields) = spec.configuration.as_object_mut() {
                fields.remove(AUTHENTICATION);
            }
        }
        spec
    }

    fn has_run_secret(&self) -> bool {
        let parsed = self.spec.credential.as_deref().and_then(|text| text.parse().ok());
        parsed.is_some_and(|reference: CredentialReference| reference.is_of_run())
    }

    /// Checks that a scan of this target that was begun with this configuration can go on now: a secret that
    /// was typed then must be typed again.
    pub fn check_resumes(&self, configuration: &Value) -> Result<()> {
        let (then, now) = (configuration.get(AUTHENTICATION), self.spec.configuration.get(AUTHENTICATION));
        match (then, now) {
            (Some(_), None) => bail!(
                "the unfinished scan of {} was begun with a password in the address, which is kept nowhere: give it \
                 again (--fresh starts over without)",
                self.spec.name
            ),
            (None, Some(_)) => bail!(
                "the unfinished scan of {} was begun without a password in the address: leave it out to go on, or \
                 start over with --fresh",
                self.spec.name
            ),
            _ => Ok(()),
        }
    }
}
