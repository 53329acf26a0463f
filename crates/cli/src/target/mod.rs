//! From what the user typed to data sources: paths, standard input and addresses.
//!
//! A target has the same name each time it is typed, so that an interrupted scan of it is found again. Secrets
//! in addresses stay in this process: the book gets a reference to them.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use domesday_connector::address::{Address, Login};
use domesday_connector::credentials::{CredentialReference, RunSecrets};
use domesday_connector::{Configured, Exclude, HistoryFlags, NamedBy, Seal, TargetFlags, WebFlags};
use domesday_model::{DatasourceSpec, ObjectKey, TrustContent, redact};
use serde_json::{Value, json};

use crate::args::{GitArgs, ScanArgs};
use crate::config::Config;
use crate::output::Source;
use crate::request::GROUP_PREFIX;
use crate::{connectors, document};

/// One target of a scan.
#[derive(Debug)]
pub struct Target {
    pub spec: DatasourceSpec,
    /// As the user named it, without a secret.
    pub shown: String,
    /// How its objects are shown.
    pub source: Source,
    /// Were its content trusted, more would be scanned than what is in it.
    is_part_elsewhere: bool,
}

/// What a scan is to read.
#[derive(Default)]
pub struct Targets {
    pub targets: Vec<Target>,
    /// The secrets that were typed.
    pub secrets: RunSecrets,
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
            _ if typed.as_os_str() == "-" => standard_input()?,
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
        Some(text) if typed.symlink_metadata().is_err() => {
            Ok(Address::parse(text, connectors::known().schemes())?)
        }
        _ => Ok(None),
    }
}

/// The folder that a file is in.
pub fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The root of the repository that a folder is in, if it is in one.
pub fn repository_root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// What the flags say of any target.
fn target_flags(args: &ScanArgs) -> TargetFlags {
    let GitArgs { branch, since_commit, range, staged, worktree } = &args.git;
    TargetFlags {
        trust_content: args.trust(),
        follow_symlinks: args.follow_symlinks,
        history: HistoryFlags {
            refs: branch.clone(),
            since_commit: since_commit.clone(),
            range: range.clone(),
            staged: *staged,
            worktree: *worktree,
        },
        web: WebFlags {
            crawl_depth: args.web.crawl,
            sitemap: args.web.sitemap,
            address_list: args.web.address_list,
            allow_private: args.web.allow_private.clone(),
        },
    }
}

fn standard_input() -> Result<Target> {
    let input = connectors::known().factories().find(|factory| factory.describe().is_standard_input);
    let kind = input.context("no connector reads standard input")?.kind();
    let spec = DatasourceSpec::new(kind, kind, GROUP_PREFIX, Value::Null);
    let source = connectors::display(kind, kind, &spec.configuration, NamedBy::Configuration);
    Ok(Target { shown: "-".to_owned(), source, spec, is_part_elsewhere: false })
}

/// The kind whose prefix stands before a path, and the path behind it.
fn with_prefix(typed: &Path) -> Option<(&'static str, &Path)> {
    connectors::known().factories().find_map(|factory| {
        let schemes = factory.describe().schemes.iter().filter(|scheme| !scheme.is_remote());
        let behind = schemes
            .map(|scheme| scheme.name.as_bytes())
            .find_map(|name| typed.as_os_str().as_bytes().strip_prefix(name)?.strip_prefix(b":"))?;
        Some((factory.kind(), Path::new(OsStr::from_bytes(behind))))
    })
}

