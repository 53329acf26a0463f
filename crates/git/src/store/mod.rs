//! The object database of a repository: packs and loose objects, of its own and of its alternates, found
//! by id and decoded.
//!
//! Nothing here trusts a file: sizes are checked before memory is taken, chains of deltas have a limit,
//! and whatever does not fit is a [`GitError`]. Files are only ever read.

mod bytes;
mod cache;
mod copies;
mod delta;
mod file;
mod folders;
mod index;
mod inflate;
pub(super) mod loose;
pub(super) mod pack;
mod stream;

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use domesday_model::Reason;
use domesday_scheduler::{CopiedRange, DeltaBase};
use parking_lot::{Mutex, RwLock};

pub(super) use bytes::Bytes;
use cache::BaseCache;
pub(super) use cache::Decoded;
pub use folders::Folders;
use folders::PackFiles;
pub(super) use inflate::Inflater;
use inflate::inflater;
use pack::{Content, Pack};
use stream::InflateReader;

use super::bounds::Bounds;
use super::error::GitError;
use super::hash::id_of_reader;
use super::id::{HashKind, ObjectId, ObjectKind};

/// Objects larger than this are inflated as they are read, if they are no deltas: 16 MiB.
pub(super) const STREAM_MIN: u64 = 16 << 20;
/// The largest object that is held in memory, because it is a delta, or another is made from it: 128 MiB.
pub(super) const HELD_MAX: u64 = 128 << 20;
/// Deltas between an object and the whole one it is made from, at most; git itself makes 4,095.
const CHAIN_MAX: usize = 10_000;
/// Bytes that are made on the way from a whole object to one delta, at most: 16 GiB.
const CHAIN_BYTES_MAX: u64 = 16 << 30;
/// Packs whose files stay open; those of more are opened for each use.
const HELD_PACKS_MAX: usize = 64;
/// Bytes of indices held in memory, at most: those of packs with 700,000 objects in all.
const HELD_INDICES_BYTES: u64 = 16 << 20;
/// Bytes of a delta's instructions whose memory a thread keeps for the next one, at most: 1 MiB.
const INSTRUCTIONS_KEPT_MAX: usize = 1 << 20;

pub(super) struct ObjectStore {
    pub hash: HashKind,
    /// Its own, then its alternates.
    pub folders: Vec<PathBuf>,
    packs: RwLock<Arc<Vec<Arc<Pack>>>>,
    /// Files of the database that cannot be read or that lie, with what is wrong: they are listed by name, and
    /// opening them tells.
    broken: Mutex<BTreeMap<PathBuf, Arc<GitError>>>,
    /// Held while packs are looked for, so that one thread does it at a time.
    reload: Mutex<()>,
    /// Bytes of indices that may still be held; changed only while packs are looked for.
    index_room: AtomicU64,
    /// The pack that had the last object, which mostly has the next.
    recent: AtomicUsize,
    cache: BaseCache,
}

/// Where an object is.
pub(super) enum Place {
    Packed(Arc<Pack>, u64),
    Loose(PathBuf),
}

/// An object's bytes.
pub(super) enum ObjectData {
    Held(Box<Scannable>),
    Stream { size: u64, reader: Box<dyn Read + Send> },
}

/// An object in memory, with what its scan may reuse and keep.
pub(super) struct Scannable {
    pub object: Decoded,
    /// The object that this one is a delta of, if that was scanned.
    pub base: Option<DeltaBase>,
    /// Whether others may be deltas of it.
    pub is_base: bool,
}

impl Scannable {
    fn alone(object: Decoded) -> Box<Scannable> {
        Box::new(Scannable { object, base: None, is_base: false })
    }
}

impl ObjectStore {
    pub fn open(objects: &Path, hash: HashKind, bounds: &Bounds) -> Result<ObjectStore, GitError> {
        let folders = Folders::find(objects, bounds)?;
        let refused = folders.refused.into_iter().map(|(list, error)| (list, Arc::new(error)));
        let store = ObjectStore {
            hash,
            folders: folders.paths,
            packs: RwLock::default(),
            broken: Mutex::new(refused.collect()),
            reload: Mutex::default(),
            index_room: AtomicU64::new(HELD_INDICES_BYTES),
            recent: AtomicUsize::new(0),
            cache: BaseCache::new(),
        };
        store.load_packs()?;
        Ok(store)
    }

    /// The packs, in an order that only their names decide.
    pub fn packs(&self) -> Arc<Vec<Arc<Pack>>> {
        Arc::clone(&self.packs.read())
    }

