//! What one fan-out does, planned from the units that wait: pure, and the same for every backend. A backend
//! reads the units and how many tasks are pending, and writes the plan in the same transaction.

use domesday_model::{ByTaskType, DatasourceId, EnumerationSessionId, JobId, Takes, TaskType};

use super::packing::{CONTAINERS, OBJECTS, PackLimits, UnitTotals, pack};
use super::tasks::NewTask;
use super::units::{FANNED_CONTAINERS, FANNED_OBJECTS};
use crate::types::{FanOutPolicy, FanOutReport};

/// Units one fan-out looks at.
pub(crate) const FAN_OUT_UNITS_MAX: u32 = 8_192;
/// Enumeration first: while containers are unlisted, nobody knows how much there is to do.
pub(crate) const ENUMERATION_PRIORITY: i64 = 10;

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

/// How the tasks of one type are packed.
pub(crate) struct Packing {
    bit: i64,
    limits: PackLimits,
    priority: i64,
    /// Of a unit: how many items there are to pack, and their bytes.
    totals: fn(&Waiting) -> (i64, i64),
}

impl Packing {
    fn of(task_type: TaskType) -> Option<Packing> {
        match task_type.facts().takes {
            Takes::Containers => Some(Packing {
                bit: FANNED_CONTAINERS,
                limits: CONTAINERS,
                priority: ENUMERATION_PRIORITY,
                totals: |unit| (unit.containers, 0),
            }),
            Takes::Objects => Some(Packing {
                bit: FANNED_OBJECTS,
                limits: OBJECTS,
                priority: 0,
                totals: |unit| (unit.objects, unit.bytes),
            }),
            Takes::Nothing => None,
        }
    }
}

/// The types whose tasks are packed from units, each with how.
pub(crate) fn packed() -> impl Iterator<Item = (TaskType, Packing)> {
    TaskType::ALL.iter().filter_map(|&task_type| Some((task_type, Packing::of(task_type)?)))
}

/// `pending` says how many tasks of each packed type are pending (at least `ready_low` is as good as the number).
pub(crate) fn plan(job: JobId, waiting: &[Waiting], policy: FanOutPolicy, pending: &ByTaskType<i64>) -> Plan {
    let mut sessions: Vec<_> = waiting.iter().map(|unit| (unit.session, unit.datasource)).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let mut plan = Plan::default();
    for (session, datasource) in sessions {
        for (task_type, packing) in packed() {
            let waits = |unit: &&Waiting| unit.session == session && unit.fanned_out & packing.bit == 0;
            let totals = |unit: &Waiting| {
                let (items, bytes) = (packing.totals)(unit);
                UnitTotals { unit: unit.unit, records: unit.records, items, bytes }
            };
            let units: Vec<UnitTotals> = waiting.iter().filter(waits).map(totals).collect();
            let planned = plan.tasks.iter().filter(|task| task.task_type == task_type).count() as i64;
            let ready = pending[task_type].saturating_add(planned);
            let (payloads, covered) = pack(&units, packing.limits, ready < i64::from(policy.ready_low));
            plan.report.tasks[task_type] += payloads.len() as u64;
            plan.report.units += covered as u64;
            plan.covered.extend(units[..covered].iter().map(|unit| (unit.unit, packing.bit)));
            plan.tasks.extend(payloads.into_iter().map(|payload| NewTask {
                task_type,
                priority: packing.priority,
                payload,
                ..NewTask::root(job, datasource, session)
            }));
        }
    }
    plan
}
