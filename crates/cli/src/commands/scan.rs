//! `domesday scan`: one process that runs the whole flow on the embedded book.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use domesday_connector::credentials::{CredentialManager, CredentialPolicy, RunSecrets};
use domesday_connector::{HostPattern, Registry, Seal, Surroundings};
use domesday_control::{
    LOCAL_RETRIES, Local, LocalConfig, Metrics, Progress, RuleCache, StopSignal, WorkerParts, run_local,
};
use domesday_engine::{RuleSet, Scanner};
use domesday_model::{
    Command, ConfigurationUsed, DatasourceId, DatasourceSpec, FingerprintKey, JobConfiguration, MasterJobId,
    ProcessId, Retries, ScanOptions,
};
use domesday_scheduler::{CoreConfig, ScanCore};
use domesday_store::sqlite::{Options, SqliteStore};
use domesday_store::{
    ComposerStore, Datasource, MasterJob, NewMasterJob, OccurrenceFilter, ReportStore, Store, StoreError,
};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::report::{Reader, Reporting, Values};
use super::{report, runtime};
use crate::args::{LevelArg, ScanArgs};
use crate::baseline::{Baseline, SourceRef};
use crate::config::Config;
use crate::output::{self, ClassFilter, RuleInfo, Sources};
use crate::reach::Reach;
use crate::state::{self, random_bytes};
use crate::target::{self, Target, Targets};
use crate::{Exit, connectors, fingerprint, request, rules, say, signals};

/// How often progress is shown.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// How long what is left at the end may take to end.
const SHUTDOWN_MAX: Duration = Duration::from_secs(2);
/// Folders listed at once.
const ENUMERATORS: usize = 2;
/// Packets in the scan core per thread: one being scanned, one ready.
const PACKETS_PER_THREAD: usize = 2;

pub fn run(args: &ScanArgs) -> Result<Exit> {
    let begun = Instant::now();
    if args.store.is_some() {
        bail!(
            "a scan is one process with a book of its own; for the book of a fleet, run `domesday datasource \
             add`, `domesday template add` and `domesday job start`"
        );
    }
    let folder = state::folder(args.state.as_deref())?;
    let config = Config::of_scan(args)?;
    if let Some(config) = config.as_ref().filter(|_| !args.quiet) {
        say(format_args!("using {} (--no-config leaves it out)", config.shown()));
    }
    let Targets { mut targets, secrets } = target::targets(args, config.as_ref(), &folder)?;
    if !args.quiet {
        for note in targets.iter().flat_map(|target| target.notes(args.trust())) {
            say(format_args!("{note}"));
        }
    }
    let configuration = config.as_ref().map(Config::used);
    let config = config.unwrap_or_default();
    if let Some(path) = &args.report.output {
        report::check_output(path)?;
    }
    let level = args.level.or(config.level).unwrap_or(LevelArg::Medium);
    let options = request::options(level.into(), args.trust(), args.strict);
    let key_reference = fingerprint::reference(args.fingerprint_key.as_deref());
    // The book waits for the disk and the rules for the processor.
    let (opened, ready) = beside(
        || open(&folder, key_reference.is_none()),
        || {
            let rules = Arc::new(rule_set(args, &config)?);
            let scanner = scanner(&rules, &options, &targets);
            Ok::<_, anyhow::Error>((rules, scanner))
        },
    );
    let ((rules, scanner), (store, own_key)) = (ready?, opened?);
    let store = Arc::new(store);
    let runtime = runtime()?;
    let credentials = Arc::new(credentials(args, secrets, key_reference.as_deref(), &folder)?);
    let key = match key_reference {
        Some(reference) => runtime.block_on(fingerprint::resolve(&credentials, &reference))?,
        None => own_key.expect("the book comes with a key where none is named"),
    };
    let seal = Seal::new(&key);
    targets.iter_mut().for_each(|target| target.seal(&seal));
    let kept = RuleCache::sealed(&rules, &seal)?;
    let (rules, scanner) = match Arc::ptr_eq(&kept, &rules) {
        true => (rules, scanner),
        false => (Arc::clone(&kept), self::scanner(&kept, &options, &targets)),
    };
    let infos = rules::infos(&rules);
    let only = args.report.only(&infos)?;
    let sources = || targets.iter().map(|target| SourceRef::from(&target.spec));
    let (baseline, reach) = match &args.baseline {
        Some(path) => (Some(path), &Reach::Anywhere),
        None => (config.baseline.as_ref(), &config.reach),
    };
    let known = |path: &PathBuf| Baseline::load(path, reach, &key.id(), sources(), &infos);
    let baseline = baseline.map(known).transpose()?;
    let config = args.jobs.map_or_else(CoreConfig::default, |jobs| CoreConfig::for_threads(jobs.into()));
    #[cfg(feature = "failpoints")]
    let config = crate::failpoints::core_config(config);
    let fingerprint_key = key.id();
    let core = Arc::new(ScanCore::new(config, key).context("cannot start the scan threads")?);
    let scan = Scan {
        args,
        request_key: request::key(&targets, rules.hash(), &options, &fingerprint_key)?,
        fingerprint_key,
        targets,
        options,
        rules,
        scanner,
        only,
        infos,
        baseline,
        configuration,
        store,
        core,
        threads: config.threads,
        surroundings: Surroundings {
            own_state: Some(folder),
            credentials,
            trust_content: args.trust(),
            seal,
            ..Surroundings::default()
        },
        registry: connectors::of_scan(args.show_values),
        begun,
    };
    let exit = runtime.block_on(scan.run());
    // A scan that was stopped may have left something that still ends; a program that it runs is ended with it.
    runtime.shutdown_timeout(SHUTDOWN_MAX);
    // The threads free what they have while the book is closed.
    let Scan { store, core, .. } = scan;
    let end = || {
        drop(core);
        Ok(())
    };
    let (ended, ()) = beside(end, || drop(store));
    ended.and(exit)
}