    /// Looks for packs that came; those that went are kept for as long as their files are open. Whether
    /// any came.
    pub fn load_packs(&self) -> Result<bool, GitError> {
        let _one = self.reload.lock();
        let known = self.packs();
        let paths: HashSet<&Path> = known.iter().map(|pack| pack.path()).collect();
        let mut packs = known.to_vec();
        let mut room = self.index_room.load(Ordering::Relaxed);
        for folder in &self.folders {
            let files = PackFiles::list(&folder.join("pack"))?;
            for pack in files.alone {
                let detail = "it has no index; `git index-pack` makes one".to_owned();
                self.name_broken(pack.clone(), GitError::corrupt(pack.display(), detail));
            }
            for index in files.indices {
                if paths.contains(index.with_extension("pack").as_path()) {
                    continue;
                }
                let hold = packs.len() < HELD_PACKS_MAX;
                match Pack::open(&index, packs.len() as u32, self.hash, hold) {
                    Ok(mut pack) => {
                        // Only where the pack itself stays open: what names objects that are gone misleads.
                        if let Some(left) = room.checked_sub(pack.index.len()).filter(|_| hold) {
                            room = left;
                            pack.index.hold();
                        }
                        // Its index came after it.
                        self.broken.lock().remove(pack.path());
                        packs.push(Arc::new(pack));
                    }
                    Err(error) => self.name_broken(index, error),
                }
            }
        }
        self.index_room.store(room, Ordering::Relaxed);
        let came = packs.len() > known.len();
        *self.packs.write() = Arc::new(packs);
        Ok(came)
    }

    #[cfg(test)]
    pub fn decoded(&self) -> usize {
        self.cache.decoded.load(Ordering::Relaxed)
    }

    /// Has a file of the database listed with what is wrong with it; the first thing that is said of it counts.
    fn name_broken(&self, path: PathBuf, error: GitError) {
        self.broken.lock().entry(path).or_insert_with(|| Arc::new(error));
    }

    /// Whether this file is a pack or its index, listed with its objects or with what is wrong with it.
    pub fn has_file(&self, path: &Path) -> bool {
        let pack = path.with_extension("pack");
        let has_extension = |extension| path.extension().is_some_and(|found| found == extension);
        (has_extension("pack") || has_extension("idx"))
            && (self.packs().iter().any(|known| known.path() == pack)
                || self.broken.lock().contains_key(&pack)
                || self.broken.lock().contains_key(&path.with_extension("idx")))
    }

    /// The names of the files that cannot be read or that lie.
    pub fn broken_names(&self) -> Vec<Vec<u8>> {
        self.broken.lock().keys().filter_map(|path| Some(path.file_name()?.as_bytes().to_vec())).collect()
    }

    /// What is wrong with the file of this name.
    pub fn broken_file(&self, name: &[u8]) -> Option<Arc<GitError>> {
        let broken = self.broken.lock();
        let mut found =
            broken.iter().filter(|(path, _)| path.file_name().is_some_and(|n| n.as_bytes() == name));
        found.next().map(|(_, error)| Arc::clone(error))
    }

    pub fn find(&self, id: &ObjectId) -> Result<Place, GitError> {
        if let Some(place) = self.find_known(id)? {
            return Ok(place);
        }
        // Repacked since: what was loose may be in a pack now.
        if self.load_packs()?
            && let Some(place) = self.find_known(id)?
        {
            return Ok(place);
        }
        Err(GitError::Missing(*id))
    }

    pub fn find_known(&self, id: &ObjectId) -> Result<Option<Place>, GitError> {
        if let Some((pack, offset)) = self.find_packed(id)? {
            return Ok(Some(Place::Packed(pack, offset)));
        }
        let paths = self.folders.iter().map(|folder| loose::path(folder, id));
        Ok(paths.into_iter().find(|path| path.exists()).map(Place::Loose))
    }

    pub fn find_packed(&self, id: &ObjectId) -> Result<Option<(Arc<Pack>, u64)>, GitError> {
        let packs = self.packs();
        let recent = self.recent.load(Ordering::Relaxed).min(packs.len());
        for at in (recent..packs.len()).chain(0..recent) {
            match packs[at].index.find(id) {
                Ok(None) => {}
                // Repacked since, and its files were not held: what it had is in another one now.
                Err(error) if error.reason() == Reason::Vanished => {}
                found => {
                    self.recent.store(at, Ordering::Relaxed);
                    return Ok(found?.map(|offset| (Arc::clone(&packs[at]), offset)));
                }
            }
        }
        Ok(None)
    }

