//! The beginning of a connection: what encryption both sides can do, and who logs in (MS-TDS 2.2.6.4 and 2.2.6.5).

use std::io;

use super::wire::{In, Out, utf16};

/// Whether the connection is encrypted, as one byte of the first message says.
pub const ENCRYPT_ON: u8 = 1;
pub const ENCRYPT_NOT_SUPPORTED: u8 = 2;
pub const ENCRYPT_REQUIRED: u8 = 3;

const OPTION_VERSION: u8 = 0;
const OPTION_ENCRYPTION: u8 = 1;
const OPTION_INSTANCE: u8 = 2;
const OPTION_MARS: u8 = 4;
const OPTIONS_END: u8 = 0xff;

/// What a client's first message says of encryption.
pub fn wanted_encryption(message: &[u8]) -> io::Result<u8> {
    let mut options = In::new(message);
    loop {
        let option = options.u8()?;
        if option == OPTIONS_END {
            return Ok(ENCRYPT_NOT_SUPPORTED);
        }
        // The only numbers of the protocol that are big-endian.
        let offset = usize::from(u16::from_be_bytes(options.array()?));
        let _length: [u8; 2] = options.array()?;
        if option == OPTION_ENCRYPTION {
            return message.get(offset).copied().ok_or(io::ErrorKind::InvalidData.into());
        }
    }
}

/// The server's first message.
pub fn prelogin(encryption: u8) -> Vec<u8> {
    let options: [(u8, &[u8]); 4] = [
        // Version 16.0.1000: SQL Server 2022.
        (OPTION_VERSION, &[16, 0, 0x03, 0xe8, 0, 0]),
        (OPTION_ENCRYPTION, &[encryption]),
        (OPTION_INSTANCE, &[0]),
        (OPTION_MARS, &[0]),
    ];
    let mut offset = options.len() as u16 * 5 + 1;
    let mut message = Vec::new();
    for (option, data) in options {
        message.push(option);
        message.extend(offset.to_be_bytes());
        message.extend((data.len() as u16).to_be_bytes());
        offset += data.len() as u16;
    }
    message.push(OPTIONS_END);
    message.extend(options.iter().flat_map(|(_, data)| *data));
    message
}

/// Who logs in, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Login {
    pub version: u32,
    pub packet_size: u32,
    pub user: String,
    pub password: String,
    pub application: String,
    pub database: String,
    pub is_read_only: bool,
    /// Whether it asks for extensions, which is answered even when none is granted.
    pub has_extensions: bool,
    /// Whether the connection was encrypted when it came.
    pub is_encrypted: bool,
}

impl Login {
    pub fn read(message: &[u8], is_encrypted: bool) -> io::Result<Login> {
        let mut head = In::new(message);
        let _length = head.u32()?;
        let version = head.u32()?;
        let packet_size = head.u32()?;
        let _program_process_and_connection = head.take(12)?;
        let [_, _, type_flags, flags_3] = head.array()?;
        let _zone_and_locale = head.take(8)?;
        let mut field = || -> io::Result<&[u8]> {
            let offset = usize::from(head.u16()?);
            let length = usize::from(head.u16()?) * 2;
            message.get(offset..offset + length).ok_or(io::ErrorKind::InvalidData.into())
        };
        let _host = field()?;
        let user = utf16(field()?);
        let password = field()?.iter().map(|byte| (byte ^ 0xa5).rotate_left(4)).collect::<Vec<u8>>();
        let application = utf16(field()?);
        let _server = field()?;
        // The extension's is counted in bytes; nothing of it is read.
        let _ = field();
        let _library = field()?;
        let _language = field()?;
        let database = utf16(field()?);
        Ok(Login {
            version,
            packet_size,
            user,
            password: utf16(&password),
            application,
            database,
            is_read_only: type_flags & 0x20 != 0,
            has_extensions: flags_3 & 0x10 != 0,
            is_encrypted,
        })
    }
}

/// What changed, as the server tells clients: the database, the size of packets.
pub fn environment(out: &mut Out, what: u8, new: &str, old: &str) {
    out.token(0xe3, |body| {
        body.u8(what);
        body.short_text(new);
        body.short_text(old);
    });
}
