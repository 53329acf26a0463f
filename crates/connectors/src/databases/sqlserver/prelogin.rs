//! The connection beneath the client: its first exchange, in which both sides agree on encryption, and the encryption.
//!
//! The client library brings a TLS of its own that needs a second cryptography, so it is built without any, and this
//! is done for it: we exchange the first messages, encrypt, and then play the client the server's first message as its
//! answer to what it takes for its own. Everything after that passes through.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use domesday_connector::ConnectorError;
use domesday_model::Reason;
use domesday_tls::Problem;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::databases::config::TlsMode;
use crate::databases::tls::explained;

/// Bytes of a packet's header.
const HEADER: usize = 8;
/// The type of a packet that comes before the log-in.
const PRELOGIN: u8 = 0x12;
/// The status of a message's last packet.
const END_OF_MESSAGE: u8 = 0x01;
/// Bytes of the server's first message, at most: it has a handful of short fields.
const GREETING_MAX: usize = 4_096;

const OPTION_VERSION: u8 = 0;
const OPTION_ENCRYPTION: u8 = 1;
const OPTIONS_END: u8 = 0xff;
/// What either side says of encryption.
const ENCRYPT_ON: u8 = 1;
const ENCRYPT_NOT_SUPPORTED: u8 = 2;
const ENCRYPT_REQUIRED: u8 = 3;

/// Connects, and encrypts as far as the mode wants and the server can.
pub(super) async fn connect(
    address: &(String, u16),
    mode: TlsMode,
    tls: Option<&TlsConnector>,
) -> Result<Transport, ConnectorError> {
    let (host, port) = address;
    let failed = |what: &str, error: &io::Error| ConnectorError::Container {
        reason: if error.kind() == io::ErrorKind::InvalidData {
            Reason::ReadError
        } else {
            Reason::Unavailable
        },
        detail: format!("{host}:{port}: {what}: {error}"),
    };
    let refused = |why: &str| ConnectorError::Container {
        reason: Reason::ReadError,
        detail: format!("{host}:{port}: {why}"),
    };
    let target = (host.as_str(), *port);
    let mut socket = TcpStream::connect(target).await.map_err(|error| failed("cannot connect", &error))?;
    // Questions are short and wait for their answers.
    let _ = socket.set_nodelay(true);
    let wanted = if tls.is_some() { ENCRYPT_ON } else { ENCRYPT_NOT_SUPPORTED };
    let greeting =
        greet(&mut socket, wanted).await.map_err(|error| failed("no SQL Server answers", &error))?;
    let given =
        encryption_of(&greeting[HEADER..]).ok_or_else(|| refused("its first message is not understood"))?;
    let channel = match (tls, matches!(given, ENCRYPT_ON | ENCRYPT_REQUIRED)) {
        (Some(tls), true) => {
            let name =
                ServerName::try_from(host.clone()).map_err(|_| refused("this is no name of a server"))?;
            let framed = Framed::new(socket);
            let mut stream = tls.connect(name, framed).await.map_err(|error| match Problem::of(&error) {
                Some(problem) => ConnectorError::Denied {
                    detail: format!("{host}:{port}: cannot encrypt (`tls`): {error}: {}", explained(problem)),
                },
                None => failed("cannot encrypt (`tls`)", &error),
            })?;
            stream.get_mut().0.is_framing = false;
            Channel::Encrypted(Box::new(stream))
        }
        (None, true) => {
            return Err(refused("the server insists on encryption; set `tls` to `prefer` or more"));
        }
        (_, false) if mode == TlsMode::Disable => Channel::Plain(socket),
        // The log-in has the password in it as good as readable.
        (_, false) if mode == TlsMode::Prefer => {
            return Err(ConnectorError::Denied {
                detail: format!(
                    "{host}:{port}: the server cannot encrypt: {}",
                    explained(Problem::ClearPassword)
                ),
            });
        }
        _ => return Err(refused("the server cannot encrypt, and `tls` insists on it")),
    };
    Ok(Transport { channel, greeting, swallowed: Some(Vec::new()) })
}

/// Says what we want of encryption, and takes the server's first message, whose header is kept.
async fn greet(socket: &mut TcpStream, encryption: u8) -> io::Result<Vec<u8>> {
    // Two options of five bytes each, the end, and then what they have to say.
    let version_at = 2 * 5 + 1;
    let mut message =
        vec![OPTION_VERSION, 0, version_at, 0, 6, OPTION_ENCRYPTION, 0, version_at + 6, 0, 1, OPTIONS_END];
    message.extend([0, 0, 0, 0, 0, 0, encryption]);
    socket.write_all(&packet(&message)).await?;
    let mut header = [0; HEADER];
    socket.read_exact(&mut header).await?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[1] & END_OF_MESSAGE == 0 || !(HEADER..=GREETING_MAX).contains(&length) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "this is another protocol"));
    }
    let mut greeting = header.to_vec();
    greeting.resize(length, 0);
    socket.read_exact(&mut greeting[HEADER..]).await?;
    Ok(greeting)
}

