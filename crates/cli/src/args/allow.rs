//! What this process gives to data sources, which others may have written.

use clap::Args;
use domesday_connector::HostPattern;
use domesday_connector::credentials::{CredentialError, CredentialPolicy};

#[derive(Args, Default)]
pub struct AllowArgs {
    /// Give data sources these secrets, as env:SRC_*, file:/FOLDER/*, vault:MOUNT/PATH or command:PROGRAM; with
    /// @HOST,HOST for these servers only (may be repeated) [default: none]
    #[arg(long = "allow-credentials", value_name = "REFERENCE")]
    credentials: Vec<String>,
    /// Send the credentials that a cloud's tools find on this machine to this server, too (may be repeated)
    /// [default: the cloud's own servers]
    #[arg(long = "allow-endpoint", value_name = "HOST", value_parser = parse_host)]
    endpoints: Vec<HostPattern>,
}

impl AllowArgs {
    pub fn policy(&self) -> Result<CredentialPolicy, CredentialError> {
        Ok(CredentialPolicy::allowing(&self.credentials)?.with_endpoints(self.endpoints.iter().cloned()))
    }
}

fn parse_host(text: &str) -> Result<HostPattern, String> {
    HostPattern::parse(text).ok_or_else(|| {
        format!("`{text}` is not a host: write minio.example, *.corp.example or minio.example:9000")
    })
}
