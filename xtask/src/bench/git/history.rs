//! A repository with a long history, for measurements: the releases of large packages, committed one after another.
//!
//! Packages come through cargo alone, so that whatever mirror, proxy or cache it is set up with serves them too.
//! They are source code with little beside it, and no rule is about what they are: in the sources of curl or OpenSSL
//! the words that commands with passwords begin with are everywhere, which is no measure for other histories. The same
//! releases give the same commits, for authors and dates are made up; `git` itself packs them.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::cargo;

/// The repository, below the folder that benchmarks keep their material in. Its name changes with what is in it.
const REPOSITORY: &str = "history-1.git";
/// What the packages are fetched into meanwhile.
const WORKSHOP: &str = "history-workshop";
/// When the first release was committed, and how much later each next one, in seconds.
const BEGUN: u64 = 1_500_000_000;
const BETWEEN: u64 = 86_400;
/// What cargo adds to every package it hands out; not the package's own.
const CHECKSUMS: &str = ".cargo-checksum.json";
const PIPE_BUFFER: usize = 1 << 20;

/// Packages and their releases, in the order in which they are committed: 400 MB of distinct files, most of them of
/// the database in C++ that the second one carries. One after another, as it numbered them.
#[rustfmt::skip]
const PACKAGES: [(&str, &[&str]); 2] = [
    ("libgit2-sys", &[
        "0.12.9", "0.12.14", "0.12.23", "0.12.24", "0.13.0", "0.13.1", "0.14.0", "0.14.2", "0.15.0", "0.15.1",
        "0.16.1", "0.16.2", "0.17.0", "0.18.0", "0.18.2", "0.18.3",
    ]),
    ("librocksdb-sys", &[
        "5.11.3", "5.14.3", "5.17.2", "5.18.3", "6.1.3", "6.2.4", "6.6.4", "6.7.4", "6.11.4", "6.17.3", "6.20.3",
        "0.6.3", "0.8.3", "0.10.0", "0.11.0", "0.12.0", "0.13.0", "0.14.0", "0.15.0", "0.16.0", "0.17.1", "0.17.3",
        "0.19.0",
    ]),
];

/// The repository in `cache`, made unless it is there.
pub fn prepare(cache: &Path) -> Result<PathBuf> {
    let repository = cache.join(REPOSITORY);
    if repository.is_dir() {
        return Ok(repository);
    }
    eprintln!("making {}: fetches and packs for some minutes, once", repository.display());
    let workshop = cache.join(WORKSHOP);
    if workshop.exists() {
        fs::remove_dir_all(&workshop).with_context(|| format!("cannot remove {}", workshop.display()))?;
    }
    let packages = fetch(&workshop)?;
    let made = workshop.join(REPOSITORY);
    git(&workshop, &["init", "--quiet", "--bare", "--initial-branch=main", REPOSITORY])?;
    import(&made, &packages)?;
    git(&made, &["repack", "-adfq"])?;
    // Under its name only when it is whole.
    fs::rename(&made, &repository)?;
    fs::remove_dir_all(&workshop)?;
    Ok(repository)
}

/// Fetches every release into a folder each, named by package and version.
fn fetch(workshop: &Path) -> Result<PathBuf> {
    let mut vendor = cargo(&manifests(workshop)?);
    vendor.args(["vendor", "--quiet", "--versioned-dirs", "--manifest-path", "0/Cargo.toml"]);
    for number in 1..releases().count() {
        vendor.arg("--sync").arg(format!("{number}/Cargo.toml"));
    }
    let packages = workshop.join("packages");
    vendor.arg(&packages).stdout(Stdio::null());
    run(&mut vendor)?;
    Ok(packages)
}

