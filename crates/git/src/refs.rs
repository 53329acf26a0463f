//! References, and what people write to name a commit.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::error::GitError;
use super::files::{LARGE_FILE_MAX, read_file, small_file};
use super::id::{ObjectId, ObjectKind};
use super::reftable::{self, Table};
use super::repository::Repository;

/// References that name references, at most.
const SYMBOLIC_MAX: usize = 8;
/// Folders of references inside each other, at most.
const DEPTH_MAX: usize = 64;
/// Digits of an abbreviated id, at least.
const ABBREVIATION_MIN: usize = 4;
/// References of one repository, at most.
const REFS_MAX: usize = 4_000_000;

/// Where a short name is looked for, in this order.
const PREFIXES: [&str; 5] = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];

impl Repository {
    /// What every reference and every worktree's `HEAD` names, each id once, in order.
    pub fn tips(&self) -> Result<Vec<ObjectId>, GitError> {
        let mut refs = BTreeMap::new();
        if let Some(table) = self.shared_table()? {
            for (name, text) in table {
                refs.extend(self.follow(text)?.map(|id| (name.clone(), id)));
            }
        } else {
            self.packed_refs(|name, id| {
                refs.insert(name.to_vec(), id);
            })?;
            self.loose_refs(&self.common_dir.join("refs"), b"refs", 0, &mut refs)?;
        }
        let mut tips: Vec<ObjectId> = refs.into_values().collect();
        tips.extend(self.head(&self.common_dir)?);
        tips.extend(self.head(&self.git_dir)?);
        if let Ok(worktrees) = fs::read_dir(self.common_dir.join("worktrees")) {
            for worktree in worktrees.flatten() {
                tips.extend(self.head(&worktree.path())?);
            }
        }
        tips.sort_unstable();
        tips.dedup();
        Ok(tips)
    }

    /// The commit a worktree is at; `None` before its first.
    pub fn head(&self, git_dir: &Path) -> Result<Option<ObjectId>, GitError> {
        let text = if self.reftable.is_none() {
            small_file(&git_dir.join("HEAD"))?
        } else if git_dir == self.common_dir {
            self.shared_table()?.and_then(|table| table.get(b"HEAD".as_slice()).cloned())
        } else {
            self.own_table(git_dir)?.remove(b"HEAD".as_slice())
        };
        match text {
            Some(text) => self.follow(&text),
            None => Ok(None),
        }
    }

    /// What `name` means: an id, or enough of one, or a reference; a commit, if `~` or `^` follow.
    pub fn resolve(&self, name: &str) -> Result<ObjectId, GitError> {
        let wrong = |detail: &str| GitError::Configuration(format!("`{name}`: {detail}"));
        let (base, steps) = name.split_at(name.find(['~', '^']).unwrap_or(name.len()));
        let named = match ObjectId::from_hex(base.as_bytes()) {
            Some(id) => id,
            None => match self.named(base)? {
                Some(id) => id,
                None => self.abbreviated(base)?.ok_or_else(|| {
                    wrong("no such reference; give a branch, a tag, a reference's whole name, or an id")
                })?,
            },
        };
        let (_, mut commit, kind) = self.peel(&named)?;
        if kind != ObjectKind::Commit {
            return Err(wrong("not a commit"));
        }
        if steps.is_empty() {
            return Ok(named);
        }
        for step in Step::parse(steps).ok_or_else(|| wrong("only `~` and `^` with a number may follow"))? {
            for _ in 0..step.times {
                let parent = self.commit(&commit, |commit| commit.parents.get(step.parent).copied())?;
                commit = parent.flatten().ok_or_else(|| wrong("has no such parent here"))?;
            }
        }
        Ok(commit)
    }

    /// The commit or tag whose id begins with these digits.
    fn abbreviated(&self, digits: &str) -> Result<Option<ObjectId>, GitError> {
        if digits.len() < ABBREVIATION_MIN || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let mut found = self.store.abbreviated(digits)?;
        found.retain(|id| {
            let kind = self.store.find(id).and_then(|place| self.store.describe(&place));
            kind.is_ok_and(|(kind, _)| matches!(kind, ObjectKind::Commit | ObjectKind::Tag))
        });
        match found[..] {
            [] => Ok(None),
            [id] => Ok(Some(id)),
            _ => {
                Err(GitError::Configuration(format!("`{digits}`: several commits begin so; give more of it")))
            }
        }
    }

