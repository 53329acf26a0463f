//! Counts which sequences of four bytes are common in the files of some folders, and prints the table of
//! `prefilter/grams.txt`: each line a share of all text as a power of the root of one half, then the grams of about
//! that share, in lower case, one after the other; `S` stands for a space, `T` for a tab and `N` for the end of a
//! line. Every folder counts the same, however large it is.
//!
//! `cargo run --release --example gram_shares -p domesday-engine -- <folder>...`

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The least share that is listed, as a power of the root of one half: what is rarer hardly costs anything.
const LEAST: i32 = 36;
/// Bytes of a line.
const LINE_MAX: usize = 110;

fn main() {
    let folders: Vec<String> = std::env::args().skip(1).collect();
    if folders.is_empty() {
        eprintln!("usage: gram_shares <folder>...");
        std::process::exit(2);
    }
    let mut shares: HashMap<[u8; 4], f64> = HashMap::new();
    for folder in &folders {
        let mut counts = HashMap::new();
        let mut total = 0;
        count(Path::new(folder), &mut counts, &mut total);
        for (gram, count) in counts {
            *shares.entry(gram).or_default() += count as f64 / total as f64 / folders.len() as f64;
        }
    }
    let mut lines: BTreeMap<i32, Vec<[u8; 4]>> = BTreeMap::new();
    for (gram, share) in shares {
        let power = (-2.0 * share.log2()).round() as i32;
        if power <= LEAST {
            lines.entry(power).or_default().push(gram);
        }
    }
    for (power, mut grams) in lines {
        grams.sort_unstable();
        for line in grams.chunks((LINE_MAX - 3) / 4) {
            let line = String::from_utf8_lossy(line.as_flattened());
            let line = line.replace(' ', "S").replace('\t', "T").replace('\n', "N");
            println!("{power} {line}");
        }
    }
}

/// Counts grams of what text is made of: what is printed, and what is between.
fn count(folder: &Path, counts: &mut HashMap<[u8; 4], u64>, total: &mut u64) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| !path.is_symlink()) {
        if path.is_dir() {
            count(&path, counts, total);
        } else if let Ok(bytes) = std::fs::read(&path) {
            *total += bytes.len() as u64;
            let bytes = bytes.to_ascii_lowercase();
            let grams = bytes.windows(4).filter_map(|gram| <[u8; 4]>::try_from(gram).ok());
            let is_text =
                |gram: &[u8; 4]| gram.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n'));
            grams.filter(is_text).for_each(|gram| *counts.entry(gram).or_default() += 1);
        }
    }
}
