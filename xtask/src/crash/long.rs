//! One file that is far too large for the time its reader lives: `cargo xtask crash --source long`.
//!
//! The file is sparse: zeros, and between them lines, some with values, around every place where a checkpoint may be. It
//! is scanned once undisturbed, and then by one process after the other, each of which is killed when it has added some
//! checkpoints, somewhere on the way to the next one. In the end it must be done, with the same findings at the same
//! lines; the processes together may have read a fifth more than the file has; and none may need more memory than any
//! file asks for.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rusqlite::{Connection, OpenFlags};

use super::content::{COUNTED_RULE, Contents};
use super::random::Random;
use super::report::Report;
use super::{KEY_FILE, book, remove, report_path};
use crate::workspace::{Build, Workspace};

const MIB: u64 = 1 << 20;
/// Values at each place that has some: all of them fit into what is kept of one object.
const VALUES: usize = 1;
/// The least distance between checkpoints, in MiB: there are values up to so far behind each.
const DISTANCE_MIN: u64 = 4;
/// Lines at the beginning, which show the file to be text.
const FIRST_LINES: u64 = 1_000;
/// Checkpoints that a process adds before it is killed.
const CHECKPOINTS_MIN: u64 = 6;
const CHECKPOINTS_MAX: u64 = 14;
/// Bytes read, of all processes, for each 100 of the file, at most.
const READ_PERCENT_MAX: u64 = 120;
/// Memory of a process, in KiB, at most: what it needs for any file, and none of this one.
const MEMORY_MAX: u64 = 400 << 10;
/// How old a file must be before its marks are trusted.
const AGE_MIN: Duration = Duration::from_secs(3);
/// The pause between two looks at a process: it is killed soon after what it is killed for.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// A process that takes longer is stuck.
const HANG: Duration = Duration::from_secs(600);

pub struct Options {
    pub seed: u64,
    /// Size of the file.
    pub mib: u64,
    /// Between checkpoints.
    pub distance_mib: u64,
}

impl Options {
    /// A small one that takes seconds.
    pub fn short() -> Options {
        Options { seed: 1, mib: 2 << 10, distance_mib: 16 }
    }

    /// As people have them, with the distance that the program has by itself.
    pub fn long(seed: u64) -> Options {
        Options { seed, mib: 20 << 10, distance_mib: 256 }
    }

    /// Bytes between checkpoints.
    fn distance(&self) -> u64 {
        self.distance_mib * MIB
    }
}

pub fn run(options: &Options) -> Result<()> {
    if options.distance_mib < DISTANCE_MIN {
        bail!("--distance-mib takes {DISTANCE_MIN} or more: values would lie on one another");
    }
    let begun = Instant::now();
    let workspace = Workspace::load()?;
    let folder = workspace.target.join("crash-long");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let binary = workspace.build(&folder, Build::WithFailpoints)?;
    let outcome = prove(&binary, &folder, options);
    // It may be sparse; its copies need not be.
    let _ = fs::remove_file(file_path(&folder));
    println!("crash: long: {} s in all", begun.elapsed().as_secs());
    outcome
}

fn file_path(folder: &Path) -> PathBuf {
    folder.join("long.txt")
}

fn prove(binary: &Path, folder: &Path, options: &Options) -> Result<()> {
    let file = file_path(folder);
    let planted = make(&file, options)?;
    let scan = Scan { binary, file: &file, distance: options.distance() };
    let (reference, state) = (folder.join("reference"), folder.join("state"));
    for state in [&reference, &state] {
        remove(state)?;
    }
    let whole = scan.start(&reference)?.end()?;
    let expected = Report::read(&report_path(&reference), whole.code)?;
    let found = expected.count_of_rule(COUNTED_RULE);
    if found != planted {
        bail!("the undisturbed scan found {found} of {planted} values of {COUNTED_RULE}");
    }
    fs::create_dir(&state)?;
    fs::copy(reference.join(KEY_FILE), state.join(KEY_FILE)).context("cannot copy the key")?;

    let mut random = Random::new(options.seed);
    let (mut kills, mut read, mut memory) = (0, 0, whole.memory);
    let ended = loop {
        let more = CHECKPOINTS_MIN + random.below(1 + CHECKPOINTS_MAX - CHECKPOINTS_MIN);
        let ended = scan.start(&state)?.end_after(&state, more, random.fraction())?;
        (read, memory) = (read + ended.read, memory.max(ended.memory));
        if !ended.was_killed {
            break ended;
        }
        kills += 1;
    };
    let size = options.mib * MIB;
    let percent = read * 100 / size;
    println!(
        "crash: long: {} MiB, {kills} kills, {found} findings; read {percent} % ({} % undisturbed), {} MiB of memory \
         at most ({} undisturbed)",
        options.mib,
        whole.read * 100 / size,
        memory >> 10,
        whole.memory >> 10,
    );
    let difference = Report::read(&report_path(&state), ended.code)?.difference(&expected);
    if !difference.is_none() {
        bail!("findings differ from those of the undisturbed scan:\n  {}", difference.lines.join("\n  "));
    }
    let offences = book::offences(&state)?;
    if !offences.is_empty() {
        bail!("the book is not whole:\n  {}", offences.join("\n  "));
    }
    // One process may add several while it is not looked at.
    let least = size / options.distance() / (2 * CHECKPOINTS_MAX);
    if kills < least {
        bail!("only {kills} kills, of {least} at least");
    }
    if percent > READ_PERCENT_MAX {
        bail!("{percent} % of the file were read");
    }
    if memory > MEMORY_MAX {
        bail!("{} MiB of memory", memory >> 10);
    }
    Ok(())
}

