//! Containers that are listed as a whole: committed by one verb when they fit a batch, else staged batch by
//! batch and made visible by one. A listing that was cut short is begun again, and leaves out what is staged,
//! or clears it, as the connector says.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use domesday_connector::Listing;
use domesday_model::{ObjectKey, ResumePolicy, UnitId, UnitRecord};
use domesday_store::{StageBatch, UnitListing, UnitState};

use super::{EXCLUSION_MAX, Enumeration, ListError, PacketError, Write};

impl Enumeration<'_> {
    /// Lists a container from its beginning.
    pub(super) async fn list(&mut self, container: &ObjectKey) -> Result<(), ListError> {
        let mut listing = self.open(container, None).await?;
        let mut first = self.next(listing.as_mut()).await?;
        // A short batch may be the last one or not: only an empty one is the end.
        let second = self.next(listing.as_mut()).await?;
        if second.is_empty() {
            self.compare(container, &mut first).await?;
            let targets = listing.take_targets();
            self.push(UnitListing { targets, ..UnitListing::whole(container.clone(), first) });
            return Ok(());
        }
        let (_, unit) = self.stage(container, listing, 0, vec![first, second], None).await?;
        Ok(self.publish(unit).await?)
    }

    /// Goes on with a container that an earlier claim had begun.
    pub(super) async fn resume(&mut self, unit: &UnitState, policy: ResumePolicy) -> Result<(), ListError> {
        tracing::info!(task_id = %self.packet.claim.task, container = %unit.key, records = unit.records, "listing resumed");
        if policy == ResumePolicy::ExcludeStaged {
            return self.resume_excluding(unit).await;
        }
        self.settle().await?;
        let (store, claim) = (self.store, &self.packet.claim);
        let cleared = self.session.ask(&self.halt, || store.clear_unit(claim, unit.unit)).await;
        cleared.map_err(PacketError::from)?;
        let listing = self.open(&unit.key, None).await?;
        let (_, unit) = self.stage(&unit.key, listing, 0, Vec::new(), None).await?;
        Ok(self.publish(unit).await?)
    }

    /// Lists again and leaves out what is staged. Each pass looks at one range of hashes, so that the
    /// exclusion list stays small however much is staged.
    async fn resume_excluding(&mut self, unit: &UnitState) -> Result<(), ListError> {
        let (mut next_sequence, mut staging) = (unit.records, None);
        for range in hash_ranges(unit.records) {
            // The last pass's rows are in before the next one looks.
            self.settle().await?;
            let store = self.store;
            let staged = self.session.ask(&self.halt, || store.staged_hashes(unit.unit, range.clone())).await;
            let staged = staged.map_err(PacketError::from)?;
            let exclusion = Exclusion { known: staged.into_iter().collect(), range };
            let listing = self.open(&unit.key, None).await?;
            (next_sequence, staging) =
                self.stage(&unit.key, listing, next_sequence, Vec::new(), Some(exclusion)).await?;
        }
        Ok(self.publish(staging).await?)
    }

    /// Stages the rest of a listing batch by batch; the next free sequence number, and the unit.
    async fn stage(
        &mut self,
        container: &ObjectKey,
        mut listing: Box<dyn Listing>,
        first_sequence: i64,
        batches: Vec<Vec<UnitRecord>>,
        exclusion: Option<Exclusion>,
    ) -> Result<(i64, Option<UnitId>), ListError> {
        // Units commit in order: what was listed before this one goes first.
        self.commit().await?;
        let (mut sequence, mut waiting) = (first_sequence, batches.into_iter());
        let (mut staged, mut unit) = (false, None);
        loop {
            let mut records = match waiting.next() {
                Some(batch) => batch,
                None => self.next(listing.as_mut()).await?,
            };
            let ended = records.is_empty();
            if let Some(exclusion) = &exclusion {
                records.retain(|record| exclusion.wants(record));
            }
            if !records.is_empty() || (ended && !staged) {
                self.compare(container, &mut records).await?;
                self.count(&records);
                let count = records.len() as i64;
                let targets = listing.take_targets();
                let batch = StageBatch { key: container.clone(), first_sequence: sequence, records, targets };
                unit = self.write(Write::Stage(batch)).await?.or(unit);
                staged = true;
                sequence += count;
            }
            if ended {
                break;
            }
            if self.halt.is_asked() {
                return Err(PacketError::Stopped.into());
            }
        }
        let unit = self.settle().await?.or(unit);
        Ok((sequence, unit))
    }

    /// Makes what was staged visible.
    async fn publish(&mut self, unit: Option<UnitId>) -> Result<(), PacketError> {
        if let Some(unit) = unit {
            let (store, claim) = (self.store, &self.packet.claim);
            self.committed(self.session.ask(&self.halt, || store.commit_staged(claim, unit))).await?;
        }
        Ok(())
    }
}

/// What one pass over a container that is in the book in part leaves out.
pub(super) struct Exclusion {
    pub known: HashSet<[u8; 16]>,
    /// First bytes of the hashes this pass looks at.
    pub range: RangeInclusive<u8>,
}

impl Exclusion {
    pub fn wants(&self, record: &UnitRecord) -> bool {
        let hash = ObjectKey::hash128(&record.name);
        self.range.contains(&hash[0]) && !self.known.contains(&hash)
    }
}

/// Ranges of first bytes, so many that none holds more than [`EXCLUSION_MAX`] of `known` hashes (which
/// are evenly spread).
pub(super) fn hash_ranges(known: i64) -> Vec<RangeInclusive<u8>> {
    let passes = (known / EXCLUSION_MAX + 1).clamp(1, 256) as u32;
    (0..passes).map(|i| (256 * i / passes) as u8..=(256 * (i + 1) / passes - 1) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_ranges_cover_every_byte_once() {
        for staged in [0, 1, EXCLUSION_MAX, 3 * EXCLUSION_MAX, 1_000 * EXCLUSION_MAX] {
            let covered: Vec<u8> = hash_ranges(staged).into_iter().flatten().collect();
            assert_eq!(covered, (0..=255).collect::<Vec<u8>>());
        }
        assert_eq!(hash_ranges(EXCLUSION_MAX - 1).len(), 1);
    }
}