/// Does one thing on a thread of its own while the other is done here.
fn beside<A: Send, B>(one: impl FnOnce() -> Result<A> + Send, other: impl FnOnce() -> B) -> (Result<A>, B) {
    std::thread::scope(|scope| {
        let one = std::thread::Builder::new().name("beside".into()).spawn_scoped(scope, one);
        let other = other();
        let one = one.context("cannot start a thread").and_then(|one| {
            // A panic is as much of a panic there as it would be here.
            one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        (one, other)
    })
}

/// The book in `folder`, and the key that is kept with it.
fn open(folder: &Path, with_key: bool) -> Result<(SqliteStore, Option<FingerprintKey>)> {
    #[allow(unused_mut, reason = "the hook is set only with failpoints")]
    let mut options = Options::default();
    #[cfg(feature = "failpoints")]
    {
        options.hook = crate::failpoints::Failpoint::from_environment();
    }
    let store = SqliteStore::open(folder, options)?;
    let key = with_key.then(|| state::fingerprint_key(folder)).transpose()?;
    Ok((store, key))
}

/// The built-in rules, the user's own, and what is said of them.
fn rule_set(args: &ScanArgs, config: &Config) -> Result<RuleSet> {
    let typed = rules::read(&args.rules, &Reach::Anywhere)?;
    let selection = rules::selection(&args.select.only, &args.select.skip);
    let rules = rules::load_with(config.rules()?.into_iter().chain(typed).chain(selection))?;
    if !args.quiet {
        rules::say_notes(&rules);
    }
    Ok(rules)
}

/// The scanner of all objects, which gets ready for the first of them while the book is opened.
fn scanner(rules: &Arc<RuleSet>, options: &ScanOptions, targets: &[Target]) -> Arc<Scanner> {
    // Targets that are trusted otherwise have one of their own, made when it is needed.
    let heeds_marks = targets.first().is_some_and(|target| target.is_trusted(options.trust_content));
    let scanner = Scanner::with_floor(Arc::clone(rules), options.min_score).heeding_marks(heeds_marks);
    let scanner = Arc::new(scanner);
    if let Some(first) = targets.first().map(|target| target.shown.clone()) {
        let scanner = Arc::clone(&scanner);
        // Without a thread to do it now, it is done when it is needed.
        let _ = std::thread::Builder::new()
            .name("prepare".into())
            .spawn(move || scanner.prepare(first.as_bytes()));
    }
    // The end of the process frees it as well, and at once.
    std::mem::forget(Arc::clone(&scanner));
    scanner
}

/// Every provider of credentials, with the secrets that were typed. Targets are given these, and what `--credential`
/// names; the endpoints of stores were typed as well.
fn credentials(
    args: &ScanArgs,
    secrets: RunSecrets,
    key: Option<&str>,
    folder: &Path,
) -> Result<CredentialManager> {
    let mut policy =
        CredentialPolicy::default().keeping_path(folder.to_owned()).with_endpoints(HostPattern::parse("*"));
    if let Some(reference) = &args.credential {
        policy = policy.typed(reference.parse().context("--credential")?);
    }
    if let Some(reference) = key {
        policy = policy.keeping(reference.parse().context("--fingerprint-key")?);
    }
    Ok(CredentialManager::default().with(secrets).under(policy))
}

struct Scan<'a> {
    args: &'a ScanArgs,
    targets: Vec<Target>,
    request_key: [u8; 16],
    /// Id of the key that fingerprints are made with.
    fingerprint_key: String,
    options: ScanOptions,
    rules: Arc<RuleSet>,
    scanner: Arc<Scanner>,
    only: ClassFilter,
    infos: Vec<RuleInfo>,
    baseline: Option<Baseline>,
    configuration: Option<ConfigurationUsed>,
    store: Arc<SqliteStore>,
    core: Arc<ScanCore>,
    threads: usize,
    surroundings: Surroundings,
    /// Shared by the scan and by what reads it again for its values.
    registry: Registry,
    begun: Instant,
}

impl Scan<'_> {
    async fn run(&self) -> Result<Exit> {
        let (signal, stop) = StopSignal::new();
        signals::listen(signal).context("cannot listen for signals")?;
        let registry = self.registry.clone();
        // What is wrong with a setting is the user's to know now, not the fate of a task.
        for Target { spec, .. } in &self.targets {
            let surroundings = self.surroundings.for_source(spec.credential.as_deref())?;
            registry.create(&spec.kind, &spec.configuration, &surroundings)?;
        }
        let (progress, metrics) = (Arc::new(Progress::default()), Arc::new(Metrics::default()));
        let master = self.job(&progress).await?;
        let local = Local {
            store: Arc::clone(&self.store) as Arc<dyn Store>,
            parts: WorkerParts {
                registry,
                surroundings: self.surroundings.clone(),
                core: Arc::clone(&self.core),
                rules: RuleCache::with(Arc::clone(&self.scanner)),
                progress: Arc::clone(&progress),
                metrics: Arc::clone(&metrics),
            },
            new_id: Arc::new(|| ProcessId(random_bytes())),
            config: LocalConfig {
                node_group: request::node_group(self.request_key),
                fingerprint_key: self.fingerprint_key.clone(),
                enumerators: ENUMERATORS,
                packets: PACKETS_PER_THREAD * self.threads,
                retries: Retries { attempts: self.args.attempts, ..LOCAL_RETRIES },
            },
        };
        let keeping = self.keep_rules();
        let job = {
            let mut shown = output::Progress::new(self.args.quiet);
            let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
            let mut stopping = stop.clone();
            let mut running = std::pin::pin!(run_local(local, master, stop));
            let mut told = false;
            loop {
                tokio::select! {
                    ended = &mut running => break ended?,
                    () = stopping.asked(), if !told => {
                        told = true;
                        shown.suspend(|| self.say_stopping());
                    }
                    _ = ticks.tick() => shown.update(&self.snapshot(&progress)),
                }
            }
        };
        keeping.await.context("the rules were not put into the book")??;
        let findings = self.report(&job).await?;
        if job.status.is_final() {
            self.store.mark_reported(job.id).await?;
        }
        if self.args.timings {
            self.print_timings(&progress, &metrics);
        }
        Ok(report::exit(&job, findings))
    }

    /// The unfinished job of this very request, or a new one.
    async fn job(&self, progress: &Progress) -> Result<MasterJobId> {
        while let Some(job) = self.store.unfinished(self.request_key).await? {
            if self.args.fresh {
                self.abandon(&job).await?;
                continue;
            }
            if job.status.is_final() {
                if !self.args.quiet {
                    say(format_args!("this scan ended before it could be reported (--fresh starts over)"));
                }
                return Ok(job.id);
            }
            self.check_resumes(&job).await?;
            let done = self.store.summary(job.id).await?;
            progress.start_from(done.objects_listed, done.bytes_listed, done.objects_done);
            if !self.args.quiet {
                let (done, listed) = (output::count(done.objects_done), output::count(done.objects_listed));
                say(format_args!(
                    "resuming the unfinished scan: {done} of {listed} objects listed so far are done (--fresh starts over)"
                ));
            }
            return Ok(job.id);
        }
        let hash = self.rules.hash();
        let id = MasterJobId(random_bytes());
        let job = NewMasterJob {
            id,
            request_key: self.request_key,
            // As they are shown, not as they were typed: there may have been a password.
            description: self
                .targets
                .iter()
                .map(|target| target.shown.as_str())
                .collect::<Vec<_>>()
                .join(" "),
            template: None,
            priority: 0,
            configuration: JobConfiguration {
                datasources: self.targets.iter().map(|target| self.in_own_group(&target.spec)).collect(),
                rule_set: hash.to_string(),
                options: self.options.clone(),
                fingerprint_key: self.fingerprint_key.clone(),
                engine_version: domesday_engine::VERSION,
                incremental: !self.args.rescan,
                configuration: self.configuration.clone(),
            },
        };
        self.store.submit(job).await?;
        Ok(id)
    }

    /// Puts the rules into the book for those who report of the job later. This run has them at hand, and need not wait
    /// for so much text to be written; one that was killed before it was puts them there when it goes on.
    fn keep_rules(&self) -> JoinHandle<Result<(), StoreError>> {
        let (store, rules) = (Arc::clone(&self.store), Arc::clone(&self.rules));
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            let text = RuleCache::text(&rules);
            runtime.block_on(store.put_rule_set(rules.hash(), &text))
        })
    }

    /// What was typed for an unfinished job must be typed again for it.
    async fn check_resumes(&self, job: &MasterJob) -> Result<()> {
        for source in self.store.datasources(job.id).await? {
            if let Some(target) = self.targets.iter().find(|target| target.spec.name == source.name) {
                target.check_resumes(&source.configuration)?;
            }
        }
        Ok(())
    }

    /// Sees to it that an earlier job is not taken up again.
    async fn abandon(&self, job: &MasterJob) -> Result<()> {
        if job.status.is_final() {
            return Ok(self.store.mark_reported(job.id).await?);
        }
        // Executed by the orchestrator of this run, before anything else.
        self.store.append_command(job.id, Command::Cancel).await?;
        Ok(())
    }

    fn in_own_group(&self, spec: &DatasourceSpec) -> DatasourceSpec {
        DatasourceSpec { node_group: request::node_group(self.request_key), ..spec.clone() }
    }

    /// Standard input may stay silent for ever, and cannot be read again: without it there is nothing
    /// to wait for and nothing to go on with.
    fn say_stopping(&self) {
        if self.targets.iter().any(|target| !target.is_repeatable()) {
            say(format_args!("stopped"));
            std::process::exit(Exit::Incomplete as i32);
        }
        say(format_args!("stopping; run the same command to go on (once more to stop at once)"));
    }

    async fn report(&self, job: &MasterJob) -> Result<u64> {
        let datasources = self.store.datasources(job.id).await?;
        let shown = |name: &str| self.targets.iter().find(|target| target.spec.name == name);
        let sources: Sources = datasources
            .iter()
            .filter_map(|source| Some((source.id, shown(&source.name)?.source.clone())))
            .collect();
        let values = match self.args.show_values {
            false => None,
            true => Some(Values {
                core: &self.core,
                options: &self.options,
                readers: self.readers(&datasources)?,
            }),
        };
        let reporting = Reporting {
            store: self.store.as_ref(),
            rules: &self.infos,
            allows: &self.rules,
            sources,
            filter: OccurrenceFilter {
                min_score: Some(self.options.min_score),
                ..OccurrenceFilter::default()
            },
            only: &self.only,
            explain: self.args.report.explain,
            baseline: self.baseline.as_ref(),
            show_suppressed: self.args.report.show_suppressed,
            configuration: self.configuration.as_ref(),
            format: self.args.report.format,
            output: self.args.report.output.as_deref(),
            quiet: self.args.quiet,
            elapsed: self.begun.elapsed(),
            values,
        };
        reporting.write(job).await
    }

    /// What reads each data source again.
    fn readers(&self, datasources: &[Datasource]) -> Result<HashMap<DatasourceId, Reader>> {
        let scanners =
            [false, true].map(|heeds| Arc::new(Scanner::new(Arc::clone(&self.rules)).heeding_marks(heeds)));
        let mut readers = HashMap::new();
        for source in datasources {
            let Some(target) = self.targets.iter().find(|target| target.spec.name == source.name) else {
                continue;
            };
            let surroundings = self.surroundings.for_source(target.spec.credential.as_deref())?;
            let connector = self.registry.create(&source.kind, &source.configuration, &surroundings)?;
            let is_trusted = target.is_trusted(self.options.trust_content);
            let scanner = Arc::clone(&scanners[usize::from(is_trusted)]);
            readers.insert(source.id, Reader { connector, scanner });
        }
        Ok(readers)
    }

    fn snapshot(&self, progress: &Progress) -> output::ProgressSnapshot {
        let seen = progress.snapshot();
        let core = self.core.metrics();
        output::ProgressSnapshot {
            objects_done: seen.objects_done,
            objects_listed: seen.objects_listed,
            bytes_done: core.bytes_scanned,
            bytes_listed: seen.bytes_listed,
            findings: seen.findings,
            listing_done: seen.listing_done,
            waiting: seen.waiting,
            elapsed: self.begun.elapsed(),
        }
    }

    /// Where the time went, summed over the threads that spent it.
    fn print_timings(&self, progress: &Progress, metrics: &Metrics) {
        let (book, wall) = (self.store.spent(), self.begun.elapsed());
        let objects = progress.snapshot().objects_listed;
        for line in output::timings(wall, objects, &book, &self.core, metrics) {
            say(format_args!("{line}"));
        }
    }
}
