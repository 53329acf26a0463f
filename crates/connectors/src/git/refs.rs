//! References, and what people write to name a commit.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::error::GitError;
use super::files::{LARGE_FILE_MAX, read_file, small_file};
use super::id::{ObjectId, ObjectKind};
use super::repository::Repository;

/// References that name references, at most.
const SYMBOLIC_MAX: usize = 8;
/// Folders of references inside each other, at most.
const DEPTH_MAX: usize = 64;
/// References of one repository, at most.
const REFS_MAX: usize = 4_000_000;

/// Where a short name is looked for, in this order.
const PREFIXES: [&str; 5] = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];

impl Repository {
    /// What every reference and every worktree's `HEAD` names, each id once, in order.
    pub fn tips(&self) -> Result<Vec<ObjectId>, GitError> {
        let mut refs = BTreeMap::new();
        self.packed_refs(|name, id| {
            refs.insert(name.to_vec(), id);
        })?;
        self.loose_refs(&self.common_dir.join("refs"), b"refs", 0, &mut refs)?;
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
        self.readable_refs()?;
        match small_file(&git_dir.join("HEAD"))? {
            Some(text) => self.follow(&text),
            None => Ok(None),
        }
    }

    /// What `name` means: an id or a reference; a commit, if `~` or `^` follow.
    pub fn resolve(&self, name: &str) -> Result<ObjectId, GitError> {
        let wrong = |detail: &str| GitError::Configuration(format!("`{name}`: {detail}"));
        let (base, steps) = name.split_at(name.find(['~', '^']).unwrap_or(name.len()));
        let named = match ObjectId::from_hex(base.as_bytes()) {
            Some(id) => id,
            None => self.named(base)?.ok_or_else(|| {
                wrong("no such reference; give a branch, a tag, a reference's whole name, or a whole id")
            })?,
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
        self.readable_refs()?;
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
        self.readable_refs()?;
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

    fn readable_refs(&self) -> Result<(), GitError> {
        if self.reftable {
            let hint = "references in a reftable are not read yet; \
                        `git refs migrate --ref-format=files` converts them";
            return Err(GitError::Unsupported(hint.to_owned()));
        }
        Ok(())
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
