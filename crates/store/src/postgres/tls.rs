//! TLS to the server, by rustls: what `sslmode` and `sslrootcert` promise, no more and no less.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

use super::Result;
use crate::error::StoreError;

/// Where systems keep the authorities they trust, for `sslrootcert=system`.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What of the server's certificate is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verify {
    /// Nothing: whoever listens is only kept from listening in passing.
    Nothing,
    /// That an authority signed it.
    Authority,
    /// And that it is this server's.
    Full,
}

#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    pub fn new(verify: Verify, roots: Option<&str>) -> Result<Tls> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match verify {
            Verify::Nothing => Arc::new(Lenient { provider: Arc::clone(&provider), authority: None }),
            Verify::Authority | Verify::Full => {
                let roots = Arc::new(read_roots(roots.unwrap_or("system"))?);
                let full = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
                    .build()
                    .map_err(|error| refused(&error.to_string()))?;
                match verify {
                    Verify::Full => full,
                    _ => Arc::new(Lenient { provider: Arc::clone(&provider), authority: Some(full) }),
                }
            }
        };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(&error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Tls(Arc::new(config)))
    }
}

fn refused(why: &str) -> StoreError {
    StoreError::Refused(format!("TLS to the database cannot be set up: {why}"))
}

fn read_roots(file: &str) -> Result<RootCertStore> {
    let file = match file {
        "system" => {
            SYSTEM_ROOTS.into_iter().find(|path| std::path::Path::new(path).exists()).ok_or_else(|| {
                refused("this system keeps its authorities in no known place; name a file with sslrootcert")
            })?
        }
        file => file,
    };
    let unreadable = |error: rustls::pki_types::pem::Error| refused(&format!("sslrootcert {file}: {error}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(unreadable)? {
        // One of many that this library cannot read is no reason to refuse the rest.
        let _ = roots.add(certificate.map_err(unreadable)?);
    }
    match roots.is_empty() {
        true => Err(refused(&format!("sslrootcert {file} has no certificate in it"))),
        false => Ok(roots),
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
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
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
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A handshake to be made with a server of this name.
pub(super) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        // A socket file has no name, and no TLS either.
        let name = if host.is_empty() { "localhost" } else { host };
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        Ok(Handshake { connector: TlsConnector::from(Arc::clone(&self.0)), name })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            self.connector.connect(self.name, stream).await.map(|stream| Stream(Box::new(stream)))
        })
    }
}

/// An encrypted connection.
pub(super) struct Stream<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Stream<S> {
    /// Authentication is not bound to the channel: that needs the certificate's own hash algorithm, and
    /// `verify-full` already proves who the server is.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
