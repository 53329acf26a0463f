//! One client's connection, from its first packet to its last.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};

use super::evaluate::{self, Rows};
use super::login::{self, Login};
use super::model::Database;
use super::request::Request;
use super::sql::{self, Lexeme};
use super::tls::Channel;
use super::values::{COLLATION, Value};
use super::wire::{self, ATTENTION, HEADER, LOGIN7, Out, PRELOGIN, RESPONSE, RPC, SQL_BATCH};
use super::{Fault, PASSWORD, ServerError, Shared, USER, catalogue};

const SERVER: &str = "SCRIPTED";
/// Bytes of a packet, unless a client asks for others.
const PACKET: u32 = 4_096;
const PACKET_MIN: u32 = 512;
const PACKET_MAX: u32 = 32_767;
/// The protocol's version in its own writing: 7.4.
const VERSION: u32 = 0x7400_0004;
/// The version from which rows may leave their nulls out.
const VERSION_NULLS_LEFT_OUT: u32 = 0x730b_0003;

/// The error of a log-in that fails.
const LOGIN_FAILED: u32 = 18456;

const TOKEN_DONE: u8 = 0xfd;
const TOKEN_DONE_PROCEDURE: u8 = 0xfe;
const TOKEN_DONE_IN_PROCEDURE: u8 = 0xff;

const DONE_MORE: u16 = 0x01;
const DONE_ERROR: u16 = 0x02;
const DONE_COUNT: u16 = 0x10;
const DONE_ATTENTION: u16 = 0x20;

