//! Where the server is, and how to reach it: the store's URL.

use std::borrow::Cow;
use std::pin::Pin;
use std::time::Duration;

use domesday_tls::Verify;
use domesday_tls::postgres::Tls;
use percent_encoding::percent_decode_str;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{AsyncMessage, Client, Config};

use super::Result;
use super::error::store_error;
use crate::error::StoreError;

/// What connections call themselves, unless the URL says otherwise.
const APPLICATION_NAME: &str = "domesday";
/// How long making a connection may take, unless the URL says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A peer that is silent this long is asked whether it lives.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
/// And again this much later, each time it does not answer.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// How often, before the connection is lost.
const KEEPALIVE_RETRIES: u32 = 3;
/// What was sent and not acknowledged for this long means the same.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);

/// Runs a connection until it ends.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) struct Target {
    config: Config,
    tls: Tls,
}

/// `system` names the authorities that the system trusts.
fn tls(verify: Verify, roots: Option<&str>) -> Result<Tls> {
    let roots = roots.filter(|roots| *roots != "system");
    let client = domesday_tls::Client { verify, authorities: roots, ..Default::default() };
    let refused =
        |error| StoreError::Refused(format!("TLS to the database cannot be set up: sslrootcert: {error}"));
    client.config().map(Tls::new).map_err(refused)
}

impl Target {
    /// From `postgresql://user@host:port/database?sslmode=…`. A password that is not in the URL is taken
    /// from `PGPASSWORD`, so that it need not be on a command line.
    pub fn parse(url: &str) -> Result<Target> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        if !base.starts_with("postgresql://") && !base.starts_with("postgres://") {
            return refuse("expected postgresql://user@host/database");
        }
        // The library knows neither every mode nor where the certificates are: these are ours.
        let (mut mode, mut roots, mut rest) = ("prefer".to_owned(), None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = value.to_owned(),
                Some(("sslrootcert", value)) => roots = Some(unescape(value)?),
                _ => rest.push(pair),
            }
        }
        let (ssl_mode, verify) = match (mode.as_str(), &roots) {
            ("disable", _) => (SslMode::Disable, Verify::Nothing),
            ("prefer", _) => (SslMode::Prefer, Verify::Nothing),
            // As everywhere else: whoever names an authority wants it checked.
            ("require", None) => (SslMode::Require, Verify::Nothing),
            ("require" | "verify-ca", Some(_)) => (SslMode::Require, Verify::Authority),
            ("verify-full", Some(_)) => (SslMode::Require, Verify::Full),
            ("verify-ca" | "verify-full", None) => {
                return refuse(
                    "sslmode=verify-ca and verify-full need sslrootcert=<file>, or sslrootcert=system",
                );
            }
            _ => return refuse("sslmode is one of disable, prefer, require, verify-ca, verify-full"),
        };
        let mut config: Config =
            format!("{base}?{}", rest.join("&")).parse().map_err(|error| refusal(&format!("{error}")))?;
        config.ssl_mode(ssl_mode);
        with_defaults(&mut config);
        Ok(Target { config, tls: tls(verify, roots.as_deref())? })
    }

    /// A new connection, and what runs it.
    pub async fn connect(&self) -> Result<(Client, Driver)> {
        self.connect_to_listen(|_| {}).await
    }

    /// The same; `heard` is told of each notification, by the process that sent it.
    pub async fn connect_to_listen(
        &self,
        mut heard: impl FnMut(i32) + Send + 'static,
    ) -> Result<(Client, Driver)> {
        let (client, mut connection) =
            self.config.connect(self.tls.clone()).await.map_err(|error| self.unreachable(&error))?;
        let driver = async move {
            while let Some(message) = std::future::poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    Ok(AsyncMessage::Notification(notification)) => heard(notification.process_id()),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, "a connection to the database ended");
                        return;
                    }
                }
            }
        };
        Ok((client, Box::pin(driver)))
    }

    /// Where this is, for messages: never with user or password.
    fn place(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "its server".to_owned(),
        };
        format!("{} on {host}", self.config.get_dbname().unwrap_or("the book"))
    }

    fn unreachable(&self, error: &tokio_postgres::Error) -> StoreError {
        match store_error(error) {
            StoreError::Refused(text) => StoreError::Refused(format!("{}: {text}", self.place())),
            other => StoreError::Backend(format!("cannot connect to {}: {other}", self.place())),
        }
    }
}

fn with_defaults(config: &mut Config) {
    if config.get_application_name().is_none() {
        config.application_name(APPLICATION_NAME);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_password().is_none()
        && let Ok(password) = std::env::var("PGPASSWORD")
    {
        config.password(password);
    }
    config.keepalives(true).keepalives_idle(KEEPALIVE_IDLE);
    config.keepalives_interval(KEEPALIVE_INTERVAL).keepalives_retries(KEEPALIVE_RETRIES);
    config.tcp_user_timeout(UNACKNOWLEDGED_MAX);
}

/// `%41` to `A`.
fn unescape(text: &str) -> Result<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| refusal("sslrootcert is not text"))
}

fn refusal(why: &str) -> StoreError {
    StoreError::Refused(format!("the store's URL cannot be used: {why}"))
}

fn refuse<T>(why: &str) -> Result<T> {
    Err(refusal(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        match Target::parse(url) {
            Ok(_) => panic!("{url} was taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_the_url_does_not_say_has_defaults() {
        let target = Target::parse("postgresql://u@h:5433/d?connect_timeout=3&sslmode=require").unwrap();
        assert_eq!(target.config.get_application_name(), Some("domesday"));
        assert_eq!(target.config.get_connect_timeout(), Some(&Duration::from_secs(3)));
        assert_eq!(target.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(target.place(), "d on h");
        let target = Target::parse("postgres:///d?host=/run/pg&application_name=mine").unwrap();
        assert_eq!(target.config.get_application_name(), Some("mine"));
        assert_eq!(target.config.get_ssl_mode(), SslMode::Prefer);
        assert_eq!(target.place(), "d on /run/pg");
    }

    #[test]
    fn a_url_that_cannot_be_used_says_why_and_keeps_its_password() {
        for (url, why) in [
            ("book.sqlite", "expected postgresql://"),
            ("postgresql://u:hunter2@h/d?sslmode=allow", "sslmode is one of"),
            ("postgresql://u:hunter2@h/d?sslmode=verify-full", "need sslrootcert"),
            ("postgresql://u:hunter2@h/d?sslmode=verify-ca&sslrootcert=/no/such/%66ile", "/no/such/file"),
            ("postgresql://u:hunter2@h/d?nonsense=1", "cannot be used"),
        ] {
            let message = refused(url);
            assert!(message.contains(why), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn escapes_are_undone() {
        for (text, plain) in [("a%2Fb%20c", "a/b c"), ("100%", "100%"), ("%zz", "%zz"), ("", "")] {
            assert_eq!(unescape(text).unwrap(), plain);
        }
        assert!(unescape("%ff").is_err());
    }
}
