//! `bench large`: one object of many gigabytes, as a file and as archives of many entries and of one, and the memory
//! that they and smaller ones take.
//!
//! What is kept of text (automata, findings up to their cap) grows until all text was seen, and is flat then. So the
//! curve is printed, and judged where both objects have all of it.
//!
//! They are made of the tree's files, again and again, and removed afterwards.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::process::{self, alternate};
use super::table::Target::{AtLeast, AtMost};
use super::tree::scan_anew;
use super::{Rows, Setup};

pub const ABOUT: &str = "`domesday scan <file>` of one file of sources (`--gib`, 8 unless said otherwise), in turn with \
    `rg -uuu -c 'AKIA[0-9A-Z]{16}' <file>`; and of zip archives of a quarter of that size, deflated, with an entry per \
    source and with one entry. Beside each, the memory for an eighth, a quarter and half of the size: the same text comes \
    again and again, and half of it has all there is.";

/// Sizes at which memory is measured, as shares of the whole.
const CURVE: [(&str, f64); 4] =
    [("an eighth", 0.125), ("a quarter", 0.25), ("half", 0.5), ("the whole", 1.0)];
/// How much more memory the whole may take than half.
const GROWTH_MAX: f64 = 1.1;
/// Size of an archive, as a share of the file's.
const ARCHIVE_SHARE: f64 = 0.25;
/// The fastest: archives are made here to be read.
const DEFLATE_LEVEL: i64 = 1;

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<()> {
    let bench = Bench { setup, sources: Sources::below(setup.tree()?)? };
    let len = (setup.options.gib * f64::from(1 << 30)) as u64;
    bench.file(len, rows)?;
    let len = (len as f64 * ARCHIVE_SHARE) as u64;
    bench.archive("zip of many entries", len, many_entries, rows)?;
    bench.archive("zip of one entry", len, one_entry, rows)
}

struct Bench<'s> {
    setup: &'s Setup,
    sources: Sources,
}

/// A file that goes when it is done with.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Bench<'_> {
    fn file(&self, len: u64, rows: &mut Rows) -> Result<()> {
        let (folder, binary) = (&self.setup.folder, self.setup.binary()?);
        let file = Temporary(folder.join("large.txt"));
        let mut out = BufWriter::new(File::create(&file.0)?);
        self.sources.write(len, |bytes| out.write_all(bytes))?;
        out.flush()?;
        // Some rules are left out where a name says that it is source code.
        let named = Temporary(folder.join("large.c"));
        // A run that was cut short has left it.
        drop(Temporary(named.0.clone()));
        std::fs::hard_link(&file.0, &named.0)?;
        let ripgrep = process::peer("rg");
        let ours = || scan_anew(folder, binary, &file.0, &[]);
        let as_source = || scan_anew(folder, binary, &named.0, &[]);
        let floor = ripgrep.as_ref().map(|rg| || process::ripgrep(folder, rg, &file.0));
        let contenders = [Some(&ours as _), Some(&as_source as _), floor.as_ref().map(|run| run as _)];
        let [ours, as_source, floor] = alternate(self.setup.options.rounds, contenders)?;
        rows.add("file", len as f64 / f64::from(1 << 30), "GiB");
        rows.add("file, rate", len as f64 / 1e6 / ours.seconds(), "MB/s");
        rows.add("file named `.c`, rate", len as f64 / 1e6 / as_source.seconds(), "MB/s");
        match floor.last() {
            None => rows.missing("file, ripgrep", "rg is not installed"),
            Some(_) => {
                rows.add("file, ripgrep's rate", len as f64 / 1e6 / floor.seconds(), "MB/s");
                for (name, ours) in [("file", &ours), ("file named `.c`", &as_source)] {
                    let share = floor.seconds() / ours.seconds();
                    rows.judge(format!("{name}, of ripgrep's rate"), share, "times", AtLeast(1.0 / 3.0));
                }
            }
        }
        // One run of each: the most of several is more than one takes.
        let mut peaks = [ours.last().map_or(0, |ran| ran.peak_kib); CURVE.len()];
        for ((_, share), peak) in CURVE.iter().zip(&mut peaks).rev().skip(1) {
            File::options().write(true).open(&file.0)?.set_len((len as f64 * share) as u64)?;
            *peak = scan_anew(folder, binary, &file.0, &[])?.peak_kib;
        }
        memory("file", peaks, rows);
        Ok(())
    }

    fn archive(
        &self,
        name: &str,
        len: u64,
        make: impl Fn(&Sources, &Path, u64) -> Result<Made>,
        rows: &mut Rows,
    ) -> Result<()> {
        let (folder, binary) = (&self.setup.folder, self.setup.binary()?);
        let file = Temporary(folder.join("large.zip"));
        let mut peaks = [0; CURVE.len()];
        for ((_, share), peak) in CURVE[..CURVE.len() - 1].iter().zip(&mut peaks) {
            make(&self.sources, &file.0, (len as f64 * share) as u64)?;
            *peak = scan_anew(folder, binary, &file.0, &[])?.peak_kib;
        }
        let made = make(&self.sources, &file.0, len)?;
        let whole = scan_anew(folder, binary, &file.0, &[])?;
        peaks[CURVE.len() - 1] = whole.peak_kib;
        rows.add(name, std::fs::metadata(&file.0)?.len() as f64 / f64::from(1 << 30), "GiB");
        rows.add(format!("{name}, unpacked"), made.bytes as f64 / f64::from(1 << 30), "GiB");
        rows.add(format!("{name}, entries"), made.entries as f64, "entries");
        let rate = made.bytes as f64 / 1e6 / whole.wall.as_secs_f64();
        rows.add(format!("{name}, rate unpacked"), rate, "MB/s");
        memory(name, peaks, rows);
        Ok(())
    }
}