/// What is on this machine.
fn local(args: &ScanArgs, config: Option<&Config>, typed: &Path, state: &Path) -> Result<Target> {
    let (asked, path) = match with_prefix(typed).filter(|_| !typed.exists()) {
        Some((kind, path)) => (Some(kind), path),
        None => (args.kind.as_deref(), typed),
    };
    let about = || format!("cannot scan {}", path.display());
    let real = path.canonicalize().with_context(about)?;
    if real.starts_with(state) {
        bail!("cannot scan {}: it is Domesday's own state, which is never scanned", path.display());
    }
    let flags = target_flags(args);
    let factory = match asked {
        Some(kind) => connectors::known().get(kind),
        None => connectors::known().for_path(&real, &flags).with_context(about)?,
    };
    let configuration = match factory {
        Some(factory) => factory.configure_path(&real, &flags).with_context(about)?,
        None => None,
    };
    let (Some(factory), Some(configuration)) = (factory, configuration) else {
        bail!("{} as {}: it is on this machine", about(), asked.unwrap_or_default());
    };
    let kind = factory.kind();
    let trusting = TargetFlags { trust_content: TrustContent::Yes, ..flags };
    let if_trusted = connectors::known().for_path(&real, &trusting).with_context(about)?;
    let is_part_elsewhere = asked.is_none() && if_trusted.is_some_and(|other| other.kind() != kind);
    let name = format!("{kind}:{}", ObjectKey::new(real.as_os_str().as_bytes()));
    let folder = if real.is_dir() { Some(real.as_path()) } else { real.parent() };
    let source = connectors::display(&name, kind, &configuration, NamedBy::Path(path));
    let spec = spec(args, config, folder, name, kind, configuration).with_context(about)?;
    Ok(Target { shown: path.display().to_string(), source, spec, is_part_elsewhere })
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
    let Some(factory) = connectors::known().for_address(&address, args.kind.as_deref()) else {
        bail!("{}: no connector reads such an address; --kind names one", about());
    };
    let flags = target_flags(args);
    let Configured { kind, mut configuration, concurrency_limit } =
        factory.configure_address(&address, &flags).with_context(about)?;
    let description = connectors::known().describe(kind);
    if flags.history.selects() && !description.has_history {
        bail!("{}: it is not a git repository", about());
    }
    let name = format!("{kind}:{}", ObjectKey::new(address.text.as_bytes()));
    let reference = match (&address.login, credential) {
        (Some(Login::Token(_)), Some(_)) => bail!(
            "{}: what stands before the `@` counts as a token: leave it out, for --credential says who asks (for a user, \
             `user:password`)",
            about()
        ),
        (Some(_), Some(_)) => bail!("{}: give either --credential or a password in the address", about()),
        (None, credential) => credential.cloned(),
        (Some(login), None) => {
            let (method, secret) = match login {
                Login::Basic(secret) => (description.password, secret),
                Login::Token(secret) => (description.token, secret),
            };
            configuration[AUTHENTICATION] = json!(method);
            Some(secrets.hold(&name, secret.clone()))
        }
    };
    let source = connectors::display(&name, kind, &configuration, NamedBy::Address(&address));
    let mut spec = spec(args, config, None, name, kind, configuration).with_context(about)?;
    spec.credential = reference.map(String::from);
    spec.concurrency_limit = concurrency_limit.or(spec.concurrency_limit);
    Ok(Target { shown: address.text, source, spec, is_part_elsewhere: false })
}

/// The field of every configuration that says how to authenticate.
const AUTHENTICATION: &str = "authentication";

/// A data source of this scan, with what flags and the configuration file of `folder` leave out of it. Of two
/// patterns the later one counts, and flags are later.
fn spec(
    args: &ScanArgs,
    config: Option<&Config>,
    folder: Option<&Path>,
    name: String,
    kind: &str,
    mut configuration: Value,
) -> Result<DatasourceSpec> {
    let description = connectors::known().describe(kind);
    if let Some(exclude) = description.exclude {
        // Patterns of the configuration file are of paths.
        let of_file = config.filter(|_| matches!(exclude, Exclude::Paths(_)));
        let mut patterns = of_file.map(|config| config.exclude(folder)).unwrap_or_default();
        patterns.extend_from_slice(&args.exclude);
        if !patterns.is_empty() {
            let field = exclude.field();
            let own = configuration.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
            configuration[field] = own.into_iter().chain(patterns.into_iter().map(Value::from)).collect();
        }
    }
    let size = args.max_file_size.or(config.and_then(|config| config.max_file_size));
    if let (Some(field), Some(size)) = (description.max_file_size, size) {
        configuration[field] = json!(size);
    }
    document::apply(&args.set, &mut configuration).context("--set")?;
    Ok(DatasourceSpec {
        concurrency_limit: description.default_concurrency,
        ..DatasourceSpec::new(name, kind, GROUP_PREFIX, configuration)
    })
}

impl Target {
    /// Whether the same command reads the same thing again.
    pub fn is_repeatable(&self) -> bool {
        connectors::known().describe(&self.spec.kind).is_repeatable
    }

    /// What the user should know of where its content leads, and whether it is followed.
    pub fn notes(&self, asked: TrustContent) -> Vec<String> {
        let Self { spec, shown, .. } = self;
        if self.is_part_elsewhere {
            return vec![format!(
                "{shown}: its repository is outside of it, and its content is not trusted: only its files are scanned"
            )];
        }
        let followed = match self.is_trusted(asked) {
            true => connectors::known().leads_out(&spec.kind, &spec.configuration),
            false => Vec::new(),
        };
        let note = |folder: PathBuf| {
            format!("{shown}: it leads to {}, which is read too (--untrusted prevents it)", folder.display())
        };
        followed.into_iter().map(note).collect()
    }

    /// Whether its content may say what is reported of it, where the command says `asked`.
    pub fn is_trusted(&self, asked: TrustContent) -> bool {
        let Self { spec, .. } = self;
        connectors::known().trusts_content(&spec.kind, &spec.configuration, asked).unwrap_or(false)
    }

    /// Seals what is secret in its address: from here on it is kept and shown.
    pub fn seal(&mut self, seal: &Seal) {
        self.spec.configuration = seal.seal_configuration(&self.spec.configuration);
        self.spec.name = seal.seal_address(&self.spec.name);
        self.source.name.clone_from(&self.spec.name);
        let root = &self.source.root;
        self.source.root = redact::replaced(root, &redact::secret_parts(root), |_| redact::REDACTED.into());
        self.shown = redact::redacted(&self.shown).into_owned();
    }

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