/// One packet of the kind that comes before the log-in.
fn packet(body: &[u8]) -> Vec<u8> {
    let length = ((body.len() + HEADER) as u16).to_be_bytes();
    let mut packet = vec![PRELOGIN, END_OF_MESSAGE, length[0], length[1], 0, 0, 0, 0];
    packet.extend_from_slice(body);
    packet
}

/// What the server says of encryption.
fn encryption_of(message: &[u8]) -> Option<u8> {
    let options = message.as_chunks::<5>().0.iter().take_while(|option| option[0] != OPTIONS_END);
    let mut found = options.filter(|option| option[0] == OPTION_ENCRYPTION);
    let [_, high, low, ..] = found.next()?;
    message.get(usize::from(u16::from_be_bytes([*high, *low]))).copied()
}

/// What the client library reads and writes.
pub(super) struct Transport {
    channel: Channel,
    /// What is left of the server's first message for the client to read.
    greeting: Vec<u8>,
    /// What came of the client's first packet, which goes nowhere; `None` when it was all.
    swallowed: Option<Vec<u8>>,
}

enum Channel {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<Framed>>),
}

impl AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.greeting.is_empty() {
            let count = buffer.remaining().min(self.greeting.len());
            buffer.put_slice(&self.greeting[..count]);
            self.greeting.drain(..count);
            return Poll::Ready(Ok(()));
        }
        match &mut self.channel {
            Channel::Plain(socket) => Pin::new(socket).poll_read(context, buffer),
            Channel::Encrypted(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(first) = &mut self.swallowed {
            let length = match first.get(2..4) {
                Some(length) => usize::from(u16::from_be_bytes([length[0], length[1]])).max(HEADER),
                None => 4,
            };
            let count = bytes.len().min(length - first.len());
            first.extend_from_slice(&bytes[..count]);
            if first.len() == length && length > 4 {
                self.swallowed = None;
            }
            return Poll::Ready(Ok(count));
        }
        match &mut self.channel {
            Channel::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            Channel::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.channel {
            Channel::Plain(socket) => Pin::new(socket).poll_flush(context),
            Channel::Encrypted(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.channel {
            Channel::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            Channel::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// A socket that carries the handshake in packets; what comes after it as it is.
struct Framed {
    socket: TcpStream,
    is_framing: bool,
    /// Written, and not in a packet yet.
    outgoing: Vec<u8>,
    /// Packets on their way.
    sending: Vec<u8>,
    /// What came of the header of the packet being read.
    header: Vec<u8>,
    /// Bytes of that packet that are still to come.
    left: usize,
}

impl Framed {
    fn new(socket: TcpStream) -> Framed {
        Framed {
            socket,
            is_framing: true,
            outgoing: Vec::new(),
            sending: Vec::new(),
            header: Vec::new(),
            left: 0,
        }
    }

    /// Reads a packet's header when one is due.
    fn poll_header(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.left == 0 {
            let mut space = [0; HEADER];
            let mut part = ReadBuf::new(&mut space[self.header.len()..]);
            ready!(Pin::new(&mut self.socket).poll_read(context, &mut part))?;
            if part.filled().is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            self.header.extend_from_slice(part.filled());
            if self.header.len() == HEADER {
                let length = usize::from(u16::from_be_bytes([self.header[2], self.header[3]]));
                self.left = length.saturating_sub(HEADER);
                self.header.clear();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Framed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let framed = &mut *self;
        if !framed.is_framing && framed.left == 0 {
            return Pin::new(&mut framed.socket).poll_read(context, buffer);
        }
        ready!(framed.poll_header(context))?;
        let mut part = buffer.take(framed.left);
        ready!(Pin::new(&mut framed.socket).poll_read(context, &mut part))?;
        let count = part.filled().len();
        buffer.advance(count);
        framed.left -= count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Framed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.is_framing {
            return Pin::new(&mut self.socket).poll_write(context, bytes);
        }
        self.outgoing.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let framed = &mut *self;
        if framed.sending.is_empty() && !framed.outgoing.is_empty() {
            framed.sending = packet(&std::mem::take(&mut framed.outgoing));
        }
        while !framed.sending.is_empty() {
            let count = ready!(Pin::new(&mut framed.socket).poll_write(context, &framed.sending))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            framed.sending.drain(..count);
        }
        Pin::new(&mut framed.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