pub fn serve(socket: TcpStream, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let Some((channel, login)) = begin(socket, shared)? else { return Ok(()) };
    let asked = login.packet_size.clamp(PACKET_MIN, PACKET_MAX);
    let packet = shared.setup.packet_size.map_or(asked, |most| asked.min(most)).max(PACKET_MIN);
    shared.log.lock().logins.push(login.clone());
    let mut session =
        Session { channel, shared, packet: PACKET as usize, version: login.version, current: 0 };
    match session.admit(&login) {
        Ok(current) => session.current = current,
        Err(error) => {
            let mut answer = session.answer();
            answer.out.token(0xaa, |body| message(body, &error));
            if error.number != LOGIN_FAILED {
                answer.out.token(0xaa, |body| message(body, &login_failed(&login.user)));
            }
            answer.done(TOKEN_DONE, DONE_ERROR, 0);
            return answer.end();
        }
    }
    session.welcome(&login, packet)?;
    session.packet = packet as usize;
    loop {
        let (kind, message) = wire::read_message(&mut session.channel)?;
        match kind {
            SQL_BATCH => session.statement(&Request::batch(&message)?, false)?,
            RPC => session.statement(&Request::call(&message)?, true)?,
            ATTENTION => session.calm()?,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The first message, encryption, and the log-in; nothing when the client and the server do not agree.
fn begin(mut socket: TcpStream, shared: &Shared) -> io::Result<Option<(Channel, Login)>> {
    let (kind, first) = wire::read_message(&mut socket)?;
    if kind != PRELOGIN {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let wanted = login::wanted_encryption(&first)?;
    let identity = shared.setup.identity.as_ref();
    let given = match identity {
        None => login::ENCRYPT_NOT_SUPPORTED,
        Some(_) if matches!(wanted, login::ENCRYPT_ON | login::ENCRYPT_REQUIRED) => login::ENCRYPT_ON,
        Some(_) if shared.setup.insists_on_encryption => login::ENCRYPT_REQUIRED,
        Some(_) => login::ENCRYPT_NOT_SUPPORTED,
    };
    wire::write_packet(&mut socket, RESPONSE, true, 1, &login::prelogin(given))?;
    let is_encrypted = given != login::ENCRYPT_NOT_SUPPORTED;
    let mut channel = match identity {
        Some(identity) if is_encrypted => Channel::encrypt(socket, identity)?,
        _ => Channel::Plain(socket),
    };
    let (kind, message) = wire::read_message(&mut channel)?;
    if kind != LOGIN7 {
        return Ok(None);
    }
    Ok(Some((channel, Login::read(&message, is_encrypted)?)))
}

struct Session<'a> {
    channel: Channel,
    shared: &'a Shared,
    packet: usize,
    version: u32,
    /// The place of the database the client is in; one past the end is `master`.
    current: usize,
}

impl Session<'_> {
    /// Who may come in, and where to.
    fn admit(&self, login: &Login) -> Result<usize, ServerError> {
        if login.user != USER || login.password != PASSWORD {
            return Err(login_failed(&login.user));
        }
        self.enter(&login.database).map_err(|_| {
            let message = format!("Cannot open database \"{}\" requested by the login.", login.database);
            ServerError::new(4060, 11, &message)
        })
    }

    fn enter(&self, name: &str) -> Result<usize, ServerError> {
        let databases = &self.shared.setup.databases;
        if name.is_empty() || name == "master" {
            return Ok(databases.len());
        }
        let found = databases.iter().position(|database| database.name == name);
        let found = found.ok_or_else(|| {
            ServerError::new(911, 16, &format!("Database '{name}' does not exist. Make sure that it is."))
        })?;
        if databases[found].is_refused {
            let message = format!(
                "The server principal \"{USER}\" is not able to access the database \"{name}\" under the current \
                 security context."
            );
            return Err(ServerError::new(916, 14, &message));
        }
        Ok(found)
    }

    fn welcome(&mut self, login: &Login, packet: u32) -> io::Result<()> {
        let (version, database) = (self.version, login.database.clone());
        let mut answer = self.answer();
        let out = &mut answer.out;
        login::environment(out, 1, &database, "master");
        let changed = ServerError::new(5701, 10, &format!("Changed database context to '{database}'."));
        out.token(0xab, |body| message(body, &changed));
        out.token(0xe3, |body| {
            body.u8(7);
            body.u8(COLLATION.len() as u8);
            body.bytes(&COLLATION);
            body.u8(0);
        });
        login::environment(out, 2, "us_english", "");
        out.token(0xad, |body| {
            body.u8(1);
            body.bytes(&version.min(VERSION).to_be_bytes());
            body.short_text("Microsoft SQL Server");
            body.bytes(&[16, 0, 0x03, 0xe8]);
        });
        login::environment(out, 4, &packet.to_string(), &PACKET.to_string());
        if login.has_extensions {
            out.bytes(&[0xae, 0xff]);
        }
        answer.done(TOKEN_DONE, 0, 0);
        answer.end()
    }

    fn answer(&mut self) -> Answer<'_> {
        Answer {
            channel: &mut self.channel,
            packet: self.packet,
            out: Out::default(),
            number: 0,
            packets_left: None,
        }
    }

    /// What a client called off ends with a sign that this was heard.
    fn calm(&mut self) -> io::Result<()> {
        self.shared.log.lock().attentions += 1;
        let mut answer = self.answer();
        answer.done(TOKEN_DONE, DONE_ATTENTION, 0);
        answer.end()
    }

    fn statement(&mut self, request: &Request, is_call: bool) -> io::Result<()> {
        self.shared.log.lock().requests.push(request.clone());
        let fault = self.shared.fault(&request.sql);
        if fault == Some(Fault::Silence) {
            // Whatever comes next, if anything, is the client's giving up.
            let (kind, _) = wire::read_message(&mut self.channel)?;
            return if kind == ATTENTION { self.calm() } else { Err(io::ErrorKind::InvalidData.into()) };
        }
        let outcome = match &fault {
            Some(Fault::Error(error)) => Err(error.clone()),
            _ => self.run(request),
        };
        let leaves_nulls_out = self.version >= VERSION_NULLS_LEFT_OUT;
        let rows_then_error = match &fault {
            Some(Fault::ErrorAfter(rows, error)) => Some((*rows, error)),
            _ => None,
        };
        let mut answer = self.answer();
        if let Some(Fault::Cut(packets)) = fault {
            answer.packets_left = Some(packets);
        }
        let mut status = 0;
        let mut count = 0;
        match &outcome {
            Ok(Some(result)) => {
                let rows = rows_then_error.map_or(result.rows.len(), |(rows, _)| rows.min(result.rows.len()));
                answer.rows(result, rows, leaves_nulls_out)?;
                (status, count) = (DONE_COUNT, rows as u64);
                if let Some((_, error)) = rows_then_error {
                    answer.out.token(0xaa, |body| message(body, error));
                    status = DONE_ERROR;
                }
            }
            Ok(None) => {}
            Err(error) => {
                answer.out.token(0xaa, |body| message(body, error));
                status = DONE_ERROR;
            }
        }
        if is_call {
            answer.done(TOKEN_DONE_IN_PROCEDURE, status | DONE_MORE, count);
            // What the procedure returns.
            answer.out.u8(0x79);
            answer.out.u32(0);
            answer.done(TOKEN_DONE_PROCEDURE, status & DONE_ERROR, 0);
        } else {
            answer.done(TOKEN_DONE, status, count);
        }
        answer.end()
    }

    /// A result set, or nothing for a setting.
    fn run(&self, request: &Request) -> Result<Option<Rows>, ServerError> {
        let nowhere = Database::new("master", Vec::new());
        let databases = &self.shared.setup.databases;
        let current = databases.get(self.current).unwrap_or(&nowhere);
        if let Some(rows) = catalogue::answer(&request.sql, databases, current, &request.variables) {
            return Ok(Some(rows));
        }
        let wrong = |error: String| ServerError::syntax(&error);
        let lexemes = sql::lex(&request.sql).map_err(wrong)?;
        if request.sql == catalogue::ISOLATION || lexemes.first() == Some(&Lexeme::Word("SET".to_owned())) {
            return Ok(None);
        }
        let select = sql::parse(lexemes).map_err(wrong)?;
        evaluate::select(&select, current, &request.variables).map(Some)
    }
}

/// What every log-in that fails ends with, whatever was said before of why.
fn login_failed(user: &str) -> ServerError {
    ServerError::new(LOGIN_FAILED, 14, &format!("Login failed for user '{user}'."))
}

/// The body of an error, or of a message that is none.
fn message(body: &mut Out, error: &ServerError) {
    body.u32(error.number);
    body.u8(1);
    body.u8(error.class);
    body.text(&error.message);
    body.short_text(SERVER);
    body.short_text("");
    body.u32(1);
}

/// An answer on its way, packet by packet.
struct Answer<'a> {
    channel: &'a mut Channel,
    packet: usize,
    out: Out,
    number: u8,
    /// After how many the connection is cut.
    packets_left: Option<usize>,
}