    fn named(&self, name: &str) -> Result<Option<ObjectId>, GitError> {
        if name == "HEAD" || name == "@" {
            return self.head(&self.git_dir);
        }
        for prefix in PREFIXES {
            if let Some(id) = self.reference(&format!("{prefix}{name}"))? {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn reference(&self, name: &str) -> Result<Option<ObjectId>, GitError> {
        match self.reference_text(name)? {
            Some(text) => self.follow(&text),
            None => Ok(None),
        }
    }

    fn follow(&self, text: &[u8]) -> Result<Option<ObjectId>, GitError> {
        let mut text = text.to_vec();
        for _ in 0..SYMBOLIC_MAX {
            let Some(target) = text.strip_prefix(b"ref:") else {
                return Ok(ObjectId::from_hex(text.trim_ascii()));
            };
            let target = String::from_utf8_lossy(target.trim_ascii()).into_owned();
            match self.reference_text(&target)? {
                Some(next) => text = next,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// What a reference's file says, or `packed-refs` in its place.
    fn reference_text(&self, name: &str) -> Result<Option<Vec<u8>>, GitError> {
        let is_inside =
            name.starts_with("refs/") && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_inside {
            return Ok(None);
        }
        if let Some(table) = self.shared_table()? {
            let own =
                if self.git_dir == self.common_dir { None } else { Some(self.own_table(&self.git_dir)?) };
            let own = own.and_then(|mut own| own.remove(name.as_bytes()));
            return Ok(own.or_else(|| table.get(name.as_bytes()).cloned()));
        }
        for folder in [&self.git_dir, &self.common_dir] {
            if let Some(text) = small_file(&folder.join(name))? {
                return Ok(Some(text));
            }
        }
        let mut found = None;
        self.packed_refs(|packed, id| {
            if packed == name.as_bytes() {
                found = Some(id.to_name());
            }
        })?;
        Ok(found)
    }

    fn packed_refs(&self, mut each: impl FnMut(&[u8], ObjectId)) -> Result<(), GitError> {
        let text = read_file(&self.common_dir.join("packed-refs"), LARGE_FILE_MAX)?.unwrap_or_default();
        for line in text.split(|&byte| byte == b'\n') {
            // Comments begin with `#`, and what a tag leads to with `^`: neither is an id and a space.
            if let Some(space) = line.iter().position(|&byte| byte == b' ')
                && let Some(id) = ObjectId::from_hex(&line[..space])
            {
                each(line[space + 1..].trim_ascii(), id);
            }
        }
        Ok(())
    }

    fn loose_refs(
        &self,
        folder: &Path,
        name: &[u8],
        depth: usize,
        refs: &mut BTreeMap<Vec<u8>, ObjectId>,
    ) -> Result<(), GitError> {
        let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
        for entry in entries {
            let entry = entry.map_err(|error| GitError::io(folder, error))?;
            let name = [name, b"/", entry.file_name().as_bytes()].concat();
            // Not through links: a folder of references may lead nowhere else.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && depth < DEPTH_MAX {
                self.loose_refs(&entry.path(), &name, depth + 1, refs)?;
            } else if !is_folder
                && let Some(text) = small_file(&entry.path())?
                && let Some(id) = self.follow(&text)?
            {
                refs.insert(name, id);
            }
            if refs.len() > REFS_MAX {
                return Err(GitError::corrupt(folder.display(), format!("more than {REFS_MAX} references")));
            }
        }
        Ok(())
    }

    /// The references that worktrees share, where they are kept in tables.
    fn shared_table(&self) -> Result<Option<&Table>, GitError> {
        let Some(table) = &self.reftable else { return Ok(None) };
        if let Some(table) = table.get() {
            return Ok(Some(table));
        }
        let read = self.own_table(&self.common_dir)?;
        Ok(Some(table.get_or_init(|| read)))
    }

    /// The references of one worktree alone.
    fn own_table(&self, git_dir: &Path) -> Result<Table, GitError> {
        reftable::read(&git_dir.join("reftable"), self.store.hash)
    }
}

/// One step from a commit to an ancestor: `~n` goes to the first parent `n` times, `^n` to the n-th once.
struct Step {
    parent: usize,
    times: usize,
}

impl Step {
    /// The steps in `~2^3`; `None` when it is something else.
    fn parse(mut text: &str) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        while let Some(kind) = text.chars().next() {
            let rest = &text[1..];
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let number = if end == 0 { 1 } else { rest[..end].parse().ok()? };
            steps.push(match kind {
                '~' => Step { parent: 0, times: number },
                '^' if number > 0 => Step { parent: number - 1, times: 1 },
                '^' => Step { parent: 0, times: 0 },
                _ => return None,
            });
            text = &rest[end..];
        }
        Some(steps)
    }
}
