//! Listing a repository: every blob, commit and tag once, in the order in which decoding them is cheapest.
//!
//! Packs come by name, each in delta order, then loose objects by id. A short selection is looked up
//! object by object instead. What is listed is scanned while listing goes on. The order does not matter to a
//! listing that goes on after a crash: it lists again and leaves out what is in the book, so that a repository that was
//! repacked meanwhile is no problem.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::{thread, vec};

use async_trait::async_trait;
use domesday_connector::{ConnectorError, Listing};
use domesday_model::{Reason, RecordKind, UnitRecord, VersionMarks};
use domesday_scheduler::Moved;

use super::Source;
use super::conditions::Conditions;
use super::config::GitConfig;
use super::covered::{Covered, Tracked};
use super::error::GitError;
use super::forest::Forest;
use super::gaps::Gap;
use super::id::{ObjectId, ObjectKind};
use super::kinds::{self, BlobKinds};
use super::lfs;
use super::repository::Repository;
use super::select::{Selected, Verdict};
use super::store::pack::Pack;
use super::store::{Place, loose};
use super::worktree::WORKTREE;

/// What is selected is looked up object by object when the packs have at least this many times as many:
/// going through them all is cheaper per object, and brings the better order.
const FEW_SHARE: u64 = 10;

pub(super) struct RepositoryListing {
    /// `None` while a batch is made, and after one that failed or was not waited for.
    state: Option<State>,
}

struct State {
    repository: Arc<Repository>,
    max_file_size: Option<u64>,
    uncommitted: bool,
    selected: Selected,
    kinds: BlobKinds,
    missing: Vec<ObjectId>,
    gaps: Vec<Gap>,
    stage: Stage,
    /// Counts what was looked at, listed or not.
    moved: Moved,
}

enum Stage {
    /// What was looked up, in the order it has in the packs.
    Few(vec::IntoIter<(ObjectId, ObjectKind)>),
    Packs(Packs),
    Loose(LooseObjects),
    /// What a partial repository does without.
    Absent(vec::IntoIter<ObjectId>),
    /// What is named and not there, or not what its name says: opening it tells.
    Missing(vec::IntoIter<ObjectId>),
    /// Files of the database that cannot be read or that lie, by name: opening one tells what is wrong.
    Broken(vec::IntoIter<Vec<u8>>),
    /// What belongs to the repository and is not in it.
    Gaps(vec::IntoIter<Gap>),
    /// The files of the folder, where they are asked for: a container of its own.
    Worktree(bool),
}

/// Something to be listed.
enum Found {
    /// Without a kind when it is damaged.
    Object(ObjectId, Option<ObjectKind>, u64),
    Absent(ObjectId),
    Missing(ObjectId),
    Broken(Vec<u8>),
    Gap(Gap),
    /// The folder of the working tree.
    Worktree,
}

impl RepositoryListing {
    /// Begins a listing; mirrors a remote repository, and walks the history when something narrows it.
    pub async fn begin(source: Arc<Source>) -> Result<Self, ConnectorError> {
        let repository = source.reopen().await?;
        let state = blocking(move || {
            // Before objects are listed: what is staged later may not be among them.
            let tracked = Tracked::load(&repository);
            let state = State::new(Arc::clone(&repository), &source.config)?;
            source.set_covered(Covered { repository, tracked, chosen: Arc::clone(&state.selected.chosen) });
            Ok::<_, GitError>(state)
        })
        .await??;
        Ok(RepositoryListing { state: Some(state) })
    }
}

#[async_trait]
impl Listing for RepositoryListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        let mut state = self.state.take().ok_or_else(cut_short)?;
        let (state, batch) = blocking(move || {
            let batch = state.next_batch(max);
            (state, batch)
        })
        .await?;
        let batch = batch?;
        self.state = Some(state);
        Ok(batch)
    }

    fn watch(&mut self, moved: &Moved) {
        if let Some(state) = &mut self.state {
            state.moved = moved.clone();
        }
    }
}

/// Said of a listing of which a batch was lost: an empty one would say that it has ended.
pub(super) fn cut_short() -> ConnectorError {
    let detail = "the listing was cut short; list it again".to_owned();
    ConnectorError::unavailable(detail)
}

/// Runs what takes long where it holds nobody up.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ConnectorError> {
    // The words of a panic are not told: they may quote what was read.
    tokio::task::spawn_blocking(work).await.map_err(|_| ConnectorError::Container {
        reason: Reason::ReadError,
        detail: "reading the repository did not end well".to_owned(),
    })
}

