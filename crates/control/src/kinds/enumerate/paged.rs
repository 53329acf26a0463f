//! Listings that come in pages: each page is a unit of its own whose objects are scanned while listing goes on.
//!
//! Where a listing goes on from a point, a page is committed before the next is asked for, so that one that is
//! cut short asks for at most one page again. Where it has no such point it begins anew, and what the pages before
//! have is left out.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use domesday_connector::{ConnectorError, Listing};
use domesday_model::{ObjectKey, TargetDraft, UnitRecord};
use domesday_store::{UnitListing, UnitOutcome, UnitState};

use super::staged::{Exclusion, hash_ranges};
use super::{BATCH_MAX, Enumeration, ListError, PacketError};

/// The resume point of a page that is not the last of a listing that has none.
const GOES_ON: &str = "goes on";
/// Pages whose names are read at once.
const PAGES_AT_ONCE: usize = 64;

impl Enumeration<'_> {
    /// Lists a container page by page, after the last page that is there.
    pub(super) async fn list_pages(
        &mut self,
        container: &ObjectKey,
        begun: Option<&UnitState>,
    ) -> Result<(), ListError> {
        let mut page = begun.map_or(0, |last| last.page + 1);
        let resume_point = begun.and_then(|last| last.resume_point.as_deref());
        if resume_point.is_some() {
            tracing::info!(task_id = %self.packet.claim.task, %container, page, "listing resumed");
        }
        let mut listing = match self.open(container, resume_point).await {
            Ok(listing) => listing,
            Err(error) => return self.fail_or_wait(container, page, error),
        };
        loop {
            let records = match self.next(listing.as_mut()).await {
                Ok(records) => records,
                Err(error) => return self.fail_or_wait(container, page, error),
            };
            let resume_point = listing.resume_point();
            let is_last = resume_point.is_none();
            let listed = Page { records, targets: listing.take_targets() };
            self.push_page(container, page, listed, resume_point).await?;
            if is_last {
                return Ok(());
            }
            self.commit().await?;
            self.settle().await?;
            if self.halt.is_asked() {
                return Err(PacketError::Stopped.into());
            }
            page += 1;
        }
    }

    /// Lists a container from its beginning, page by page, without what the pages that are there have. Pages are
    /// written while the next are listed.
    pub(super) async fn list_growing(
        &mut self,
        container: &ObjectKey,
        begun: Option<&UnitState>,
    ) -> Result<(), ListError> {
        let mut page = begun.map_or(0, |last| last.page + 1);
        if begun.is_some() {
            tracing::info!(task_id = %self.packet.claim.task, %container, page, "listing resumed");
        }
        let known = page;
        // Whether a page is the last one is known when there is no next one.
        let mut waiting: Option<Page> = None;
        for range in hash_ranges(known.saturating_mul(BATCH_MAX as i64)) {
            let exclusion = match known {
                0 => None,
                known => Some(self.exclusion(container, known, range).await?),
            };
            let mut listing = match self.open(container, None).await {
                Ok(listing) => listing,
                Err(error) => return self.end_growing(container, page, waiting, error).await,
            };
            loop {
                let next = self.next_page(listing.as_mut(), exclusion.as_ref()).await;
                let next = match next {
                    Ok(Some(next)) => next,
                    Ok(None) => break,
                    Err(error) => return self.end_growing(container, page, waiting, error).await,
                };
                if let Some(before) = waiting.replace(next) {
                    self.push_page(container, page, before, Some(GOES_ON.to_owned())).await?;
                    self.commit().await?;
                    page += 1;
                }
                if self.halt.is_asked() {
                    return Err(PacketError::Stopped.into());
                }
            }
        }
        Ok(self.push_page(container, page, waiting.unwrap_or_default(), None).await?)
    }

    /// The next batch of which something is left; `None` at the end of the listing.
    async fn next_page(
        &self,
        listing: &mut dyn Listing,
        exclusion: Option<&Exclusion>,
    ) -> Result<Option<Page>, ConnectorError> {
        let mut targets = Vec::new();
        loop {
            let mut records = self.next(listing).await?;
            if records.is_empty() {
                return Ok(None);
            }
            targets.extend(listing.take_targets());
            if let Some(exclusion) = exclusion {
                records.retain(|record| exclusion.wants(record));
            }
            if !records.is_empty() || self.halt.is_asked() {
                return Ok(Some(Page { records, targets }));
            }
        }
    }

    /// What the first `pages` pages have of one range of hashes.
    async fn exclusion(
        &self,
        container: &ObjectKey,
        pages: i64,
        range: RangeInclusive<u8>,
    ) -> Result<Exclusion, PacketError> {
        let (store, claim) = (self.store, &self.packet.claim);
        let mut known = HashSet::new();
        for from in (0..pages).step_by(PAGES_AT_ONCE) {
            let some = from..pages.min(from + PAGES_AT_ONCE as i64);
            let names =
                self.session.ask(&self.halt, || store.listed_names(claim, container, some.clone())).await?;
            let hashes = names.iter().map(|name| ObjectKey::hash128(name));
            known.extend(hashes.filter(|hash| range.contains(&hash[0])));
        }
        Ok(Exclusion { known, range })
    }

    /// A listing that ends with an error keeps the page that waited.
    async fn end_growing(
        &mut self,
        container: &ObjectKey,
        mut page: i64,
        waiting: Option<Page>,
        error: ConnectorError,
    ) -> Result<(), ListError> {
        if let Some(waiting) = waiting {
            self.push_page(container, page, waiting, Some(GOES_ON.to_owned())).await?;
            page += 1;
        }
        self.fail_or_wait(container, page, error)
    }

    async fn push_page(
        &mut self,
        container: &ObjectKey,
        page: i64,
        listed: Page,
        resume_point: Option<String>,
    ) -> Result<(), PacketError> {
        let Page { mut records, targets } = listed;
        self.compare(container, &mut records).await?;
        let outcome = UnitOutcome::Listed(records);
        self.push(UnitListing { key: container.clone(), page, outcome, resume_point, targets });
        Ok(())
    }

    /// A page that could not be had ends the container, unless it is only to be waited for.
    fn fail_or_wait(
        &mut self,
        container: &ObjectKey,
        page: i64,
        error: ConnectorError,
    ) -> Result<(), ListError> {
        match ListError::from(error) {
            ListError::Container(_) if self.halt.is_asked() => Err(PacketError::Stopped.into()),
            ListError::Container(error) => {
                self.fail(container, page, &error);
                Ok(())
            }
            packet => Err(packet),
        }
    }
}

/// What a page has, and what was come upon with it.
#[derive(Default)]
struct Page {
    records: Vec<UnitRecord>,
    targets: Vec<TargetDraft>,
}
