//! What can be asked of `cargo xtask bench`: which benchmarks, and how large.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::{ALL, fleet};

#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Names of benchmarks; all when none is named.
    pub only: Vec<String>,
    /// The tree that is scanned; else that of Linux in the cache folder, else a generated one.
    pub tree: Option<PathBuf>,
    /// Rounds of each comparison; the median counts.
    pub rounds: u64,
    /// GiB of the large file. Archives are a quarter of it.
    pub gib: f64,
    /// Million objects of the longest listing.
    pub millions: u64,
    /// Rows of the tables of databases.
    pub rows: u64,
    /// Parts of the fleet's benchmark; all when none is named.
    pub parts: Vec<String>,
    /// Seconds for which slow texts are searched; 0 for not at all.
    pub search: u64,
    /// Of the search.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            only: Vec::new(),
            tree: None,
            rounds: 5,
            gib: 8.0,
            millions: 10,
            rows: 5_000_000,
            parts: Vec::new(),
            search: 60,
            seed: 1,
        }
    }
}

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Options> {
        let mut options = Options::default();
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            if ALL.iter().any(|benchmark| benchmark.name == word) {
                options.only.push(word.clone());
                continue;
            }
            let value = || rest.clone().next().with_context(|| format!("{word} needs a value"));
            let number = || -> Result<u64> {
                let value = value()?;
                value.parse().with_context(|| format!("{word} needs a number, not `{value}`"))
            };
            match word.as_str() {
                "--tree" => options.tree = Some(value()?.into()),
                "--rounds" => options.rounds = number()?.max(1),
                "--gib" => options.gib = gib(value()?)?,
                "--millions" => options.millions = number()?.max(1),
                "--rows" => options.rows = number()?.max(1),
                "--search" => options.search = number()?,
                "--seed" => options.seed = number()?,
                "--part" => options.parts.push(part(value()?)?),
                _ => bail!("`{word}` is no benchmark; there are {}", names().join(", ")),
            }
            rest.next();
        }
        Ok(options)
    }

    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Whether this part of the fleet's benchmark is to be measured.
    pub fn wants_part(&self, name: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|part| part == name)
    }
}

pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|benchmark| benchmark.name).collect()
}

fn gib(text: &str) -> Result<f64> {
    let gib: f64 = text.parse().with_context(|| format!("--gib needs a number, not `{text}`"))?;
    if !(gib.is_finite() && gib > 0.0) {
        bail!("--gib needs a number above 0, not `{text}`");
    }
    Ok(gib)
}

fn part(name: &str) -> Result<String> {
    match fleet::PARTS.contains(&name) {
        true => Ok(name.to_owned()),
        false => bail!("--part takes one of {}, not `{name}`", fleet::PARTS.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options> {
        Options::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn benchmarks_are_named_and_sized() {
        let options = parse("tree fleet --gib 0.5 --rounds 3 --part scan --tree /usr/src").unwrap();
        assert!(options.wants("tree") && options.wants("fleet") && !options.wants("large"));
        assert!(options.wants_part("scan") && !options.wants_part("store"));
        assert_eq!((options.gib, options.rounds), (0.5, 3));
        assert_eq!(options.tree, Some("/usr/src".into()));
        assert_eq!(parse("").unwrap(), Options::default());
        assert!(parse("").unwrap().wants("large"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in ["trees", "--gib", "--gib 0", "--gib many", "--rounds -1", "--part best", "--speed 1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