impl State {
    fn new(repository: Arc<Repository>, config: &GitConfig) -> Result<State, GitError> {
        let mut selected = Selected::new(&repository, config)?;
        let packed: u64 = repository.store.packs().iter().map(|pack| u64::from(pack.index.count())).sum();
        let mut stage = match selected.take_few() {
            Some(few) if few.len() as u64 * FEW_SHARE <= packed || packed == 0 => {
                Stage::Few(in_pack_order(&repository, few)?.into_iter())
            }
            _ => Stage::Packs(Packs::new(repository.store.packs(), 0, HashSet::new())),
        };
        let kinds = thread::scope(|scope| {
            let roots = std::mem::take(&mut selected.roots);
            let kinds = scope.spawn(|| BlobKinds::new(&repository, config, roots));
            // Both take as long, and nothing can be scanned before.
            if let Stage::Packs(packs) = &mut stage {
                packs.plant()?;
            }
            Ok::<_, GitError>(kinds.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })?;
        let uncommitted = config.uncommitted && repository.root.is_some();
        let gaps = gaps(&repository, config, &selected, &kinds)?;
        let (max_file_size, missing) = (config.max_file_size, Vec::new());
        Ok(State {
            repository,
            max_file_size,
            uncommitted,
            selected,
            kinds,
            missing,
            gaps,
            stage,
            moved: Moved::default(),
        })
    }

    fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, GitError> {
        let mut records = Vec::with_capacity(max);
        while records.len() < max {
            self.moved.add(1);
            match self.next()? {
                Some(Found::Object(id, kind, size)) => records.extend(self.record(&id, kind, size)),
                Some(Found::Absent(id)) => {
                    let marks = kinds::marks(&id, None);
                    records.push(record(id.to_name(), 0, marks, Some(Reason::NotFetched)));
                }
                // Without marks, so that it is asked for again each time.
                Some(Found::Missing(id)) => {
                    records.push(record(id.to_name(), 0, VersionMarks::default(), None));
                }
                Some(Found::Broken(name)) => records.push(record(name, 0, VersionMarks::default(), None)),
                Some(Found::Gap(gap)) => records.push(gap.record()),
                Some(Found::Worktree) => {
                    let folder = record(WORKTREE.to_vec(), 0, VersionMarks::default(), None);
                    records.push(UnitRecord { kind: RecordKind::Directory, ..folder });
                }
                None => break,
            }
        }
        Ok(records)
    }

    fn record(&self, id: &ObjectId, kind: Option<ObjectKind>, size: u64) -> Option<UnitRecord> {
        // What should be a blob and says to be a tree has not its id: opening it tells.
        if kind == Some(ObjectKind::Tree) && !self.kinds.is_blob(id) {
            return None;
        }
        let content = match kind {
            Some(ObjectKind::Blob) => lfs::content_size(&self.repository, id, size),
            _ => None,
        };
        let size = content.unwrap_or(size);
        let reason = match self.selected.chosen.judge(id, kind) {
            Verdict::Pass => return None,
            Verdict::Skip(reason) => Some(reason),
            Verdict::Scan => self.max_file_size.filter(|max| size > *max).map(|_| Reason::TooLarge),
        };
        let metadata = match kind {
            Some(ObjectKind::Blob) => kinds::metadata(self.kinds.of(id)),
            _ => None,
        };
        let marks = match (content, metadata.as_deref()) {
            // Another version of the object than the pointer alone, which it was before this was fetched.
            (Some(_), metadata) => kinds::marks(id, Some(&format!("{} lfs", metadata.unwrap_or_default()))),
            (None, metadata) => kinds::marks(id, metadata),
        };
        Some(UnitRecord { metadata, ..record(id.to_name(), size, marks, reason) })
    }

    fn next(&mut self) -> Result<Option<Found>, GitError> {
        loop {
            let found = match &mut self.stage {
                Stage::Few(few) => next_of_few(&self.repository, few),
                Stage::Packs(packs) => packs.next(&self.repository, Some(&self.kinds))?,
                Stage::Loose(loose) => loose.next(&self.repository)?,
                Stage::Absent(ids) => ids.next().map(Found::Absent),
                Stage::Missing(ids) => ids.next().map(Found::Missing),
                Stage::Broken(names) => names.next().map(Found::Broken),
                Stage::Gaps(gaps) => gaps.next().map(Found::Gap),
                Stage::Worktree(is_asked) => {
                    return Ok(std::mem::take(is_asked).then_some(Found::Worktree));
                }
            };
            if found.is_some() {
                return Ok(found);
            }
            self.next_stage()?;
        }
    }

    fn next_stage(&mut self) -> Result<(), GitError> {
        let store = &self.repository.store;
        self.stage = match &mut self.stage {
            Stage::Packs(packs) => {
                Stage::Loose(LooseObjects::new(Arc::clone(&packs.packs), std::mem::take(&mut packs.loose)))
            }
            // Packed while this listing ran: what was loose at its beginning may be in a pack that came.
            Stage::Loose(loose) if store.load_packs()? => {
                let listed = loose.packs.len();
                Stage::Packs(Packs::new(store.packs(), listed, std::mem::take(&mut loose.listed)))
            }
            Stage::Few(_) | Stage::Loose(_) => {
                let absent = self.selected.take_absent();
                self.missing = self.missing(&absent)?;
                self.gaps.extend((!absent.is_empty()).then_some(Gap::Partial));
                Stage::Absent(absent.into_iter())
            }
            Stage::Absent(_) => Stage::Missing(std::mem::take(&mut self.missing).into_iter()),
            Stage::Missing(_) => Stage::Broken(store.broken_names().into_iter()),
            Stage::Broken(_) => Stage::Gaps(std::mem::take(&mut self.gaps).into_iter()),
            Stage::Gaps(_) => Stage::Worktree(self.uncommitted),
            Stage::Worktree(_) => Stage::Worktree(false),
        };
        Ok(())
    }
}

impl State {
    /// What is to be scanned and is not there, but for what a partial repository left at its remote.
    fn missing(&mut self, absent: &[ObjectId]) -> Result<Vec<ObjectId>, GitError> {
        // A part of the history cannot be listed without what it leads to.
        if !self.selected.chosen.is_everything() {
            return Ok(Vec::new());
        }
        let absent: HashSet<&ObjectId> = absent.iter().collect();
        let mut missing = self.kinds.take_missing(&self.repository.store)?;
        missing.retain(|id| {
            !absent.contains(id) && self.selected.chosen.judge(id, Some(ObjectKind::Blob)) == Verdict::Scan
        });
        Ok(missing)
    }
}

/// What of the chosen part of the history is cut off or in another repository.
fn gaps(
    repository: &Repository,
    config: &GitConfig,
    selected: &Selected,
    kinds: &BlobKinds,
) -> Result<Vec<Gap>, GitError> {
    let is_chosen = |id: &ObjectId| selected.chosen.judge(id, Some(ObjectKind::Commit)) == Verdict::Scan;
    let is_cut = repository.cut_commits()?.iter().any(is_chosen);
    let conditions = Conditions::new(config)?;
    let is_kept = |path: &&Vec<u8>| conditions.keeps(Path::new(OsStr::from_bytes(path)), false);
    let submodules = kinds.submodules().filter(is_kept).cloned().map(Gap::Submodule);
    Ok(is_cut.then_some(Gap::Shallow).into_iter().chain(submodules).collect())
}

/// Every commit that the repository has, whether a reference leads to it or not.
pub(super) fn all_commits(repository: &Repository) -> Result<Vec<ObjectId>, GitError> {
    let packs = repository.store.packs();
    let mut commits = Vec::new();
    let mut keep = |found: Found| {
        if let Found::Object(id, Some(ObjectKind::Commit), _) = found {
            commits.push(id);
        }
    };
    let mut packed = Packs::new(Arc::clone(&packs), 0, HashSet::new());
    while let Some(found) = packed.next(repository, None)? {
        keep(found);
    }
    let mut loose = LooseObjects::new(packs, HashSet::new());
    while let Some(found) = loose.next(repository)? {
        keep(found);
    }
    Ok(commits)
}

/// The objects of packs, pack by pack in delta order.
struct Packs {
    packs: Arc<Vec<Arc<Pack>>>,
    next: usize,
    forest: Option<Forest>,
    /// What was listed already, as loose objects.
    loose: HashSet<u128>,
}

impl Packs {
    /// The objects of `packs` from number `next` on.
    fn new(packs: Arc<Vec<Arc<Pack>>>, next: usize, loose: HashSet<u128>) -> Packs {
        Packs { packs, next, forest: None, loose }
    }

