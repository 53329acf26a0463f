//! What one fan-out does, planned from the units that wait: pure, and the same for every backend. A backend
//! reads the units and how many tasks are pending, and writes the plan in the same transaction.

use domesday_model::{DatasourceId, EnumerationSessionId, JobId, TaskType};

use super::packing::{CONTAINERS, OBJECTS, PackLimits, UnitTotals, pack};
use super::tasks::NewTask;
use super::units::{FANNED_CONTAINERS, FANNED_OBJECTS};
use crate::types::{FanOutPolicy, FanOutReport};

/// Units one fan-out looks at.
pub(crate) const FAN_OUT_UNITS_MAX: u32 = 8_192;
/// Enumeration first: while containers are unlisted, nobody knows how much there is to do.
const ENUMERATION_PRIORITY: i64 = 10;

/// A committed unit of which something is to be fanned out.
pub(crate) struct Waiting {
    pub unit: domesday_model::UnitId,
    pub session: EnumerationSessionId,
    pub datasource: DatasourceId,
    pub records: i64,
    pub containers: i64,
    pub objects: i64,
    pub bytes: i64,
    pub fanned_out: i64,
}

/// Tasks to insert, and exactly the units they cover, each with the bit to set.
#[derive(Default)]
pub(crate) struct Plan {
    pub tasks: Vec<NewTask>,
    pub covered: Vec<(domesday_model::UnitId, i64)>,
    pub report: FanOutReport,
}

/// One type of pack.
struct Kind {
    task_type: TaskType,
    bit: i64,
    limits: PackLimits,
    priority: i64,
    totals: fn(&Waiting) -> UnitTotals,
}

const KINDS: [Kind; 2] = [
    Kind {
        task_type: TaskType::DiscoveryEnumerate,
        bit: FANNED_CONTAINERS,
        limits: CONTAINERS,
        priority: ENUMERATION_PRIORITY,
        totals: |unit| UnitTotals {
            unit: unit.unit,
            records: unit.records,
            items: unit.containers,
            bytes: 0,
        },
    },
    Kind {
        task_type: TaskType::Classification,
        bit: FANNED_OBJECTS,
        limits: OBJECTS,
        priority: 0,
        totals: |unit| UnitTotals {
            unit: unit.unit,
            records: unit.records,
            items: unit.objects,
            bytes: unit.bytes,
        },
    },
];

/// `pending` tells how many tasks of a type are pending (at least `ready_low` is as good as the number).
pub(crate) fn plan(
    job: JobId,
    waiting: &[Waiting],
    policy: FanOutPolicy,
    pending: impl Fn(TaskType) -> i64,
) -> Plan {
    let mut sessions: Vec<_> = waiting.iter().map(|unit| (unit.session, unit.datasource)).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let mut plan = Plan::default();
    for (session, datasource) in sessions {
        for kind in &KINDS {
            let waits = |unit: &&Waiting| unit.session == session && unit.fanned_out & kind.bit == 0;
            let units: Vec<UnitTotals> = waiting.iter().filter(waits).map(kind.totals).collect();
            let planned = plan.tasks.iter().filter(|task| task.task_type == kind.task_type).count() as i64;
            let ready = pending(kind.task_type).saturating_add(planned);
            let (payloads, covered) = pack(&units, kind.limits, ready < i64::from(policy.ready_low));
            match kind.task_type {
                TaskType::DiscoveryEnumerate => plan.report.enumeration_tasks += payloads.len() as u64,
                TaskType::Classification => plan.report.classification_tasks += payloads.len() as u64,
                // Follows from sessions, not from units.
                TaskType::Tracing => {}
            }
            plan.report.units += covered as u64;
            plan.covered.extend(units[..covered].iter().map(|unit| (unit.unit, kind.bit)));
            plan.tasks.extend(payloads.into_iter().map(|payload| NewTask {
                job,
                datasource,
                session,
                origin: None,
                task_type: kind.task_type,
                priority: kind.priority,
                payload,
                abandonments: 0,
            }));
        }
    }
    plan
}
