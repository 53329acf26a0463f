//! Which files a configuration may name. One that was found in a scanned tree may come from somebody else: what it names
//! is a regular file below it, and nothing on the way is a link. So it can neither have another file read, nor have the
//! scan wait for ever for a FIFO. What the user typed may be anything.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use rustix::io::Errno;

/// Which files may be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Reach {
    #[default]
    Anywhere,
    /// Below this folder, whose links are resolved.
    Below(PathBuf),
}

impl Reach {
    /// Opens a file to read.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        let Reach::Below(root) = self else { return File::open(path) };
        // `O_NONBLOCK` so that a FIFO does not hang the scan.
        let file = File::from(open_below(root, path, OFlags::NONBLOCK | OFlags::NOCTTY)?);
        if !file.metadata()?.is_file() {
            return Err(refused("it is no regular file"));
        }
        Ok(file)
    }

    pub fn is_folder(&self, path: &Path) -> bool {
        match self {
            Reach::Anywhere => path.is_dir(),
            Reach::Below(root) => open_below(root, path, OFlags::DIRECTORY).is_ok(),
        }
    }

    /// What is in a folder, in no order.
    pub fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let Reach::Below(root) = self else {
            return std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
        };
        let opened = open_below(root, folder, OFlags::DIRECTORY)?;
        let names = Dir::new(opened)?.map(|entry| Ok(entry?.file_name().to_bytes().to_vec()));
        let names: Vec<Vec<u8>> = names.collect::<Result<_, Errno>>()?;
        Ok(names.into_iter().map(|name| folder.join(OsStr::from_bytes(&name))).collect())
    }
}

/// Goes down step by step, so that no link is on the way, whoever puts one there meanwhile.
fn open_below(root: &Path, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let path = std::path::absolute(path)?;
    let below = path.strip_prefix(root).map_err(|_| leads_out())?;
    let mut names = Vec::new();
    for component in below.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => return Err(leads_out()),
        }
    }
    let open = |folder: &OwnedFd, name: &OsStr, flags| {
        openat(folder, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).map_err(|error| {
            match error {
                Errno::LOOP | Errno::NOTDIR => refused("it is, or is behind, a symbolic link or no folder"),
                error => error.into(),
            }
        })
    };
    let mut folder = openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let (last, before) = names.split_last().map_or((OsStr::new("."), &[][..]), |(last, rest)| (*last, rest));
    for name in before {
        folder = open(&folder, name, OFlags::PATH | OFlags::DIRECTORY)?;
    }
    open(&folder, last, flags | OFlags::RDONLY)
}

fn leads_out() -> io::Error {
    refused("it is not below the configuration file that names it")
}

fn refused(why: &str) -> io::Error {
    io::Error::other(format!("{why}, which is not read for a tree; name it yourself if you trust it"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_below_are_opened() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let root = place.join("tree");
        fs::create_dir_all(root.join("rules")).unwrap();
        fs::write(place.join("outside.toml"), "").unwrap();
        fs::write(root.join("rules/own.toml"), "").unwrap();
        symlink("../outside.toml", root.join("link.toml")).unwrap();
        symlink("..", root.join("up")).unwrap();
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, root.join("fifo"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let reach = Reach::Below(root.clone());
        let told = |name: &str| reach.open(&root.join(name)).unwrap_err().to_string();
        assert!(reach.open(&root.join("rules/own.toml")).is_ok());
        assert!(told("link.toml").contains("symbolic link"), "{}", told("link.toml"));
        assert!(told("up/outside.toml").contains("symbolic link"));
        assert!(told("fifo").contains("no regular file"));
        assert!(told("rules").contains("no regular file"));
        for outside in ["../outside.toml", "rules/../../outside.toml", "/etc/passwd"] {
            assert!(told(outside).contains("not below"), "{outside}");
        }
        assert!(reach.is_folder(&root.join("rules")) && !reach.is_folder(&root.join("up")));
        let listed = reach.list(&root.join("rules")).unwrap();
        assert!(listed.contains(&root.join("rules/own.toml")), "{listed:?}");
    }
}