/// A manifest for each release: two that are compatible cannot be asked for in one.
fn manifests(workshop: &Path) -> Result<PathBuf> {
    let folder = workshop.join("manifests");
    for (number, (package, version)) in releases().enumerate() {
        let of_one = folder.join(number.to_string());
        fs::create_dir_all(of_one.join("src"))?;
        fs::write(of_one.join("src/lib.rs"), "")?;
        let manifest = format!(
            "[package]\nname = \"release\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[workspace]\n\n\
             [dependencies]\n{package} = {{ version = \"={version}\", default-features = false }}\n"
        );
        fs::write(of_one.join("Cargo.toml"), manifest)?;
    }
    Ok(folder)
}

fn releases() -> impl Iterator<Item = (&'static str, &'static str)> {
    PACKAGES.iter().flat_map(|(package, versions)| versions.iter().map(|version| (*package, *version)))
}

/// Commits the releases, each in place of the one before.
fn import(repository: &Path, packages: &Path) -> Result<()> {
    let mut import = Command::new("git")
        .current_dir(repository)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot run git")?;
    let stream = import.stdin.take().context("git fast-import has no input")?;
    let written = write_history(&mut BufWriter::with_capacity(PIPE_BUFFER, stream), packages);
    let status = import.wait()?;
    written.context("cannot hand a release to git fast-import")?;
    if !status.success() {
        bail!("git fast-import ended with {status}");
    }
    Ok(())
}

fn write_history(out: &mut impl Write, packages: &Path) -> Result<()> {
    for (number, (package, version)) in releases().enumerate() {
        let folder = folder_of(packages, package, version)?;
        let message = format!("{package} {version}\n");
        let time = BEGUN + BETWEEN * number as u64;
        writeln!(out, "commit refs/heads/main\ncommitter A <a@example.com> {time} +0000")?;
        write!(out, "data {}\n{message}D {package}\n", message.len())?;
        write_files(out, &folder, package)?;
    }
    Ok(out.flush()?)
}

/// Folders may carry the number of what is packaged behind that of the package: `1.0.0+2.3`.
fn folder_of(packages: &Path, package: &str, version: &str) -> Result<PathBuf> {
    let name = format!("{package}-{version}");
    for entry in fs::read_dir(packages)? {
        let entry = entry?;
        let found = entry.file_name();
        let rest = found.to_str().and_then(|found| found.strip_prefix(&name));
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('+')) {
            return Ok(entry.path());
        }
    }
    bail!("cargo brought no {package} {version}")
}

/// The files below a folder, in the order of their names.
fn write_files(out: &mut impl Write, folder: &Path, name: &str) -> Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (file_name, kind) = (entry.file_name(), entry.file_type()?);
        // What git would want quoted is left out; packages have no such names.
        let Some(plain) = file_name.to_str().filter(|name| !name.contains(['"', '\n'])) else { continue };
        let path = format!("{name}/{plain}");
        if kind.is_dir() {
            write_files(out, &entry.path(), &path)?;
        } else if kind.is_file() && file_name != OsStr::new(CHECKSUMS) {
            let content = fs::read(entry.path())?;
            writeln!(out, "M 100644 inline {path}\ndata {}", content.len())?;
            out.write_all(&content)?;
            writeln!(out)?;
        }
    }
    Ok(())
}

fn git(folder: &Path, arguments: &[&str]) -> Result<()> {
    run(Command::new("git").current_dir(folder).args(arguments))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_committed_in_place_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        for (package, version) in releases() {
            let release = folder.path().join(format!("{package}-{version}+up.1"));
            fs::create_dir_all(release.join("src")).unwrap();
            fs::write(release.join("src/lib.rs"), version).unwrap();
            fs::write(release.join(CHECKSUMS), "{}").unwrap();
        }
        let mut out = Vec::new();
        write_history(&mut out, folder.path()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("commit refs/heads/main").count(), releases().count());
        assert!(
            text.contains("D librocksdb-sys\nM 100644 inline librocksdb-sys/src/lib.rs\ndata 6\n0.19.0\n")
        );
        assert!(!text.contains(CHECKSUMS));
        assert!(folder_of(folder.path(), "librocksdb-sys", "0.1").is_err(), "a beginning is no version");
    }
}
