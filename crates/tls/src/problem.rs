//! Why a connection is not secure enough, and what to do about it.

use std::error::Error;
use std::{fmt, io};

use rustls::CertificateError;

/// What keeps us from a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    NoTls,
    /// No authority that is trusted signed the certificate, or it signed itself.
    Untrusted,
    /// The certificate is another server's.
    WrongName,
    /// The password would be readable on the way.
    ClearPassword,
}

impl Problem {
    /// The problem, if an error is one or was caused by one.
    pub fn of(error: &(dyn Error + 'static)) -> Option<Problem> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(problem) = error.downcast_ref::<Problem>() {
                return Some(*problem);
            }
            if let Some(error) = error.downcast_ref::<rustls::Error>() {
                return Problem::of_tls(error);
            }
            // An IO error hides what it is made of from the chain of causes.
            cause = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        None
    }

    pub fn of_tls(error: &rustls::Error) -> Option<Problem> {
        let rustls::Error::InvalidCertificate(why) = error else { return None };
        match why {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Some(Problem::WrongName)
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature | CertificateError::Other(_) => {
                Some(Problem::Untrusted)
            }
            _ => None,
        }
    }

    /// What to do, in terms of the settings for authorities and for the mode.
    pub fn advice(self, authorities: &str, mode: &str) -> String {
        match self {
            Problem::NoTls => {
                format!(
                    "turn TLS on at the server, or set {mode} to `disable` to send everything in clear text"
                )
            }
            Problem::Untrusted => format!(
                "set {authorities} to a file with the authority that signed it, or {mode} to `require` to accept any \
                 certificate"
            ),
            Problem::WrongName => format!(
                "connect by a name that is in the certificate, or set {mode} to `verify-ca` to accept any name"
            ),
            Problem::ClearPassword => {
                format!(
                    "turn TLS on at the server, or set {mode} to `disable` to send the password all the same"
                )
            }
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Problem::NoTls => "the server offers no TLS",
            Problem::Untrusted => "no authority that is trusted signed the server's certificate",
            Problem::WrongName => "the server's certificate is for another name",
            Problem::ClearPassword => {
                "the server asks for the password in clear text, and the connection is not encrypted"
            }
        })
    }
}

impl Error for Problem {}