    /// Goes on to the next pack, if there is one.
    fn plant(&mut self) -> Result<bool, GitError> {
        let Some(pack) = self.packs.get(self.next) else { return Ok(false) };
        self.forest = Some(Forest::new(pack, &self.packs[..self.next])?);
        self.next += 1;
        Ok(true)
    }

    fn next(
        &mut self,
        repository: &Repository,
        kinds: Option<&BlobKinds>,
    ) -> Result<Option<Found>, GitError> {
        loop {
            let number = self.next.wrapping_sub(1);
            let is_blob = |position| kinds.is_some_and(|kinds| kinds.is_blob_at(number, position));
            let Some(forest) = &mut self.forest else {
                if !self.plant()? {
                    return Ok(None);
                }
                continue;
            };
            match forest.next(is_blob)? {
                Some(object) if object.is_copy || self.loose.contains(&object.id.short()) => {
                    let place = Place::Packed(Arc::clone(&self.packs[self.next - 1]), object.offset);
                    if let Some(name) = repository.store.lying_copy(&object.id, place) {
                        return Ok(Some(Found::Broken(name)));
                    }
                }
                Some(object) => {
                    // In a pack that leans on others, only these tell what it is.
                    let kind = object.kind.or_else(|| {
                        let place = repository.store.find(&object.id).ok()?;
                        repository.store.describe(&place).ok().map(|(kind, _)| kind)
                    });
                    return Ok(Some(Found::Object(object.id, kind, object.size)));
                }
                None => self.forest = None,
            }
        }
    }
}

/// Loose objects, folder by folder in the order of their ids, without those that packs have.
struct LooseObjects {
    packs: Arc<Vec<Arc<Pack>>>,
    /// The folder of objects that is listed next, and the one that `ids` are of.
    folder: usize,
    at: usize,
    first: u8,
    ids: vec::IntoIter<ObjectId>,
    listed: HashSet<u128>,
}

impl LooseObjects {
    fn new(packs: Arc<Vec<Arc<Pack>>>, listed: HashSet<u128>) -> LooseObjects {
        LooseObjects { packs, folder: 0, at: 0, first: 0, ids: Vec::new().into_iter(), listed }
    }

