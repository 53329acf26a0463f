//! Encryption as this protocol has it: the handshake travels inside packets, and what follows does not.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::wire::{self, PRELOGIN};
use crate::postgres::Certificates;

/// What the server shows of itself: a certificate for `localhost`.
pub struct Identity(Arc<ServerConfig>);

impl Identity {
    pub fn new(certificates: &Certificates) -> Identity {
        let chain = CertificateDer::pem_slice_iter(certificates.certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(certificates.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            // What travels in packets of this protocol's version 7 is TLS 1.2 at most.
            .with_protocol_versions(&[&rustls::version::TLS12])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.map(Result::unwrap).collect(), key)
            .unwrap();
        Identity(Arc::new(config))
    }
}

/// A client's socket, encrypted or not.
pub enum Channel {
    Plain(TcpStream),
    Encrypted(Box<StreamOwned<ServerConnection, Framed>>),
}

impl Channel {
    pub fn encrypt(socket: TcpStream, identity: &Identity) -> io::Result<Channel> {
        let mut connection = ServerConnection::new(Arc::clone(&identity.0)).map_err(io::Error::other)?;
        let mut framed = Framed { socket, is_framing: true, incoming: Vec::new(), outgoing: Vec::new() };
        while connection.is_handshaking() {
            connection.complete_io(&mut framed)?;
        }
        framed.flush()?;
        framed.is_framing = false;
        Ok(Channel::Encrypted(Box::new(StreamOwned::new(connection, framed))))
    }

    pub fn socket(&self) -> &TcpStream {
        match self {
            Channel::Plain(socket) => socket,
            Channel::Encrypted(stream) => &stream.sock.socket,
        }
    }
}

impl Read for Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Channel::Plain(socket) => socket.read(buffer),
            Channel::Encrypted(stream) => stream.read(buffer),
        }
    }
}

impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Channel::Plain(socket) => socket.write(bytes),
            Channel::Encrypted(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Channel::Plain(socket) => socket.flush(),
            Channel::Encrypted(stream) => stream.flush(),
        }
    }
}

/// Puts what is written into packets and takes what is read out of them, until the handshake is done.
pub struct Framed {
    socket: TcpStream,
    is_framing: bool,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Read for Framed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_framing && self.incoming.is_empty() {
            self.flush()?;
            self.incoming = wire::read_message(&mut self.socket)?.1;
        }
        if self.incoming.is_empty() {
            return self.socket.read(buffer);
        }
        let count = buffer.len().min(self.incoming.len());
        buffer[..count].copy_from_slice(&self.incoming[..count]);
        self.incoming.drain(..count);
        Ok(count)
    }
}

impl Write for Framed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_framing {
            return self.socket.write(bytes);
        }
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.outgoing.is_empty() {
            let body = std::mem::take(&mut self.outgoing);
            wire::write_packet(&mut self.socket, PRELOGIN, true, 0, &body)?;
        }
        self.socket.flush()
    }
}