impl Answer<'_> {
    fn rows(&mut self, result: &Rows, count: usize, leaves_nulls_out: bool) -> io::Result<()> {
        self.out.u8(0x81);
        self.out.u16(result.columns.len() as u16);
        for (name, of) in &result.columns {
            self.out.u32(0);
            // May be null, may be written.
            self.out.u16(0x09);
            of.describe(&mut self.out);
            self.out.short_text(name);
        }
        for (place, row) in result.rows.iter().take(count).enumerate() {
            // Both forms of rows are given where there is a choice.
            let leaves_out = leaves_nulls_out && place % 2 == 1 && row.contains(&Value::Null);
            if leaves_out {
                self.out.u8(0xd2);
                for eight in row.chunks(8) {
                    let bits = eight.iter().enumerate().filter(|(_, value)| **value == Value::Null);
                    self.out.u8(bits.map(|(bit, _)| 1 << bit).sum());
                }
            } else {
                self.out.u8(0xd1);
            }
            for ((_, of), value) in result.columns.iter().zip(row) {
                if !(leaves_out && *value == Value::Null) {
                    of.write(value, &mut self.out);
                }
            }
            self.send_full()?;
        }
        Ok(())
    }

    fn done(&mut self, token: u8, status: u16, count: u64) {
        self.out.u8(token);
        self.out.u16(status);
        self.out.u16(0xc1);
        self.out.u64(count);
    }

    /// Sends what is more than a packet.
    fn send_full(&mut self) -> io::Result<()> {
        while self.out.len() > self.packet - HEADER {
            let body = self.out.take_front(self.packet - HEADER);
            self.send(&body, false)?;
        }
        Ok(())
    }

    fn end(mut self) -> io::Result<()> {
        self.send_full()?;
        let rest = std::mem::take(&mut self.out).into_bytes();
        self.send(&rest, true)?;
        self.channel.flush()
    }

    fn send(&mut self, body: &[u8], is_last: bool) -> io::Result<()> {
        if self.packets_left == Some(0) {
            self.channel.flush()?;
            self.channel.socket().shutdown(Shutdown::Both)?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.packets_left = self.packets_left.map(|left| left - 1);
        self.number = self.number.wrapping_add(1);
        wire::write_packet(self.channel, RESPONSE, is_last, self.number, body)
    }
}
