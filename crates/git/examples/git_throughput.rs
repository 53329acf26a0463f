//! How fast a repository is listed and decoded, against git itself.
//!
//! `cargo run --release -p domesday-git --example git_throughput -- <repository> [refs]`
//!
//! Lists everything, or what the references lead to, then decodes it with two threads in the order of the
//! list, as the scan core does, and has `git cat-file --batch-all-objects --batch --unordered` do the same.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use domesday_connector::{Connector, Surroundings};
use domesday_git::{Git, GitConfig};
use domesday_model::{ListedObject, ObjectKey, TrustContent, UnitRecord};
use domesday_scheduler::{Moved, Opened};

const THREADS: usize = 2;
const ROUNDS: usize = 3;
/// Objects that a thread takes at once, as the scan core's do.
const TAKEN: usize = 32;
/// Objects whose origins are looked up.
const ORIGINS: usize = 100;

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let path = arguments.next().ok_or_else(|| io::Error::other("give the path of a repository"))?;
    let path = PathBuf::from(path).canonicalize()?;
    let config = GitConfig { refs: arguments.collect(), ..GitConfig::new(path.clone()) };
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    let surroundings = Surroundings { trust_content: TrustContent::Yes, ..Surroundings::default() };
    for _ in 0..ROUNDS {
        let git = Git::new(config.clone(), &surroundings).map_err(io::Error::other)?;
        let (begun, cpu) = (Instant::now(), cpu_seconds());
        let records = list(&git)?;
        let listed = begun.elapsed();
        let list_cpu = cpu_seconds() - cpu;
        let (begun, cpu) = (Instant::now(), cpu_seconds());
        let bytes = decode(&git, &records)?;
        let decoded = begun.elapsed();
        println!(
            "processor time: listed {list_cpu:.2} s, decoded {:.2} s; memory so far at most {}",
            cpu_seconds() - cpu,
            peak_memory()?,
        );
        ours = ours.min(listed + decoded);
        let begun = Instant::now();
        let count = cat_file(&path)?;
        theirs = theirs.min(begun.elapsed());
        println!(
            "{} objects, {} MB: listed in {listed:.2?}, decoded in {decoded:.2?} by {THREADS} threads; \
             git cat-file {:.2?} ({} MB with trees)",
            records.len(),
            bytes / 1_000_000,
            begun.elapsed(),
            count / 1_000_000,
        );
        origins(&git, &records)?;
    }
    println!(
        "ratio {:.2} (best of {ROUNDS}: {ours:.2?} against {theirs:.2?})",
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
    Ok(())
}

/// What this process has used, on all its threads: on a busy machine the wall tells little.
fn cpu_seconds() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

fn peak_memory() -> io::Result<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(peak.map_or_else(|| "unknown".to_owned(), |peak| peak.trim().to_owned()))
}

fn list(git: &Git) -> io::Result<Vec<UnitRecord>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let mut listing = git.list(&ObjectKey::default(), None).await.map_err(io::Error::other)?;
        let mut records = Vec::new();
        loop {
            let batch = listing.next_batch(1_000).await.map_err(io::Error::other)?;
            if batch.is_empty() {
                return Ok(records);
            }
            records.extend(batch);
        }
    })
}

fn decode(git: &Git, records: &[UnitRecord]) -> io::Result<u64> {
    let (next, bytes, failed) = (AtomicUsize::new(0), AtomicU64::new(0), Mutex::new(None));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut buffer = vec![0; 256 << 10];
                loop {
                    let from = next.fetch_add(TAKEN, Ordering::Relaxed);
                    if from >= records.len() {
                        return;
                    }
                    for record in &records[from..records.len().min(from + TAKEN)] {
                        match read(git, record, &mut buffer) {
                            Ok(len) => bytes.fetch_add(len, Ordering::Relaxed),
                            Err(error) => return *failed.lock().expect("nobody panics here") = Some(error),
                        };
                    }
                }
            });
        }
    });
    match failed.into_inner().expect("nobody panics here") {
        Some(error) => Err(error),
        None => Ok(bytes.into_inner()),
    }
}

fn read(git: &Git, record: &UnitRecord, buffer: &mut [u8]) -> io::Result<u64> {
    let object = ListedObject::in_container(&ObjectKey::default(), record);
    let mut opened = git.open(&object).and_then(Opened::into_bytes).map_err(io::Error::other)?;
    let mut len = 0;
    loop {
        match opened.reader.read(buffer)? {
            0 if len == record.size => return Ok(len),
            0 => return Err(io::Error::other("listed with another size than it has")),
            got => len += got as u64,
        }
    }
}

fn cat_file(path: &Path) -> io::Result<u64> {
    let mut child = Command::new("git")
        .arg("-C")
        .arg(path)
        .args(["cat-file", "--batch-all-objects", "--batch", "--unordered"])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut output = child.stdout.take().expect("its output was asked for");
    let (mut buffer, mut bytes) = (vec![0; 1 << 20], 0);
    loop {
        match output.read(&mut buffer)? {
            0 => break,
            got => bytes += got as u64,
        }
    }
    child.wait()?;
    Ok(bytes)
}

fn origins(git: &Git, records: &[UnitRecord]) -> io::Result<()> {
    let every = (records.len() / ORIGINS).max(1);
    let keys: Vec<ObjectKey> =
        records.iter().step_by(every).map(|record| ObjectKey::new(record.name.clone())).collect();
    let begun = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let found = runtime.block_on(git.origins(&keys, &Moved::default())).map_err(io::Error::other)?;
    println!("origins of {} of {} objects in {:.2?}", found.len(), keys.len(), begun.elapsed());
    Ok(())
}
