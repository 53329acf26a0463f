//! Makes a repository with a long history for measurements: the sources below a folder are committed, and
//! then edited over and over, a few files per commit, as releases of a large package would.
//!
//! `cargo run --release -p domesday-connectors --example git_history -- <sources> <new repository> [blobs]`
//!
//! The same sources give the same repository. `git` itself packs it.

use std::ffi::OsStr;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// Files of the first commit, at most.
const FILES_MAX: usize = 3_000;
/// What names of files that are taken end in.
const EXTENSIONS: [&str; 3] = ["rs", "c", "h"];
/// Files larger than this are not taken, in bytes.
const FILE_LEN_MAX: u64 = 200_000;
/// Blobs that the history has, unless told otherwise.
const BLOBS: usize = 57_000;
const EDITS_PER_COMMIT: usize = 8;
const BEGUN: u64 = 1_500_000_000;

fn main() -> io::Result<()> {
    let mut arguments = env::args_os().skip(1);
    let (Some(sources), Some(repository)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("give a folder of sources and the repository to make"));
    };
    let blobs = arguments.next().and_then(|n| n.to_str()?.parse().ok()).unwrap_or(BLOBS);
    let repository = PathBuf::from(repository);
    run(Command::new("git").args(["init", "-q", "--bare"]).arg(&repository))?;
    let mut files = Vec::new();
    collect(Path::new(&sources), &mut files)?;
    let mut import = Command::new("git")
        .arg("-C")
        .arg(&repository)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()?;
    let stream = import.stdin.take().expect("its input was asked for");
    write_history(&mut BufWriter::with_capacity(1 << 20, stream), files, blobs)?;
    if !import.wait()?.success() {
        return Err(io::Error::other("git fast-import failed"));
    }
    run(Command::new("git").arg("-C").arg(&repository).args(["repack", "-adfq"]))
}

fn run(command: &mut Command) -> io::Result<()> {
    if command.status()?.success() { Ok(()) } else { Err(io::Error::other(format!("{command:?} failed"))) }
}

/// Source files below a folder, in the order of their names.
fn collect(folder: &Path, files: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        if files.len() >= FILES_MAX {
            return Ok(());
        }
        if kind.is_dir() {
            collect(&path, files)?;
        } else if kind.is_file()
            && path
                .extension()
                .and_then(OsStr::to_str)
                .is_some_and(|extension| EXTENSIONS.contains(&extension))
            && entry.metadata()?.len() <= FILE_LEN_MAX
            && let Some(name) = path.to_str()
        {
            files.push((name.trim_start_matches('/').to_owned(), fs::read(&path)?));
        }
    }
    Ok(())
}

fn write_history(out: &mut impl Write, mut files: Vec<(String, Vec<u8>)>, blobs: usize) -> io::Result<()> {
    let mut random = Random(42);
    commit(out, 0)?;
    for (path, content) in &files {
        modify(out, path, content)?;
    }
    let edits = if files.is_empty() { 0 } else { blobs.saturating_sub(files.len()) };
    for edit in 0..edits {
        if edit % EDITS_PER_COMMIT == 0 {
            commit(out, 1 + edit / EDITS_PER_COMMIT)?;
        }
        let at = random.below(files.len());
        let (path, content) = &mut files[at];
        change(content, edit, &mut random);
        modify(out, path, content)?;
    }
    out.flush()
}

fn commit(out: &mut impl Write, number: usize) -> io::Result<()> {
    let message = format!("release {number}\n");
    let time = BEGUN + 3_600 * number as u64;
    writeln!(out, "commit refs/heads/main\ncommitter A <a@example.com> {time} +0000")?;
    writeln!(out, "data {}\n{message}", message.len())
}

fn modify(out: &mut impl Write, path: &str, content: &[u8]) -> io::Result<()> {
    writeln!(out, "M 100644 inline {path}\ndata {}", content.len())?;
    out.write_all(content)?;
    writeln!(out)
}

/// Puts a line somewhere, and takes one away elsewhere.
fn change(content: &mut Vec<u8>, number: usize, random: &mut Random) {
    let at = random.below(content.len() + 1);
    let start = content[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    let line = format!("// edit {number}: {:016x}\n", random.next());
    content.splice(start..start, line.bytes());
    let at = random.below(content.len());
    if let Some(len) = content[at..].iter().position(|&byte| byte == b'\n') {
        content.drain(at..at + len);
    }
}

/// The same numbers every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}
