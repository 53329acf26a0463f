//! Counts how common each byte is in the files of a folder, and prints the table of `prefilter/shares.rs`.
//!
//! `cargo run --release --example byte_shares -p domesday-engine -- <folder>`

use std::path::Path;

fn main() {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: byte_shares <folder>");
        std::process::exit(2);
    };
    let mut counts = [0u64; 128];
    count(Path::new(&folder), &mut counts);
    let total = counts.iter().sum::<u64>().max(1);
    for row in counts.chunks(16) {
        let shares: Vec<String> = row.iter().map(|count| (count * 1_000_000 / total).to_string()).collect();
        println!("    {},", shares.join(", "));
    }
}

/// Bytes beyond ASCII count with those that share their low bits, as in the tables of the prefilter.
fn count(folder: &Path, counts: &mut [u64; 128]) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| !path.is_symlink()) {
        if path.is_dir() {
            count(&path, counts);
        } else if let Ok(bytes) = std::fs::read(&path) {
            bytes.iter().for_each(|byte| counts[usize::from(byte & 0x7f)] += 1);
        }
    }
}
