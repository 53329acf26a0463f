//! The packets a session holds, and how they are told to end: all of them, because the worker stops or has
//! lost its lease, or those of one job, because the job stops.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use domesday_model::{ClaimId, JobId, ProcessId};
use domesday_scheduler::{Moved, ScanCore};
use domesday_store::{Claim, Load, StoreError, WorkerStore};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::lease::Duty;
use crate::metrics::Metrics;
use crate::progress::Progress;
use crate::stop::{Stop, StopSignal};

/// A packet that is held.
struct HeldPacket {
    claim: Claim,
    job: JobId,
    signal: StopSignal,
    moved: Moved,
    /// How far it had come when the book was last told that it moves.
    told: u64,
}

pub(crate) struct Held {
    /// By claim: a task that was given back may be claimed again before the last packet of it is forgotten.
    packets: Mutex<HashMap<ClaimId, HeldPacket>>,
    /// The last packet was let go.
    emptied: Notify,
    /// Claim no more; what is held goes on.
    closing: StopSignal,
    /// Everything ends.
    halted: AtomicBool,
    /// And nothing of it can be given back: the lease is gone.
    lost: StopSignal,
    metrics: Arc<Metrics>,
}

impl Held {
    pub fn new(metrics: Arc<Metrics>) -> Held {
        let ((closing, _), (lost, _)) = (StopSignal::new(), StopSignal::new());
        let emptied = Notify::new();
        Held { packets: Mutex::default(), emptied, closing, halted: false.into(), lost, metrics }
    }

    /// Takes a packet up; what tells it to end.
    pub fn take(&self, claim: &Claim, job: JobId) -> Stop {
        let (signal, stop) = StopSignal::new();
        let mut packets = self.packets.lock();
        let (signal_of_packet, moved) = (signal.clone(), Moved::default());
        let packet = HeldPacket { claim: *claim, job, signal: signal_of_packet, moved, told: 0 };
        packets.insert(claim.claim, packet);
        self.metrics.packets_in_flight.set(packets.len() as u64);
        drop(packets);
        // After the packet is in: whoever halts sees it there, or is seen here.
        if self.halted.load(Ordering::SeqCst) {
            signal.stop();
        }
        stop
    }

    /// Counts what a packet moves. Of one that is not held nobody reads the count.
    pub fn moved(&self, claim: &Claim) -> Moved {
        self.packets.lock().get(&claim.claim).map(|packet| packet.moved.clone()).unwrap_or_default()
    }

    /// Packets that moved since the book was last told so, each with how far it has come. One that has not begun waits
    /// for its turn behind others: while they move, so does it.
    fn moving(&self) -> Vec<(Claim, u64)> {
        let packets = self.packets.lock();
        let come: Vec<_> = packets.values().map(|packet| (packet, packet.moved.get())).collect();
        let moves = |packet: &HeldPacket, come: u64| come > packet.told;
        let any = come.iter().any(|(packet, come)| moves(packet, *come));
        let moving = come.into_iter().filter(|(packet, come)| moves(packet, *come) || (any && *come == 0));
        moving.map(|(packet, come)| (packet.claim, come)).collect()
    }

    /// Notes that the book was told of these.
    fn told(&self, moving: &[(Claim, u64)]) {
        let mut packets = self.packets.lock();
        for (claim, come) in moving {
            if let Some(packet) = packets.get_mut(&claim.claim) {
                packet.told = *come;
            }
        }
    }

    /// Whether no packet is held.
    pub fn is_empty(&self) -> bool {
        self.packets.lock().is_empty()
    }

    pub fn let_go(&self, claim: &Claim) {
        let mut packets = self.packets.lock();
        packets.remove(&claim.claim);
        self.metrics.packets_in_flight.set(packets.len() as u64);
        if packets.is_empty() {
            self.emptied.notify_one();
        }
    }

    /// Waits until the last packet is let go; one listener hears of it, now or when it asks next. What may only be
    /// done while nothing is held is looked for then: the book may say nothing more that would be a reason to.
    pub async fn emptied(&self) {
        self.emptied.notified().await;
    }

    pub fn close(&self) {
        self.closing.stop();
    }

