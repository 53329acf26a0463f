//! What a client asks of a server.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

/// Where systems keep the authorities they trust.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What of the server's certificate is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verify {
    /// Nothing: whoever listens is only kept from listening in passing.
    Nothing,
    /// That an authority signed it.
    Authority,
    /// And that it is this server's.
    Full,
}

/// How a connection is to be encrypted.
#[derive(Clone, Copy)]
pub struct Client<'a> {
    pub verify: Verify,
    /// A PEM file of authorities; the system's if there is none.
    pub authorities: Option<&'a str>,
    pub identity: Option<Identity<'a>>,
    pub versions: &'a [&'static SupportedProtocolVersion],
}

/// Who we are: PEM files.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    pub certificate: &'a str,
    pub key: &'a str,
}

/// What cannot be used, and why.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{0}")]
    Authorities(String),
    #[error("{0}")]
    Certificate(String),
    #[error("{0}")]
    Key(String),
    #[error("{0}")]
    Versions(String),
}

impl Default for Client<'_> {
    fn default() -> Self {
        Client { verify: Verify::Full, authorities: None, identity: None, versions: rustls::DEFAULT_VERSIONS }
    }
}

impl Client<'_> {
    /// Reads the files that are named.
    pub fn config(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let lenient = |authority| Arc::new(Lenient { provider: Arc::clone(&provider), authority });
        let verifier: Arc<dyn ServerCertVerifier> = match self.verify {
            Verify::Nothing => lenient(None),
            Verify::Authority => lenient(Some(self.full(&provider)?)),
            Verify::Full => self.full(&provider)?,
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(self.versions)
            .map_err(|error| TlsError::Versions(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let Some(Identity { certificate, key }) = self.identity else {
            return Ok(builder.with_no_client_auth());
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
        let chain = chain.map_err(|error| TlsError::Certificate(format!("{certificate}: {error}")))?;
        let key =
            PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::Key(format!("{key}: {error}")))?;
        builder.with_client_auth_cert(chain, key).map_err(|error| TlsError::Certificate(error.to_string()))
    }

    fn full(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities(self.authorities)?);
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|error| TlsError::Authorities(error.to_string()))
    }
}

/// The authorities in a file, or those of the system; there is one at least.
pub fn authorities(file: Option<&str>) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let system = || SYSTEM_ROOTS.into_iter().find(|path| Path::new(path).exists());
    let Some(file) = file.or_else(system) else {
        let why = "this system keeps its authorities in no known place; name a file";
        return Err(TlsError::Authorities(why.to_owned()));
    };
    let unreadable = |error: rustls::pki_types::pem::Error| TlsError::Authorities(format!("{file}: {error}"));
    let mut found = Vec::new();
    for certificate in CertificateDer::pem_file_iter(file).map_err(unreadable)? {
        let certificate = certificate.map_err(unreadable)?;
        // One of many that this library cannot read is no reason to refuse the rest.
        if RootCertStore::empty().add(certificate.clone()).is_ok() {
            found.push(certificate);
        }
    }
    match found.is_empty() {
        true => Err(TlsError::Authorities(format!("{file} has no certificate in it"))),
        false => Ok(found),
    }
}

/// Checks less than a browser would, as asked: the authority without the name, or neither. That the server
/// has the certificate's key is always checked.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    authority: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is the last thing it checks.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