    /// The ids that begin with these hexadecimal digits, of which there are at least two, in order.
    pub fn abbreviated(&self, digits: &str) -> Result<Vec<ObjectId>, GitError> {
        let Some(first) = digits.get(..2).and_then(|two| u8::from_str_radix(two, 16).ok()) else {
            return Ok(Vec::new());
        };
        let digits = digits.to_ascii_lowercase();
        let mut found = Vec::new();
        for pack in self.packs().iter() {
            let mut ids = pack.index.ids_of(first);
            while let Some(id) = ids.next()? {
                found.extend(ObjectId::from_bytes(id).filter(|id| id.to_string().starts_with(&digits)));
            }
        }
        for folder in &self.folders {
            let ids = loose::list(folder, first, self.hash)?;
            found.extend(ids.into_iter().filter(|id| id.to_string().starts_with(&digits)));
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// An object for reading from first to last. A large one is inflated as it is read, unless it is a
    /// delta.
    pub fn open_object(&self, id: &ObjectId) -> Result<ObjectData, GitError> {
        match self.find(id)? {
            Place::Packed(pack, offset) => {
                let head = inflater(|inflater| pack.begin(inflater, offset))?;
                if let Content::Whole(kind) = head.content
                    && head.size > STREAM_MIN
                {
                    let start = offset + head.len as u64;
                    let reader = || InflateReader::new(Arc::clone(&pack.file), start, Some(head.size));
                    self.verify_stream(id, kind, head.size, reader())?;
                    return Ok(ObjectData::Stream { size: head.size, reader: Box::new(reader()) });
                }
                let (is_base, mut base) = (pack.may_be_base(offset), None);
                let object = self.decode(&pack, offset, is_base, Some(&mut base))?;
                object.data.verify(self.hash, object.kind, id)?;
                Ok(ObjectData::Held(Box::new(Scannable { object, base, is_base })))
            }
            Place::Loose(path) => {
                let loose = loose::open(path.clone())?;
                if loose.size > STREAM_MIN {
                    self.verify_stream(id, loose.kind, loose.size, loose.content)?;
                    let loose::Loose { size, content, .. } = loose::open(path)?;
                    return Ok(ObjectData::Stream { size, reader: Box::new(content) });
                }
                self.read_loose(id, loose).map(|object| ObjectData::Held(Scannable::alone(object)))
            }
        }
    }

    /// An object that must be held to be worked with: a commit, a tree, a tag.
    pub fn read(&self, id: &ObjectId) -> Result<Decoded, GitError> {
        match self.find(id)? {
            Place::Packed(pack, offset) => {
                let object = self.decode(&pack, offset, true, None)?;
                object.data.verify(self.hash, object.kind, id).map(|()| object)
            }
            Place::Loose(path) => self.read_loose(id, loose::open(path)?),
        }
    }

    /// What is too large to be held is read once to be hashed, and once more to be scanned: a scan may end before
    /// the stream does.
    fn verify_stream(
        &self,
        id: &ObjectId,
        kind: ObjectKind,
        size: u64,
        content: InflateReader,
    ) -> Result<(), GitError> {
        let actual = id_of_reader(self.hash, kind, size, content)
            .map_err(|source| GitError::Io { what: format!("object {id}"), source })?;
        if actual == *id { Ok(()) } else { Err(GitError::Mismatch { id: *id, actual }) }
    }

    fn read_loose(&self, id: &ObjectId, loose: loose::Loose) -> Result<Decoded, GitError> {
        let object = read_loose(loose)?;
        object.data.verify(self.hash, object.kind, id).map(|()| object)
    }

    /// The kind and size of an object.
    pub fn describe(&self, place: &Place) -> Result<(ObjectKind, u64), GitError> {
        match place {
            Place::Loose(path) => loose::open(path.clone()).map(|loose| (loose.kind, loose.size)),
            Place::Packed(pack, offset) => Ok((self.kind(pack, *offset)?, pack.size_at(*offset)?)),
        }
    }

    fn kind(&self, pack: &Arc<Pack>, offset: u64) -> Result<ObjectKind, GitError> {
        let (mut pack, mut offset) = (Arc::clone(pack), offset);
        for _ in 0..CHAIN_MAX {
            let head = inflater(|inflater| pack.begin(inflater, offset))?;
            match self.base(&pack, head.content)? {
                Base::None(kind) => return Ok(kind),
                Base::Packed(base, at) => (pack, offset) = (base, at),
                Base::Loose(path) => return loose::open(path).map(|loose| loose.kind),
            }
        }
        Err(chain_too_long(&pack, offset))
    }

    /// Decodes an object, and with it those it is made from; these stay in the cache, and the object itself if it is
    /// needed again. Into `scanned_base` goes the one it is a delta of, if that was scanned.
    fn decode(
        &self,
        pack: &Arc<Pack>,
        offset: u64,
        stays: bool,
        mut scanned_base: Option<&mut Option<DeltaBase>>,
    ) -> Result<Decoded, GitError> {
        let mut chain: Vec<(Arc<Pack>, u64)> = Vec::new();
        let (mut pack, mut offset) = (Arc::clone(pack), offset);
        let mut made = loop {
            if let Some(decoded) = self.cache.get((pack.number, offset)) {
                break decoded;
            }
            if chain.len() >= CHAIN_MAX {
                return Err(chain_too_long(&pack, offset));
            }
            let head = inflater(|inflater| pack.begin(inflater, offset))?;
            match self.base(&pack, head.content)? {
                Base::None(kind) => {
                    let stays = stays || !chain.is_empty();
                    let size = pack.held_size(offset, head.size)?;
                    let mut data = bytes::buffer(Inflater::first_room(size), stays);
                    inflater(|inflater| pack.inflate(inflater, offset, &head, &mut data))?;
                    let decoded = Decoded::new(kind, data);
                    if stays {
                        self.cache.put((pack.number, offset), &decoded);
                    }
                    break decoded;
                }
                Base::Packed(base, at) => {
                    chain.push((pack, offset));
                    (pack, offset) = (base, at);
                }
                Base::Loose(path) => {
                    chain.push((pack, offset));
                    break read_loose(loose::open(path)?)?;
                }
            }
        };
        let mut bytes = 0;
        while let Some((pack, offset)) = chain.pop() {
            bytes += made.data.len() as u64;
            if bytes > CHAIN_BYTES_MAX {
                let what =
                    format!("what the object at offset {offset} of {} is made from", pack.path().display());
                return Err(GitError::TooLarge { what, size: bytes, max: CHAIN_BYTES_MAX });
            }
            let stays = stays || !chain.is_empty();
            let is_last = chain.is_empty() && made.hits.get().is_some();
            let mut copied = scanned_base.as_ref().filter(|_| is_last).map(|_| Vec::new());
            let data = apply(&pack, offset, &made.data, stays, copied.as_mut())?;
            if let (Some(base), Some(copied)) = (&mut scanned_base, copied) {
                **base = Some(DeltaBase { hits: Arc::clone(&made.hits), copied });
            }
            made = Decoded::new(made.kind, data);
            if stays {
                self.cache.put((pack.number, offset), &made);
            }
        }
        Ok(made)
    }

    fn base(&self, pack: &Arc<Pack>, content: Content) -> Result<Base, GitError> {
        Ok(match content {
            Content::Whole(kind) => Base::None(kind),
            Content::DeltaAt(base) => Base::Packed(Arc::clone(pack), base),
            Content::DeltaOf(id) => match pack.index.find(&id)? {
                Some(base) => Base::Packed(Arc::clone(pack), base),
                None => match self.find(&id)? {
                    Place::Packed(pack, base) => Base::Packed(pack, base),
                    Place::Loose(path) => Base::Loose(path),
                },
            },
        })
    }
}

/// What an entry of a pack is made from.
enum Base {
    None(ObjectKind),
    Packed(Arc<Pack>, u64),
    Loose(PathBuf),
}

/// The object at `offset`, which is a delta of `base`, and into `copied` the bytes that it has from there.
fn apply(
    pack: &Pack,
    offset: u64,
    base: &[u8],
    stays: bool,
    copied: Option<&mut Vec<CopiedRange>>,
) -> Result<Vec<u8>, GitError> {
    inflater(|inflater| {
        let head = pack.begin(inflater, offset)?;
        let mut instructions = std::mem::take(&mut inflater.instructions);
        instructions.clear();
        pack.inflate(inflater, offset, &head, &mut instructions)?;
        let mut rest = instructions.as_slice();
        let damaged = |detail: &str| pack.corrupt(format!("offset {offset}: {detail}"));
        let (base_size, size) = delta::sizes(&mut rest).ok_or_else(|| damaged("a delta has no head"))?;
        if base_size != base.len() as u64 {
            return Err(damaged("a delta is made for another base"));
        }
        let len = pack.held_size(offset, size)?;
        if size > delta::made_max(base.len(), rest.len()) {
            return Err(damaged("a delta makes less than it says"));
        }
        let mut made = bytes::buffer(len, stays);
        delta::apply(base, rest, len, &mut made, copied).map_err(damaged)?;
        if instructions.capacity() <= INSTRUCTIONS_KEPT_MAX {
            inflater.instructions = instructions;
        }
        Ok(made)
    })
}

fn chain_too_long(pack: &Pack, offset: u64) -> GitError {
    pack.corrupt(format!("more than {CHAIN_MAX} deltas on each other, or in a circle, at offset {offset}"))
}

fn read_loose(mut loose: loose::Loose) -> Result<Decoded, GitError> {
    if loose.size > HELD_MAX {
        let what = "a loose object".to_owned();
        return Err(GitError::TooLarge { what, size: loose.size, max: HELD_MAX });
    }
    let mut data = Vec::new();
    loose
        .content
        .read_to_end(&mut data)
        .map_err(|error| GitError::Io { what: "loose object".to_owned(), source: error })?;
    Ok(Decoded::new(loose.kind, data))
}