    pub fn closing(&self) -> Stop {
        self.closing.listen()
    }

    pub fn halt(&self) {
        self.halted.store(true, Ordering::SeqCst);
        self.close();
        self.packets.lock().values().for_each(|packet| packet.signal.stop());
        #[cfg(test)]
        self.metrics.halts.add(1);
    }

    /// Ends everything: the lease is gone, and what is held is someone else's.
    pub fn lose(&self) {
        self.lost.stop();
        self.halt();
    }

    pub fn is_lost(&self) -> bool {
        self.lost.is_asked()
    }

    /// What a call of the book gives, unless the lease is lost first: then nobody waits for it any more.
    pub async fn unless_lost<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let mut lost = self.lost.listen();
        tokio::select! {
            answer = call => answer,
            () = lost.asked() => Err(StoreError::Stopped),
        }
    }

    fn jobs(&self) -> BTreeSet<JobId> {
        self.packets.lock().values().map(|packet| packet.job).collect()
    }

    fn end_jobs(&self, jobs: &[JobId]) {
        for packet in self.packets.lock().values() {
            if jobs.contains(&packet.job) {
                packet.signal.stop();
            }
        }
    }
}

/// What a worker does with each heartbeat: tells its load and which of its tasks move, and learns which of its jobs
/// stop.
pub(super) struct WorkerDuty {
    held: Arc<Held>,
    core: Arc<ScanCore>,
    progress: Arc<Progress>,
    /// When the load was last told, and objects and bytes then.
    last: Mutex<(Instant, u64, u64)>,
}

impl WorkerDuty {
    pub fn new(held: Arc<Held>, core: Arc<ScanCore>, progress: Arc<Progress>) -> WorkerDuty {
        let last = (Instant::now(), progress.snapshot().objects_done, core.metrics().bytes_scanned);
        WorkerDuty { held, core, progress, last: Mutex::new(last) }
    }
}

#[async_trait]
impl Duty<dyn WorkerStore> for WorkerDuty {
    fn load(&self) -> Load {
        let progress = self.progress.snapshot();
        let (objects, bytes) = (progress.objects_done, self.core.metrics().bytes_scanned);
        let mut last = self.last.lock();
        let elapsed = last.0.elapsed();
        let load = Load {
            running: u32::try_from(self.held.packets.lock().len()).unwrap_or(u32::MAX),
            objects,
            bytes,
            findings: progress.findings,
            objects_per_second: rate(objects.saturating_sub(last.1), elapsed),
            bytes_per_second: rate(bytes.saturating_sub(last.2), elapsed),
        };
        *last = (Instant::now(), objects, bytes);
        load
    }

    async fn beat(&self, store: &dyn WorkerStore, _: ProcessId) -> Result<(), StoreError> {
        let moving = self.held.moving();
        if !moving.is_empty() {
            let claims: Vec<Claim> = moving.iter().map(|(claim, _)| *claim).collect();
            store.renew_progress(&claims).await?;
            // Only now: what could not be told is told with the next heartbeat.
            self.held.told(&moving);
        }
        let jobs = self.held.jobs();
        if !jobs.is_empty() {
            let stopping = store.stopping_jobs(jobs.into_iter().collect()).await?;
            self.held.end_jobs(&stopping);
        }
        Ok(())
    }
}

fn rate(count: u64, elapsed: Duration) -> u64 {
    (count as f64 / elapsed.as_secs_f64().max(0.001)) as u64
}

#[cfg(test)]
mod tests {
    use domesday_model::TaskId;

    use super::*;

    #[tokio::test]
    async fn whoever_waits_until_nothing_is_held_hears_of_it() {
        let held = Held::new(Arc::default());
        let hears = async || tokio::time::timeout(Duration::ZERO, held.emptied()).await.is_ok();
        let claims = [1, 2].map(|n| Claim { task: TaskId(n), claim: ClaimId(n) });
        for claim in &claims {
            held.take(claim, JobId(1));
        }
        assert!(!hears().await);
        held.let_go(&claims[0]);
        assert!(!hears().await, "one is held");
        held.let_go(&claims[1]);
        assert!(hears().await);
        assert!(!hears().await, "once");
    }
}
