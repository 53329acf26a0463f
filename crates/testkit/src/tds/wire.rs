//! Packets and messages, and the words they are made of (MS-TDS 2.2.3 and 2.2.5.1).

use std::io::{self, Read, Write};

pub const SQL_BATCH: u8 = 0x01;
pub const RPC: u8 = 0x03;
pub const RESPONSE: u8 = 0x04;
pub const ATTENTION: u8 = 0x06;
pub const LOGIN7: u8 = 0x10;
pub const PRELOGIN: u8 = 0x12;

/// Bytes of a packet's header.
pub const HEADER: usize = 8;
const END_OF_MESSAGE: u8 = 0x01;
/// Bytes of a message from a client, at most.
const MESSAGE_MAX: usize = 16 << 20;

/// One packet: its type, whether it ends a message, and what it carries.
pub fn read_packet(from: &mut impl Read) -> io::Result<(u8, bool, Vec<u8>)> {
    let mut header = [0; HEADER];
    from.read_exact(&mut header)?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let mut body = vec![0; length.checked_sub(HEADER).ok_or(io::ErrorKind::InvalidData)?];
    from.read_exact(&mut body)?;
    Ok((header[0], header[1] & END_OF_MESSAGE != 0, body))
}

/// All packets of a message.
pub fn read_message(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let (kind, mut is_last, mut message) = read_packet(from)?;
    while !is_last {
        let (_, last, body) = read_packet(from)?;
        message.extend_from_slice(&body);
        is_last = last;
        if message.len() > MESSAGE_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok((kind, message))
}

pub fn write_packet(to: &mut impl Write, kind: u8, is_last: bool, number: u8, body: &[u8]) -> io::Result<()> {
    let length = ((body.len() + HEADER) as u16).to_be_bytes();
    let status = if is_last { END_OF_MESSAGE } else { 0 };
    let mut packet = vec![kind, status, length[0], length[1], 0, 0, number, 0];
    packet.extend_from_slice(body);
    to.write_all(&packet)
}

/// Bytes being put together. All numbers are little-endian.
#[derive(Default)]
pub struct Out(Vec<u8>);

impl Out {
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes so many of the first bytes out.
    pub fn take_front(&mut self, count: usize) -> Vec<u8> {
        self.0.drain(..count).collect()
    }

    pub fn u8(&mut self, n: u8) {
        self.0.push(n);
    }

    pub fn u16(&mut self, n: u16) {
        self.bytes(&n.to_le_bytes());
    }

    pub fn u32(&mut self, n: u32) {
        self.bytes(&n.to_le_bytes());
    }

    pub fn u64(&mut self, n: u64) {
        self.bytes(&n.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// UTF-16 with its length in one byte.
    pub fn short_text(&mut self, text: &str) {
        let units: Vec<u16> = text.encode_utf16().take(255).collect();
        self.u8(units.len() as u8);
        units.into_iter().for_each(|unit| self.u16(unit));
    }

    /// UTF-16 with its length in two bytes.
    pub fn text(&mut self, text: &str) {
        let units: Vec<u16> = text.encode_utf16().collect();
        self.u16(units.len() as u16);
        units.into_iter().for_each(|unit| self.u16(unit));
    }

    /// A token whose length precedes it.
    pub fn token(&mut self, kind: u8, write: impl FnOnce(&mut Out)) {
        let mut body = Out::default();
        write(&mut body);
        self.u8(kind);
        self.u16(body.len() as u16);
        self.bytes(&body.0);
    }
}

/// Bytes being taken apart.
pub struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    pub fn new(bytes: &'a [u8]) -> In<'a> {
        In(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(io::ErrorKind::InvalidData)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn u8(&mut self) -> io::Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub fn u16(&mut self) -> io::Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("so many were taken"))
    }
}

/// UTF-16 as text.
pub fn utf16(bytes: &[u8]) -> String {
    let units = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}
