//! Logins of workers and orchestrators, bound to node groups: made, listed and taken away by whoever owns the tables.
//! What a bound login may do is in `docs/fleet/roles.sql`.

use super::rows::{all_of, get, only, text};
use super::transaction::params;
use super::{PostgresStore, Result, queries};
use crate::queries::statement;
use crate::rows::{Columns, FromRow};
use crate::types::Role;

/// One node group of one login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoundLogin {
    pub login: String,
    pub node_group: String,
    pub is_worker: bool,
    pub is_orchestrator: bool,
    /// Whether the database holds it to its node groups: `roles.sql` was applied, and it has no role beyond these.
    pub is_held: bool,
}

impl FromRow for BoundLogin {
    fn from_row(row: &impl Columns) -> Result<BoundLogin> {
        Ok(BoundLogin {
            login: row.value(0)?,
            node_group: row.value(1)?,
            is_worker: row.value(2)?,
            is_orchestrator: row.value(3)?,
            is_held: row.value(4)?,
        })
    }
}

impl PostgresStore {
    /// Makes a login if there is none of this name, gives it what workers or orchestrators may do, and binds it to
    /// these node groups, besides those that it has.
    pub async fn grant_login(&self, login: &str, role: Role, node_groups: &[String]) -> Result<()> {
        const GRANT: &str = statement(queries::LOGINS, "grant_login");
        let bound_role = match role {
            Role::Worker => "domesday_worker",
            Role::Orchestrator => "domesday_orchestrator",
        };
        self.read(GRANT, params![text(login), bound_role, node_groups.to_vec()]).await.map(drop)
    }

    /// Takes these node groups from a login, or all, and ends its connections; whether it had any of them.
    pub async fn revoke_login(&self, login: &str, node_groups: Option<Vec<String>>) -> Result<bool> {
        const REVOKE: &str = statement(queries::LOGINS, "revoke_login");
        get(only(&self.read(REVOKE, params![text(login), node_groups]).await?)?, 0)
    }

    pub async fn logins(&self) -> Result<Vec<BoundLogin>> {
        const LOGINS: &str = statement(queries::LOGINS, "logins");
        all_of(&self.read(LOGINS, params![]).await?)
    }
}
