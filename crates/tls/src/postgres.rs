//! TLS as tokio-postgres wants it.
//!
//! The library, left to itself, goes on in clear text when a server says that it has no TLS, and then sends the password
//! in whatever form the server asks for. So both sides' agreement on TLS is made here, and a connection that stays
//! unencrypted is watched until the log-in is over: a request for the password in clear text ends it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

use crate::Problem;

/// The message that asks a server for TLS: its length, and a version that is none.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
/// The answer of a server that has it.
const TLS_ACCEPTED: u8 = b'S';

/// Whether a connection is encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encryption {
    Never,
    /// If the server can.
    Preferred,
    Required,
}

/// Makes handshakes with this configuration.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    is_required: bool,
}

impl Tls {
    /// What to connect with; `server` is told to leave the agreement on TLS to it.
    pub fn new(mut config: ClientConfig, encryption: Encryption, server: &mut tokio_postgres::Config) -> Tls {
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        match encryption {
            Encryption::Never => server.ssl_mode(SslMode::Disable),
            // To the library this is TLS without a question.
            _ => server.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct),
        };
        Tls { config: Arc::new(config), is_required: encryption == Encryption::Required }
    }
}

/// A handshake to be made with a server of this name.
pub struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
    is_required: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        // A socket file has no name, and no TLS either.
        let name = if host.is_empty() { "localhost" } else { host };
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::clone(&self.config));
        Ok(Handshake { connector, name, is_required: self.is_required })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, mut stream: S) -> Self::Future {
        Box::pin(async move {
            stream.write_all(&TLS_REQUEST).await?;
            // One byte and no more: whatever else is there already was not encrypted.
            match stream.read_u8().await? {
                TLS_ACCEPTED => {
                    let stream = self.connector.connect(self.name, stream).await?;
                    Ok(Stream::Encrypted(Box::new(stream)))
                }
                _ if self.is_required => Err(io::Error::other(Problem::NoTls)),
                _ => Ok(Stream::Plain { stream, login: LoginWatch::default() }),
            }
        })
    }
}

/// A connection, encrypted if the server can.
pub enum Stream<S> {
    Encrypted(Box<tokio_rustls::client::TlsStream<S>>),
    Plain { stream: S, login: LoginWatch },
}

/// Follows what a server says until it has let us in.
#[derive(Default)]
pub struct LoginWatch {
    /// Of the message that begins: type, length, and the first word of its body if it is about authentication.
    head: Vec<u8>,
    /// Bytes of the message that do not matter.
    rest: usize,
    is_over: bool,
}

impl LoginWatch {
    /// Refuses what asks for the password in clear text.
    fn see(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        const AUTHENTICATION: u8 = b'R';
        const LET_IN: [u8; 4] = [0, 0, 0, 0];
        const CLEAR_PASSWORD: [u8; 4] = [0, 0, 0, 3];
        while !self.is_over && !bytes.is_empty() {
            let skipped = self.rest.min(bytes.len());
            self.rest -= skipped;
            bytes = &bytes[skipped..];
            let Some((first, after)) = bytes.split_first() else { break };
            self.head.push(*first);
            bytes = after;
            let (length, request) = match self.head[..] {
                [kind, a, b, c, d] if kind != AUTHENTICATION => ([a, b, c, d], None),
                [_, a, b, c, d, e, f, g, h] => ([a, b, c, d], Some([e, f, g, h])),
                _ => continue,
            };
            if request == Some(CLEAR_PASSWORD) {
                return Err(io::Error::other(Problem::ClearPassword));
            }
            self.is_over = request == Some(LET_IN);
            // The length counts itself.
            let seen = if request.is_some() { 8 } else { 4 };
            self.rest = (u32::from_be_bytes(length) as usize).saturating_sub(seen);
            self.head.clear();
        }
        Ok(())
    }
}

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
        match &mut *self {
            Stream::Encrypted(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Plain { stream, login } => {
                let before = buffer.filled().len();
                ready!(Pin::new(stream).poll_read(context, buffer))?;
                Poll::Ready(login.see(&buffer.filled()[before..]))
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Stream::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Plain { stream, .. } => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Encrypted(stream) => Pin::new(stream).poll_flush(context),
            Stream::Plain { stream, .. } => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Stream::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Plain { stream, .. } => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_the_password_is_noticed_however_it_arrives() {
        let notice = [&b"N\0\0\0\x0b"[..], b"R\0\0\0\x08\0\0"].concat();
        let sasl = [&b"R\0\0\0\x0c\0\0\0\x0a"[..], b"\0\0\0\x03"].concat();
        let clear = b"R\0\0\0\x08\0\0\0\x03".to_vec();
        let let_in = b"R\0\0\0\x08\0\0\0\0".to_vec();
        for (messages, is_refused) in [
            (vec![&clear], true),
            (vec![&notice, &clear], true),
            (vec![&sasl, &clear], true),
            (vec![&notice, &sasl, &let_in], false),
            // What comes afterwards are rows.
            (vec![&let_in, &clear], false),
        ] {
            let said: Vec<u8> = messages.into_iter().flatten().copied().collect();
            for size in 1..=said.len() {
                let mut watch = LoginWatch::default();
                let seen: io::Result<Vec<()>> = said.chunks(size).map(|chunk| watch.see(chunk)).collect();
                assert_eq!(seen.is_err(), is_refused, "{said:?} by {size}");
            }
        }
    }
}
