//! `bench hostile`: how slow a text can be made, per byte, beside source code. Generated texts and those that a search
//! found go through the engine alone (example `texts`), so that no start-up is counted; lines of 100 MB and a long
//! column go through the binary, because what is slow about them may lie outside of the engine.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::large::Sources;
use super::process::alternate;
use super::table::Target::AtMost;
use super::table::named_value;
use super::tree::scan_anew;
use super::{Rows, Setup};

pub const ABOUT: &str = "`cargo run --release --example texts -p domesday-engine -- rates <tree> <seconds> <seed>`: texts \
    of 4 MiB, in chunks as the scan core has them, and the slowest that the search found. Then `domesday scan` of \
    files of 300 MB: sources, the same in lines of 100 MB, and one column of mail addresses. A factor is the time per \
    byte beside that of sources.";

const TEXTS: &[&str] = &["--package", "domesday-engine", "--example", "texts"];
/// How many times as long as sources a text may take.
const FACTOR_MAX: f64 = 20.0;
/// Bytes of the binary's files.
const FILE_LEN: u64 = 300_000_000;
/// Bytes of a line in one of them.
const LINE_LEN: u64 = 100_000_000;

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<()> {
    let tree = setup.tree()?.to_string_lossy().into_owned();
    let (seconds, seed) = (setup.options.search.to_string(), setup.options.seed.to_string());
    let printed = setup.example(TEXTS, &["rates", &tree, &seconds, &seed])?;
    for line in printed.lines() {
        let Some((name, value, rest)) = named_value(line) else { bail!("the example says `{line}`") };
        match (name.strip_suffix("_factor"), rest.split_once(": ")) {
            (Some("found"), Some((unit, text))) => {
                rows.judge(format!("found by search: {text}"), value, unit, AtMost(FACTOR_MAX));
            }
            (Some(name), _) => rows.judge(name.replace('_', " "), value, rest, AtMost(FACTOR_MAX)),
            (None, _) => rows.add(name.replace('_', " "), value, rest),
        }
    }
    long_lines(setup, rows)
}

fn long_lines(setup: &Setup, rows: &mut Rows) -> Result<()> {
    let (binary, folder) = (setup.binary()?, &setup.folder);
    let files = ["sources.txt", "lines.txt", "column.csv"].map(|name| folder.join(name));
    let written = write(setup.tree()?, &files);
    let [sources, lines, column] = &files;
    let scan = |file| move || scan_anew(folder, binary, file, &[]);
    let (sources, lines, column) = (scan(sources), scan(lines), scan(column));
    let measured = written
        .and_then(|()| alternate(setup.options.rounds, [Some(&sources as _), Some(&lines), Some(&column)]));
    for file in &files {
        // Not all of them are there if the disk was full.
        let _ = std::fs::remove_file(file);
    }
    let [sources, lines, column] = measured?;
    rows.add("file of sources", FILE_LEN as f64 / 1e6 / sources.seconds(), "MB/s");
    for (name, series) in [("lines of 100 MB", lines), ("one column of mail addresses", column)] {
        rows.add(format!("file of {name}"), FILE_LEN as f64 / 1e6 / series.seconds(), "MB/s");
        rows.judge(
            format!("file of {name}"),
            series.seconds() / sources.seconds(),
            "times",
            AtMost(FACTOR_MAX),
        );
        rows.add(format!("file of {name}, memory"), series.peak_mib(), "MiB");
    }
    Ok(())
}

fn write(tree: &Path, [sources, lines, column]: &[std::path::PathBuf; 3]) -> Result<()> {
    let open = |path: &Path| -> Result<BufWriter<File>> {
        let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(BufWriter::new(file))
    };
    let (mut as_is, mut in_lines, mut written) = (open(sources)?, open(lines)?, 0);
    Sources::below(tree)?.write(FILE_LEN, |bytes| {
        as_is.write_all(bytes)?;
        let mut joined: Vec<u8> =
            bytes.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect();
        let end = written + bytes.len() as u64;
        if let Some(last) = joined.last_mut()
            && end / LINE_LEN > written / LINE_LEN
        {
            *last = b'\n';
        }
        written = end;
        in_lines.write_all(&joined)
    })?;
    let (mut column, mut number) = (open(column)?, 0u64);
    column.write_all(b"email\n")?;
    for line in (0..FILE_LEN).step_by(28) {
        // Each 28 bytes long with its end, and none like the one before.
        number = number.wrapping_add(line).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        writeln!(column, "user{:09}@corp-mail.org", (number >> 33) % 1_000_000_000)?;
    }
    Ok([as_is, in_lines, column].into_iter().try_for_each(|mut file| file.flush())?)
}
