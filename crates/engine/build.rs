//! Stamps the rules and the code that reads them, so that `src/rules/compiled.rs` can tell whether what was compiled
//! from them once still holds. It makes nothing else: that would take a compiled engine.

use std::fs;
use std::path::{Path, PathBuf};

/// What the outcome follows from.
const FOLDERS: [(&str, &str); 2] = [("rules", "toml"), ("src/rules", "rs")];

/// The outcome, behind the stamp it was made with.
const COMPILED: &str = "rules/compiled.bin";

fn main() {
    let mut files = Vec::new();
    for (folder, extension) in FOLDERS {
        println!("cargo::rerun-if-changed={folder}");
        gather(Path::new(folder), extension, &mut files);
    }
    files.sort();
    let mut stamp = Fnv::new();
    for file in files {
        stamp.add(file.as_os_str().as_encoded_bytes());
        stamp.add(&fs::read(&file).expect("a file that was just listed can be read"));
    }
    let stamp = format!("{:016x}", stamp.0);
    if !fs::read(COMPILED).is_ok_and(|compiled| compiled.starts_with(stamp.as_bytes())) {
        println!(
            "cargo::warning={COMPILED} is stale, so that rules load slowly: see src/rules/compiled.rs for how to \
             write it anew"
        );
    }
    println!("cargo::rustc-env=RULES_STAMP={stamp}");
}

fn gather(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the crate's folders can be listed") {
        let path = entry.expect("the crate's folders can be listed").path();
        if path.is_dir() {
            gather(&path, extension, files);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
}

/// FNV-1a: no dependency, the same everywhere, and good enough to notice an edit.
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        let len = (bytes.len() as u64).to_le_bytes();
        for &byte in len.iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
