//! TLS to a server: what the configuration's `tls`, `ca_file`, `cert_file` and `key_file` promise.

use domesday_connector::ConnectorError;
use domesday_model::Reason;
use domesday_tls::{Client, Identity, Problem, TlsError, Verify};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;

use super::config::{DatabaseConfig, TlsMode};

/// What a client of this configuration asks of a server. Reads the files it names.
pub(super) fn client_config(config: &DatabaseConfig) -> Result<ClientConfig, ConnectorError> {
    client_config_of(config, config.tls(), rustls::DEFAULT_VERSIONS)
}

/// The same in this mode, of these versions of the protocol alone.
pub(super) fn client_config_of(
    config: &DatabaseConfig,
    mode: TlsMode,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Result<ClientConfig, ConnectorError> {
    let verify = match mode {
        TlsMode::Disable | TlsMode::Prefer | TlsMode::Require => Verify::Nothing,
        TlsMode::VerifyCa => Verify::Authority,
        TlsMode::VerifyFull => Verify::Full,
    };
    let identity = match (&config.cert_file, &config.key_file) {
        (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
        _ => None,
    };
    Client { verify, authorities: config.ca_file.as_deref(), identity, versions }.config().map_err(refused)
}

/// A problem of the connection, and what to do about it.
pub(super) fn explained(problem: Problem) -> String {
    format!("{problem}: {}", problem.advice("`ca_file`", "`tls`"))
}

/// The authorities in a file, or those of the system; there is one at least.
pub(super) fn authorities(file: Option<&str>) -> Result<Vec<CertificateDer<'static>>, ConnectorError> {
    domesday_tls::authorities(file).map_err(refused)
}

fn refused(error: TlsError) -> ConnectorError {
    let field = match error {
        TlsError::Authorities(_) => "ca_file",
        TlsError::Certificate(_) => "cert_file",
        TlsError::Key(_) => "key_file",
        TlsError::Versions(_) => "tls",
    };
    let detail = format!("TLS to the database cannot be set up: field `{field}`: {error}");
    ConnectorError::Container { reason: Reason::ReadError, detail }
}