/// The curve in the order of sizes, and its last step.
fn memory(name: &str, peaks_kib: [u64; CURVE.len()], rows: &mut Rows) {
    for ((share, _), peak) in CURVE.iter().zip(peaks_kib) {
        rows.add(format!("{name}, memory for {share}"), peak as f64 / 1024.0, "MiB");
    }
    let [.., half, whole] = peaks_kib;
    let growth = whole as f64 / half as f64;
    rows.judge(format!("{name}, memory of the whole beside half"), growth, "times", AtMost(GROWTH_MAX));
}

/// What is in an archive.
struct Made {
    entries: u64,
    bytes: u64,
}

fn many_entries(sources: &Sources, path: &Path, len: u64) -> Result<Made> {
    let (mut zip, mut made) = (writer(path)?, Made { entries: 0, bytes: 0 });
    sources.each(|source, bytes| {
        // The same source comes again and again, and no two entries may have one name.
        let name = format!("{}/{}", made.entries, source.display());
        zip.start_file(name, options())?;
        zip.write_all(bytes)?;
        made.entries += 1;
        made.bytes += bytes.len() as u64;
        Ok(std::fs::metadata(path)?.len() < len)
    })?;
    zip.finish()?.flush()?;
    Ok(made)
}

fn one_entry(sources: &Sources, path: &Path, len: u64) -> Result<Made> {
    let (mut zip, mut made) = (writer(path)?, Made { entries: 1, bytes: 0 });
    zip.start_file("sources.txt", options().large_file(true))?;
    sources.each(|_, bytes| {
        zip.write_all(bytes)?;
        made.bytes += bytes.len() as u64;
        Ok(std::fs::metadata(path)?.len() < len)
    })?;
    zip.finish()?.flush()?;
    Ok(made)
}

fn writer(path: &Path) -> Result<ZipWriter<BufWriter<File>>> {
    let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(ZipWriter::new(BufWriter::new(file)))
}

fn options() -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(DEFLATE_LEVEL))
}

/// The files of a tree, as material for something larger.
pub struct Sources {
    root: PathBuf,
    files: Vec<PathBuf>,
}

impl Sources {
    /// All ordinary files below a folder, in order.
    pub fn below(root: &Path) -> Result<Sources> {
        let (mut files, mut waiting) = (Vec::new(), vec![root.to_owned()]);
        while let Some(folder) = waiting.pop() {
            for entry in
                std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?
            {
                let entry = entry?;
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    waiting.push(entry.path());
                } else if kind.is_file() && entry.metadata()?.len() > 0 {
                    files.push(entry.path());
                }
            }
        }
        files.sort();
        if files.is_empty() {
            bail!("{} has nothing in it to make large objects of", root.display());
        }
        Ok(Sources { root: root.to_owned(), files })
    }

    /// Goes through the files, again and again, as long as `visit` says so.
    fn each(&self, mut visit: impl FnMut(&Path, &[u8]) -> Result<bool>) -> Result<()> {
        loop {
            for file in &self.files {
                let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
                if !visit(file.strip_prefix(&self.root).unwrap_or(file), &bytes)? {
                    return Ok(());
                }
            }
        }
    }

    /// Exactly so many bytes of them, one after the other.
    pub fn write(&self, len: u64, mut sink: impl FnMut(&[u8]) -> io::Result<()>) -> Result<()> {
        let mut left = len;
        self.each(|_, bytes| {
            let now = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            sink(&bytes[..now])?;
            left -= now as u64;
            Ok(left > 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::random::Random;

    fn sources(texts: [&[u8]; 2]) -> (tempfile::TempDir, Sources) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        for (name, text) in [("a", texts[0]), ("b/c", texts[1]), ("empty", b"")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let sources = Sources::below(folder.path()).unwrap();
        (folder, sources)
    }

    #[test]
    fn sources_are_repeated_up_to_the_byte() {
        let (_folder, sources) = sources([b"one ", b"two "]);
        let mut text = Vec::new();
        sources.write(14, |bytes| text.write_all(bytes)).unwrap();
        assert_eq!(text, b"one two one tw");
    }

    #[test]
    fn archives_are_as_large_as_asked_for_and_can_be_read() {
        // What can hardly be packed fills an archive soonest.
        let mut random = Random::new(1);
        let noise: Vec<u8> = (0..30_000).map(|_| random.next() as u8).collect();
        let (folder, sources) = sources([&noise, &noise[7..]]);
        let path = folder.path().join("x.zip");
        for (make, is_many) in [(many_entries as fn(&Sources, &Path, u64) -> _, true), (one_entry, false)] {
            let made = make(&sources, &path, 100_000).unwrap();
            assert!(std::fs::metadata(&path).unwrap().len() >= 100_000);
            let mut archive = zip::ZipArchive::new(File::open(&path).unwrap()).unwrap();
            assert_eq!((archive.len() as u64, is_many), (made.entries, made.entries > 1));
            let mut bytes = 0;
            for index in 0..archive.len() {
                bytes += io::copy(&mut archive.by_index(index).unwrap(), &mut io::sink()).unwrap();
            }
            assert_eq!(bytes, made.bytes);
        }
    }

    #[test]
    fn a_tree_of_nothing_is_refused() {
        assert!(Sources::below(tempfile::tempdir().unwrap().path()).is_err());
    }
}
