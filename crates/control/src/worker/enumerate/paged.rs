//! Listings that come in pages: each page is a unit of its own, committed before the next is asked for, so
//! that its objects are scanned meanwhile and a listing that is cut short asks for at most one page again.

use domesday_connector::ConnectorError;
use domesday_model::ObjectKey;
use domesday_store::{UnitListing, UnitOutcome, UnitState};

use super::{Enumeration, ListError, PacketError};

impl Enumeration<'_> {
    /// Lists a container page by page, after the last page that is there.
    pub(super) async fn list_pages(
        &mut self,
        container: &ObjectKey,
        begun: Option<&UnitState>,
    ) -> Result<(), ListError> {
        let mut page = begun.map_or(0, |last| last.page + 1);
        let resume_point = begun.and_then(|last| last.resume_point.as_deref());
        if let Some(point) = resume_point {
            tracing::info!(task_id = %self.packet.claim.task, %container, page, point, "listing resumed");
        }
        let mut listing = match self.open(container, resume_point).await {
            Ok(listing) => listing,
            Err(error) => return self.fail_or_wait(container, page, error),
        };
        loop {
            let mut records = match self.next(listing.as_mut()).await {
                Ok(records) => records,
                Err(error) => return self.fail_or_wait(container, page, error),
            };
            self.compare(container, &mut records).await?;
            let resume_point = listing.resume_point();
            let is_last = resume_point.is_none();
            self.push(UnitListing {
                key: container.clone(),
                page,
                outcome: UnitOutcome::Listed(records),
                resume_point,
                targets: listing.take_targets(),
            });
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

    /// A page that could not be had ends the container, unless it is only to be waited for.
    fn fail_or_wait(
        &mut self,
        container: &ObjectKey,
        page: i64,
        error: ConnectorError,
    ) -> Result<(), ListError> {
        match ListError::from(error) {
            ListError::Container(error) => {
                self.fail(container, page, &error);
                Ok(())
            }
            packet => Err(packet),
        }
    }
}