    fn next(&mut self, repository: &Repository) -> Result<Option<Found>, GitError> {
        let store = &repository.store;
        loop {
            while let Some(id) = self.ids.next() {
                if self.is_packed(&id)? || !self.listed.insert(id.short()) {
                    let place = Place::Loose(loose::path(&store.folders[self.at], &id));
                    if let Some(name) = store.lying_copy(&id, place) {
                        return Ok(Some(Found::Broken(name)));
                    }
                    continue;
                }
                let place = store.find(&id).and_then(|place| store.describe(&place));
                let (kind, size) = place.map_or((None, 0), |(kind, size)| (Some(kind), size));
                return Ok(Some(Found::Object(id, kind, size)));
            }
            let Some(objects) = store.folders.get(self.folder) else { return Ok(None) };
            self.at = self.folder;
            self.ids = loose::list(objects, self.first, store.hash)?.into_iter();
            self.first = self.first.wrapping_add(1);
            self.folder += usize::from(self.first == 0);
        }
    }

    fn is_packed(&self, id: &ObjectId) -> Result<bool, GitError> {
        for pack in self.packs.iter() {
            if pack.index.find(id)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The next object that was looked up. What a partial repository does without is listed apart; anywhere
/// else opening it tells that it is missing.
fn next_of_few(repository: &Repository, few: &mut vec::IntoIter<(ObjectId, ObjectKind)>) -> Option<Found> {
    let store = &repository.store;
    few.find_map(|(id, kind)| {
        let size = match store.find(&id) {
            Ok(Place::Packed(pack, offset)) => pack.size_at(offset).unwrap_or(0),
            Ok(place) => store.describe(&place).map_or(0, |(_, size)| size),
            Err(GitError::Missing(_)) if repository.partial => return None,
            Err(_) => 0,
        };
        Some(Found::Object(id, Some(kind), size))
    })
}

/// Sorts objects by where they are: neighbours in a pack are mostly made from each other.
fn in_pack_order(
    repository: &Repository,
    few: Vec<(ObjectId, ObjectKind)>,
) -> Result<Vec<(ObjectId, ObjectKind)>, GitError> {
    let mut placed = Vec::with_capacity(few.len());
    for (id, kind) in few {
        let place = repository.store.find_packed(&id)?.map(|(pack, offset)| (pack.number, offset));
        placed.push((place.unwrap_or((u32::MAX, u64::MAX)), id, kind));
    }
    placed.sort_unstable_by_key(|(place, id, _)| (*place, *id));
    Ok(placed.into_iter().map(|(_, id, kind)| (id, kind)).collect())
}

pub(super) fn record(name: Vec<u8>, size: u64, marks: VersionMarks, reason: Option<Reason>) -> UnitRecord {
    let kind = if reason.is_some() { RecordKind::Skipped } else { RecordKind::File };
    UnitRecord { kind, name, size, marks, reason, metadata: None }
}
