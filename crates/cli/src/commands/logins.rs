//! `domesday db grant|grants|revoke`: logins of the fleet's database that are bound to node groups.

use anyhow::{Context, Result, bail};
use domesday_store::Role;
use domesday_store::postgres::{BoundLogin, PostgresStore};
use serde::Serialize;

use super::{list_format, stdout_style};
use crate::args::{LoginRole, StateArgs};
use crate::book::{self, Place};
use crate::{Exit, output, say};

#[derive(Serialize)]
struct LoginJson<'a> {
    login: &'a str,
    node_group: &'a str,
    is_worker: bool,
    is_orchestrator: bool,
    is_held: bool,
}

impl<'a> LoginJson<'a> {
    fn new(login: &'a BoundLogin) -> LoginJson<'a> {
        LoginJson {
            login: &login.login,
            node_group: &login.node_group,
            is_worker: login.is_worker,
            is_orchestrator: login.is_orchestrator,
            is_held: login.is_held,
        }
    }
}

/// The embedded book is a file of one user: it has no logins.
async fn open(state: &StateArgs) -> Result<PostgresStore> {
    match book::place(state)? {
        Place::Fleet(url) => book::connect(&url).await,
        Place::Embedded(_) => bail!("logins are those of a fleet's database: name it with --store"),
    }
}

pub async fn grant(
    login: &str,
    role: LoginRole,
    node_groups: &[String],
    json: bool,
    state: &StateArgs,
) -> Result<Exit> {
    let (role, name) = match role {
        LoginRole::Worker => (Role::Worker, "worker"),
        LoginRole::Orchestrator => (Role::Orchestrator, "orchestrator"),
    };
    let store = open(state).await?;
    store.grant_login(login, role, node_groups).await.with_context(|| {
        format!("`{login}` is not bound; it takes an administrator of the database, and docs/fleet/roles.sql before")
    })?;
    let bound: Vec<_> = store.logins().await?.into_iter().filter(|bound| bound.login == login).collect();
    let groups: Vec<&str> = bound.iter().map(|bound| bound.node_group.as_str()).collect();
    let answer = serde_json::json!({ "login": login, "role": name, "node_groups": groups });
    let line = format!("{login} may work as {name} for {}", groups.join(", "));
    output::write_answer(&mut std::io::stdout().lock(), &answer, &[line], list_format(json))?;
    Ok(warn_of_unheld(&bound))
}

pub async fn list(json: bool, state: &StateArgs) -> Result<Exit> {
    let logins = open(state).await?.logins().await?;
    let header = ["login", "node group", "role", "held"];
    let (mut out, format) = (std::io::stdout().lock(), list_format(json));
    output::write_list(&mut out, &logins, LoginJson::new, (header, row), format, stdout_style())?;
    Ok(warn_of_unheld(&logins))
}

fn row(login: &BoundLogin) -> [String; 4] {
    let roles = [(login.is_worker, "worker"), (login.is_orchestrator, "orchestrator")];
    let roles: Vec<&str> = roles.into_iter().filter_map(|(is, name)| is.then_some(name)).collect();
    let held = if login.is_held { "yes" } else { "no" };
    [login.login.clone(), login.node_group.clone(), roles.join(", "), held.to_owned()]
}

fn warn_of_unheld(logins: &[BoundLogin]) -> Exit {
    match logins.iter().find(|login| !login.is_held) {
        None => Exit::Clean,
        Some(BoundLogin { login, .. }) => {
            say(format_args!(
                "{login} is not held to its node groups: apply docs/fleet/roles.sql, and give it no other role"
            ));
            Exit::Incomplete
        }
    }
}

pub async fn revoke(
    login: &str,
    node_groups: Option<&[String]>,
    json: bool,
    state: &StateArgs,
) -> Result<Exit> {
    let store = open(state).await?;
    let was_bound = store
        .revoke_login(login, node_groups.map(<[_]>::to_vec))
        .await
        .with_context(|| format!("`{login}` stays as it is; it takes an administrator of the database"))?;
    if !was_bound {
        bail!("`{login}` is bound to no such node group: `domesday db grants` shows what there is");
    }
    let left = store.logins().await?;
    let left: Vec<&str> =
        left.iter().filter(|bound| bound.login == login).map(|bound| bound.node_group.as_str()).collect();
    let answer = serde_json::json!({ "login": login, "node_groups": left });
    let line = match &left[..] {
        [] => format!("{login} is bound to no node group, and sees nothing"),
        left => format!("{login} is left with {}", left.join(", ")),
    };
    output::write_answer(&mut std::io::stdout().lock(), &answer, &[line], list_format(json))?;
    Ok(Exit::Clean)
}
