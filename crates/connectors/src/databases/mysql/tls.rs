//! TLS to the server: what the configuration promises, no more and no less.

use std::path::PathBuf;

use domesday_connector::ConnectorError;
use mysql_async::{ClientIdentity, Error, SslOpts};
use rustls::CertificateError;

use super::super::config::{DatabaseConfig, TlsMode};
use super::super::tls::authorities;
use super::error::tls_problem;

/// How a connection is encrypted; `None` in the clear.
pub(super) fn options(config: &DatabaseConfig) -> Result<Option<SslOpts>, ConnectorError> {
    // The first one in holds; it is the same whoever is first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = match config.tls() {
        TlsMode::Disable => return Ok(None),
        TlsMode::Prefer | TlsMode::Require => SslOpts::default().with_danger_accept_invalid_certs(true),
        TlsMode::VerifyCa | TlsMode::VerifyFull => {
            let authorities = authorities(config.ca_file.as_deref())?;
            let roots = authorities.into_iter().map(|authority| authority.to_vec().into()).collect();
            SslOpts::default().with_disable_built_in_roots(true).with_root_certs(roots)
        }
    };
    let path = |file: &String| PathBuf::from(file).into();
    let identity = config.cert_file.as_ref().zip(config.key_file.as_ref());
    let identity = identity.map(|(certificate, key)| ClientIdentity::new(path(certificate), path(key)));
    Ok(Some(options.with_client_identity(identity)))
}

/// With `verify-ca`, a name by which a certificate that was refused for its name alone passes: one that it has.
/// Whoever signed it is checked as before. A certificate without any name has none.
pub(super) fn presented_name(mode: TlsMode, error: &Error) -> Option<String> {
    let Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
        presented, ..
    })) = tls_problem(error).filter(|_| mode == TlsMode::VerifyCa)
    else {
        return None;
    };
    // In the form `DnsName("*.example.org")`.
    let names = presented.iter().filter_map(|name| name.strip_prefix("DnsName(\"")?.strip_suffix("\")"));
    names.map(|name| name.replace('*', "any")).next()
}