/// Makes the file; values of the counted rule in it.
fn make(path: &Path, options: &Options) -> Result<u64> {
    let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    let (size, mut contents) = (options.mib * MIB, Contents::new(options.seed));
    file.set_len(size)?;
    let mut random = Random::new(options.seed);
    // A checkpoint is in the first piece that ends behind its distance; a piece has half a MiB.
    let places = (0..size / options.distance()).flat_map(|number| {
        let at = number * options.distance();
        [at, at + MIB / 4, at + MIB / 2, at + 3 * MIB / 4, at + MIB, at + 2 * MIB].into_iter()
    });
    file.write_all_at(contents.prose(FIRST_LINES).as_bytes(), 0)?;
    for at in places {
        if at + MIB > size {
            continue;
        }
        let text: String = (0..VALUES).map(|_| contents.planted()).collect();
        // Behind the first lines, and not always at the same place of a piece.
        file.write_all_at(text.as_bytes(), at + MIB / 8 + random.below(MIB / 16))?;
    }
    let planted = contents.planted;
    file.sync_all()?;
    // Whoever opens it before its marks are old enough leaves no checkpoints.
    wait(AGE_MIN);
    Ok(planted)
}

struct Scan<'a> {
    binary: &'a Path,
    file: &'a Path,
    distance: u64,
}

impl Scan<'_> {
    fn start(&self, state: &Path) -> Result<Running> {
        let mut command = Command::new(self.binary);
        command.args(["scan", "--quiet", "--rescan", "--format", "json", "--output"]).arg(report_path(state));
        command.arg("--state").arg(state).arg(self.file);
        command.env("DOMESDAY_CHECKPOINT_DISTANCE", self.distance.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().context("cannot start the binary")?;
        Ok(Running { child, begun: Instant::now(), ended: Ended::default() })
    }
}

/// How one process ended, and what it took.
#[derive(Default)]
struct Ended {
    code: i32,
    was_killed: bool,
    /// Bytes that it asked for, of whatever it read.
    read: u64,
    /// The most memory that it had at once, in KiB.
    memory: u64,
}

struct Running {
    child: Child,
    begun: Instant,
    ended: Ended,
}

impl Running {
    fn end(self) -> Result<Ended> {
        self.watch(|| false)
    }

    /// Kills it when it has added so many checkpoints and come this fraction of the way to the next one, as far as time
    /// tells; unless it ends before.
    fn end_after(self, state: &Path, more: u64, fraction: f64) -> Result<Ended> {
        let (before, begun) = (checkpoints(state), self.begun);
        let mut until = None;
        self.watch(|| {
            if until.is_none() && checkpoints(state) >= before + more {
                until = Some(Instant::now() + begun.elapsed().mul_f64(fraction / more as f64));
            }
            until.is_some_and(|until| Instant::now() >= until)
        })
    }

    fn watch(mut self, mut is_to_end: impl FnMut() -> bool) -> Result<Ended> {
        loop {
            self.measure();
            if let Some(status) = self.child.try_wait().context("cannot wait for the binary")? {
                self.ended.code = status.code().context("the binary ended by a signal that nobody sent")?;
                return Ok(self.ended);
            }
            if is_to_end() {
                self.measure();
                self.child.kill().context("cannot kill the binary")?;
                let status = self.child.wait().context("cannot wait for the binary")?;
                self.ended.was_killed = status.code().is_none();
                self.ended.code = status.code().unwrap_or_default();
                return Ok(self.ended);
            }
            if self.begun.elapsed() > HANG {
                self.child.kill().context("cannot kill the binary")?;
                bail!("a scan did not end within {} s", HANG.as_secs());
            }
            wait(LOOK_EVERY);
        }
    }

    /// What the system says of it, as long as it is there.
    fn measure(&mut self) {
        let of = |file: &str, name: &str| {
            let text = fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        self.ended.read = self.ended.read.max(of("io", "rchar:").unwrap_or(0));
        self.ended.memory = self.ended.memory.max(of("status", "VmHWM:").unwrap_or(0));
    }
}

fn wait(time: Duration) {
    let (_never, nothing) = mpsc::channel::<()>();
    let _ = nothing.recv_timeout(time);
}

/// Checkpoints in the book; 0 while it cannot be read.
fn checkpoints(state: &Path) -> u64 {
    let count = || -> Result<i64> {
        let book = Connection::open_with_flags(state.join("book.sqlite"), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        Ok(book.query_row("SELECT count(*) FROM object_checkpoints", [], |row| row.get(0))?)
    };
    count().map_or(0, i64::cast_unsigned)
}
