//! What is in the tree's files: text with planted values, and archives of such text.
//!
//! All values are made up here and open nothing.

use std::io::{Cursor, Write};

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use zip::write::SimpleFileOptions;

use super::random::Random;

/// Without vowels, so that no key contains a word that marks it as an example.
const KEY_ALPHABET: &[u8] = b"BCDFGHJKLMNPQRSTVWXZ234567";
const TOKEN_ALPHABET: &[u8] = b"bcdfghjkmnpqrstvwxzBCDFGHJKLMNPQRSTVWXZ23456789";
const WORDS: &[&str] =
    &["ledger", "river", "stone", "quiet", "harbour", "meadow", "copper", "window", "seven", "linen"];
const TAR_BLOCK: usize = 512;

/// The rule whose values are counted: every planted one is found by it, and nothing else is.
pub const COUNTED_RULE: &str = "aws-access-key-id";

/// Makes contents, and counts the values of [`COUNTED_RULE`] in those that were made to be read.
pub struct Contents {
    random: Random,
    pub planted: u64,
}

impl Contents {
    pub fn new(seed: u64) -> Contents {
        Contents { random: Random::new(seed), planted: 0 }
    }

    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    pub fn prose(&mut self, lines: u64) -> String {
        let mut text = String::new();
        for _ in 0..lines {
            for _ in 0..8 {
                text.push_str(self.random.pick(WORDS));
                text.push(' ');
            }
            text.push('\n');
        }
        text
    }

    /// Prose with a counted value and some others in it.
    pub fn planted(&mut self) -> String {
        self.planted += 1;
        let (before, between) = (self.random.below(12), self.random.below(6));
        let mut text = self.prose(before);
        text.push_str(&format!("aws_access_key_id = AKIA{}\n", self.random.text(KEY_ALPHABET, 16)));
        text.push_str(&self.prose(between));
        text.push_str(&match self.random.below(4) {
            0 => format!("card: {}\n", self.card()),
            1 => format!("token = glpat-{}\n", self.random.text(TOKEN_ALPHABET, 20)),
            2 => format!("email: {}.{}@corp-mail.org\n", self.random.pick(WORDS), self.random.below(100_000)),
            _ => String::new(),
        });
        text
    }

    /// Short, and all of it values.
    pub fn dense(&mut self) -> String {
        self.planted += 1;
        let key = self.random.text(KEY_ALPHABET, 16);
        let token = self.random.text(TOKEN_ALPHABET, 20);
        let word = self.random.pick(WORDS);
        format!(
            "aws_access_key_id = AKIA{key}\ntoken = glpat-{token}\nemail: {word}@corp-mail.org\ncard: {}\n",
            self.card()
        )
    }

    /// A card number that passes its checksum.
    fn card(&mut self) -> String {
        let mut digits = vec![4];
        digits.extend((0..14).map(|_| self.random.below(10) as u32));
        let sum: u32 = digits
            .iter()
            .rev()
            .enumerate()
            .map(|(index, &digit)| if index % 2 == 0 { digit * 2 / 10 + digit * 2 % 10 } else { digit })
            .sum();
        digits.push((10 - sum % 10) % 10);
        let groups = digits.chunks(4).map(|group| group.iter().map(u32::to_string).collect::<String>());
        groups.collect::<Vec<_>>().join(" ")
    }

    pub fn gzip(&mut self) -> Result<Vec<u8>> {
        gzip(self.planted().as_bytes())
    }

    /// A zip with some planted entries.
    pub fn zip(&mut self) -> Result<Vec<u8>> {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for index in 0..1 + self.random.below(6) {
            zip.start_file(format!("inner/{index}.txt"), SimpleFileOptions::default())?;
            zip.write_all(self.planted().as_bytes())?;
        }
        Ok(zip.finish()?.into_inner())
    }

    /// A tar.gz with planted entries, and a zip among them if `nested`.
    pub fn tar_gz(&mut self, nested: bool) -> Result<Vec<u8>> {
        let mut tar = Vec::new();
        for index in 0..1 + self.random.below(6) {
            tar_entry(&mut tar, &format!("folder/{index}.txt"), self.planted().as_bytes());
        }
        if nested {
            tar_entry(&mut tar, "folder/inner.zip", &self.zip()?);
        }
        tar.extend([0; 2 * TAR_BLOCK]);
        gzip(&tar)
    }

    /// A zip that ends in the middle of its first entry. Nothing in it counts as planted.
    pub fn truncated_zip(&mut self) -> Result<Vec<u8>> {
        let planted = self.planted;
        let mut whole = self.zip()?;
        self.planted = planted;
        whole.truncate(60);
        Ok(whole)
    }

    /// A gzip whose second half is missing, with nothing planted in the first.
    pub fn truncated_gzip(&mut self) -> Result<Vec<u8>> {
        let mut whole = gzip(self.prose(400).as_bytes())?;
        whole.truncate(whole.len() / 2);
        Ok(whole)
    }
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// Appends a regular file in the ustar format.
fn tar_entry(tar: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut header = [0u8; TAR_BLOCK];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", content.len()).as_bytes());
    put(136, b"00000000000\0");
    // The checksum is computed as if its own field were blank.
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    tar.extend(header);
    tar.extend(content);
    tar.resize(tar.len().next_multiple_of(TAR_BLOCK), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_contents() {
        let make = |seed| {
            let mut contents = Contents::new(seed);
            (contents.planted(), contents.zip().unwrap(), contents.tar_gz(true).unwrap(), contents.planted)
        };
        assert_eq!(make(7), make(7));
        assert_ne!(make(7).0, make(8).0);
    }

    #[test]
    fn cards_pass_their_checksum() {
        let mut contents = Contents::new(1);
        for _ in 0..100 {
            let digits: Vec<u32> = contents.card().chars().filter_map(|c| c.to_digit(10)).collect();
            let doubled = |(index, &digit): (usize, &u32)| match index % 2 {
                1 => digit * 2 / 10 + digit * 2 % 10,
                _ => digit,
            };
            assert_eq!(digits.len(), 16);
            assert_eq!(digits.iter().rev().enumerate().map(doubled).sum::<u32>() % 10, 0, "{digits:?}");
        }
    }
}
