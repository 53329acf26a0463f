//! `bench store`: what the book costs in a scan of the tree: its share of the time on processors, and the rows and
//! bytes that are written per object. The scan says so itself.

use anyhow::{Context, Result};

use super::process::median;
use super::table::Target::AtMost;
use super::tree::scan_anew;
use super::{Rows, Setup};

pub const ABOUT: &str = "`domesday scan <tree> --state <new> --timings`. The share is the time on processors of the book's \
    writer and readers, of that of the whole process. Bytes are those handed to the system: the write-ahead log, and the \
    book when it is checkpointed.";

/// Of the whole scan's time, in per cent.
const SHARE_MAX: f64 = 15.0;

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<()> {
    let (binary, tree) = (setup.binary()?, setup.tree()?);
    let (mut shares, mut told) = (Vec::new(), None);
    for _ in 0..setup.options.rounds {
        let ran = scan_anew(&setup.folder, binary, tree, &["--timings"])?;
        let book = Book::read(&ran.errors).with_context(|| format!("--timings says `{}`", ran.errors))?;
        let cpu = ran.cpu.as_secs_f64();
        shares.push(100.0 * book.seconds / cpu);
        told = Some((book, cpu));
    }
    let (book, cpu) = told.context("nothing was run")?;
    rows.add("whole scan, time on processors", cpu, "s");
    rows.add("book, time on processors", book.seconds, "s");
    rows.judge("book, share", median(shares), "%", AtMost(SHARE_MAX));
    rows.add("written per object", book.rows, "rows");
    match book.bytes {
        Some(bytes) => rows.add("written per object", bytes, "bytes"),
        None => rows.missing("written per object, bytes", "the system does not tell"),
    }
    Ok(())
}

/// What `--timings` says of the book.
#[derive(PartialEq, Debug)]
pub struct Book {
    /// On processors.
    pub seconds: f64,
    /// Objects that were listed.
    pub objects: f64,
    /// Per object.
    rows: f64,
    bytes: Option<f64>,
}

impl Book {
    pub fn read(text: &str) -> Option<Book> {
        let after = |start: &str| text.lines().find_map(|line| Some(line.split_once(start)?.1.trim()));
        let number = |text: &str| text.split(' ').next()?.parse::<f64>().ok();
        let per_object = |what: &str| number(after(what)?.split_once(" written, ")?.1);
        Some(Book {
            seconds: number(after("the book: ")?)?,
            objects: number(after("on processors, for ")?)?,
            rows: per_object("  rows ")?,
            bytes: per_object("  bytes "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_are_understood() {
        let text = "domesday: 1.7 s in all, by the clock\ndomesday:   store     120 ms\n\
            domesday: the book: 0.131 s on processors, for 78642 objects\ndomesday:   rows      101000 written, 1.28 per object\n\
            domesday:   bytes     22000000 written, 279.73 per object\n";
        let expected = Book { seconds: 0.131, objects: 78_642.0, rows: 1.28, bytes: Some(279.73) };
        assert_eq!(Book::read(text), Some(expected));
        assert_eq!(Book::read(&text.replace("bytes", "octets")).unwrap().bytes, None);
        assert_eq!(Book::read("domesday: 1.7 s in all"), None);
    }
}
