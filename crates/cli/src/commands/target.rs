//! `domesday target list|show`.

use anyhow::{Result, bail};
use domesday_store::{ScanTarget, TargetFilter};
use serde::Serialize;
use serde_json::Value;

use super::which::find_job;
use super::{PAGE_ROWS, list_format, runtime, stdout_style};
use crate::args::{StateArgs, TargetArgs, TargetCommand, TargetListArgs, WhichTarget};
use crate::book;
use crate::{Exit, output};

pub fn run(args: &TargetArgs) -> Result<Exit> {
    runtime()?.block_on(async {
        match &args.command {
            TargetCommand::List(args) => list(args).await,
            TargetCommand::Show { which, json, state } => show(which, *json, state).await,
        }
    })
}

#[derive(Serialize)]
struct TargetJson<'a> {
    id: String,
    name: &'a str,
    #[serde(rename = "type")]
    target_type: &'static str,
    target_id: i64,
    url: Option<&'a str>,
    is_active: Option<bool>,
    metadata: &'a Value,
    created_at: String,
    last_scan_time: Option<String>,
}

impl<'a> TargetJson<'a> {
    fn new(target: &'a ScanTarget) -> TargetJson<'a> {
        TargetJson {
            id: target.id.to_string(),
            name: &target.name,
            target_type: target.target_type.as_str(),
            target_id: target.target_id,
            url: target.url.as_deref(),
            is_active: target.is_active,
            metadata: &target.metadata,
            created_at: output::timestamp(target.created_at_ms),
            last_scan_time: target.last_scan_time_ms.map(output::timestamp),
        }
    }
}

async fn list(args: &TargetListArgs) -> Result<Exit> {
    let store = book::read(&args.state).await?;
    let master = match &args.job {
        Some(id) => Some(find_job(store.as_ref(), Some(id)).await?.id),
        None => None,
    };
    let filter = TargetFilter { target_type: args.target_type, master, session: None };
    let header = ["target", "type", "last scan utc", "name"];
    let out = std::io::stdout().lock();
    let mut pages = output::ListPages::new(out, header, list_format(args.json), stdout_style());
    let (mut left, mut after) = (args.max, None);
    while left > 0 {
        let page = store.targets(filter, after, left.min(PAGE_ROWS)).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        left = left.saturating_sub(page.len() as u32);
        pages.page(&page, TargetJson::new, row)?;
    }
    pages.end()?;
    Ok(Exit::Clean)
}

fn row(target: &ScanTarget) -> [String; 4] {
    [
        target.id.to_string(),
        target.target_type.as_str().to_owned(),
        target.last_scan_time_ms.map(output::timestamp).unwrap_or_default(),
        target.name.clone(),
    ]
}

/// An address may be that of a repository and of a page: then both are shown, as a list.
async fn show(which: &WhichTarget, json: bool, state: &StateArgs) -> Result<Exit> {
    let store = book::read(state).await?;
    let targets = match which {
        WhichTarget::Id(id) => store.target(*id).await?.into_iter().collect(),
        WhichTarget::Url(url) => store.targets_by_url(url).await?,
    };
    let (mut out, format, style) = (std::io::stdout().lock(), list_format(json), stdout_style());
    match &targets[..] {
        [] => match which {
            WhichTarget::Id(id) => bail!("there is no target {id}: `domesday target list` shows them"),
            WhichTarget::Url(url) => {
                bail!("no target has the address {url}: `domesday target list` shows them")
            }
        },
        [target] => output::write_detail(&mut out, &TargetJson::new(target), fields(target), format, style)?,
        several => {
            let header = ["target", "type", "last scan utc", "name"];
            output::write_list(&mut out, several, TargetJson::new, (header, row), format, style)?;
        }
    }
    Ok(Exit::Clean)
}

fn fields(target: &ScanTarget) -> Vec<(&'static str, String)> {
    let active = target.is_active.map(|active| if active { "yes" } else { "no: archived or disabled" });
    vec![
        ("target", target.id.to_string()),
        ("type", target.target_type.as_str().to_owned()),
        ("name", target.name.clone()),
        ("address", target.url.clone().unwrap_or_default()),
        ("active", active.unwrap_or_default().to_owned()),
        ("last scan", target.last_scan_time_ms.map(output::timestamp).unwrap_or_default()),
        ("first seen", output::timestamp(target.created_at_ms)),
        ("metadata", target.metadata.to_string()),
    ]
}
