//! Asking the server to stop what it works on for a session.
//!
//! The request is a connection of its own, which the server closes when it has done what it could. That is waited for, as
//! the server's own clients do: a pool in between passes the request on, and PgBouncer 1.18 takes whoever came after one
//! that left early for it.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use domesday_tls::is_socket;
use domesday_tls::postgres::Tls;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::CancelToken;
use tokio_postgres::tls::MakeTlsConnect;

/// What it takes to call off the statements of one session.
#[derive(Clone)]
pub(super) struct Canceller {
    pub token: CancelToken,
    pub tls: Tls,
    pub host: String,
    pub port: u16,
}

impl Canceller {
    pub async fn cancel(self) -> io::Result<()> {
        let Canceller { token, tls, host, port } = self;
        if is_socket(&host) {
            let file = Path::new(&host).join(format!(".s.PGSQL.{port}"));
            // A socket file has no name that a certificate could be for.
            return send(&token, tls, "", UnixStream::connect(file).await?).await;
        }
        let server = TcpStream::connect((host.as_str(), port)).await?;
        send(&token, tls, &host, server).await
    }
}

async fn send<S>(token: &CancelToken, mut tls: Tls, host: &str, server: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = MakeTlsConnect::<UntilClosed<S>>::make_tls_connect(&mut tls, host)?;
    token.cancel_query_raw(UntilClosed(server), handshake).await.map_err(io::Error::other)
}

/// A connection that is only closed after the other side has closed it.
struct UntilClosed<S>(S);

impl<S: AsyncRead + Unpin> AsyncRead for UntilClosed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for UntilClosed<S> {
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
        loop {
            let mut byte = [0];
            let mut answer = ReadBuf::new(&mut byte);
            let read = ready!(Pin::new(&mut self.0).poll_read(context, &mut answer));
            if read.is_err() || answer.filled().is_empty() {
                return Pin::new(&mut self.0).poll_shutdown(context);
            }
        }
    }
}
