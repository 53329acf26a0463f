//! The arguments of the processes of a fleet.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use domesday_control::FLEET_RETRIES;
use domesday_model::Retries;

use super::values::{parse_attempts, parse_duration, parse_label, reference_help};
use super::{AllowArgs, StateArgs};

/// The shortest lease: a renewal must have time to reach the book.
const LEASE_MIN: Duration = Duration::from_secs(1);
/// The longest: so long a dead process holds up its work.
const LEASE_MAX: Duration = Duration::from_secs(3_600);

#[derive(Args)]
pub struct ProcessArgs {
    /// The node group to work for
    #[arg(long, value_name = "GROUP")]
    pub node_group: String,
    /// How long this process counts as alive after it was last heard of, such as 30s or 2m
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_lease)]
    pub lease: Duration,
    /// Serve /metrics, /healthz and /readyz on this address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS")]
    pub telemetry: Option<SocketAddr>,
    /// How often a source is tried that does not answer or breaks off, before what it did not give counts as failed
    #[arg(long, value_name = "N", default_value_t = FLEET_RETRIES.attempts, value_parser = parse_attempts)]
    pub attempts: u32,
    #[command(flatten)]
    pub state: StateArgs,
}

impl ProcessArgs {
    pub fn retries(&self) -> Retries {
        Retries { attempts: self.attempts, ..FLEET_RETRIES }
    }
}

#[derive(Args)]
#[command(after_help = "Example:\n  \
    domesday orchestrator --node-group eu --store postgresql://domesday@db/domesday?sslmode=verify-full")]
pub struct OrchestratorArgs {
    #[command(flatten)]
    pub process: ProcessArgs,
}

#[derive(Args)]
#[command(after_help = "Example:\n  \
    domesday worker --node-group eu --slots 8 --label host=nas1 \\\n      \
    --fingerprint-key file:/etc/domesday/key \\\n      \
    --allow-credentials 'env:SRC_GIT_*@git.example,*.corp.example'")]
pub struct WorkerArgs {
    #[command(flatten)]
    pub process: ProcessArgs,
    /// Threads that scan [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub slots: Option<u16>,
    /// What this worker can reach; data sources may ask for it (may be repeated)
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    pub labels: Vec<String>,
    #[arg(
        long,
        value_name = "REFERENCE",
        default_value = "env:DOMESDAY_FINGERPRINT_KEY",
        help = reference_help("Where the key is that fingerprints are made with")
    )]
    pub fingerprint_key: String,
    #[command(flatten)]
    pub allow: AllowArgs,
}

fn parse_lease(text: &str) -> Result<Duration, String> {
    let lease = parse_duration(text)?;
    if lease < LEASE_MIN || lease > LEASE_MAX {
        return Err(format!("a lease is at least {LEASE_MIN:?} and at most {LEASE_MAX:?}"));
    }
    Ok(lease)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_have_limits() {
        assert_eq!(parse_lease("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_lease("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "30", "-1s", "0s", "1d", "2h", "1.5s"] {
            assert!(parse_lease(wrong).is_err(), "{wrong}");
        }
    }
}
