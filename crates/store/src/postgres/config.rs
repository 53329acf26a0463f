//! Where the server is, and how to reach it: the store's URL.
//!
//! Over a network the default is TLS with a certificate that is verified for the server's name, and a password never
//! goes in clear text, unless the URL spells out `sslmode=disable`.

use std::borrow::Cow;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use domesday_tls::postgres::{Encryption, Tls};
use domesday_tls::{Problem, Verify, is_this_machine};
use percent_encoding::percent_decode_str;
use tokio_postgres::config::Host;
use tokio_postgres::{AsyncMessage, Client, Config};

use super::error::store_error;
use super::{Result, pass_file};
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
    /// Where the password is looked for, each time, that neither the URL nor the environment has.
    pub pass_file: Option<PathBuf>,
}

/// What to connect with. `system` names the authorities that the system trusts; so does nothing.
fn tls(security: (Encryption, Verify), roots: Option<&str>, config: &mut Config) -> Result<Tls> {
    let (encryption, verify) = security;
    let roots = roots.filter(|roots| *roots != "system");
    let client = domesday_tls::Client { verify, authorities: roots, ..Default::default() };
    let refused =
        |error| StoreError::Refused(format!("TLS to the database cannot be set up: sslrootcert: {error}"));
    Ok(Tls::new(client.config().map_err(refused)?, encryption, config))
}

/// How a connection is encrypted, and what of the server's certificate is checked.
fn security(mode: Option<&str>, has_roots: bool, config: &Config) -> Result<(Encryption, Verify)> {
    let mode = match mode {
        Some(mode) => mode,
        None if !has_roots && is_local(config) => "prefer",
        None => "verify-full",
    };
    let is_socket = |host: &Host| matches!(host, Host::Unix(_));
    Ok(match mode {
        "disable" => (Encryption::Never, Verify::Nothing),
        "prefer" if config.get_hosts().iter().all(is_socket) => (Encryption::Never, Verify::Nothing),
        "prefer" => (Encryption::Preferred, Verify::Nothing),
        // As everywhere else: whoever names an authority wants it checked.
        "require" if !has_roots => (Encryption::Required, Verify::Nothing),
        "verify-ca" if !has_roots => {
            return refuse("sslmode=verify-ca needs sslrootcert=<file>; verify-full does without");
        }
        "require" | "verify-ca" => (Encryption::Required, Verify::Authority),
        "verify-full" => (Encryption::Required, Verify::Full),
        _ => return refuse("sslmode is one of disable, prefer, require, verify-ca, verify-full"),
    })
}

/// Whether each server is on this machine, by its name and by its address.
fn is_local(config: &Config) -> bool {
    let is_here = |host: &Host| match host {
        Host::Tcp(name) => is_this_machine(name),
        Host::Unix(_) => true,
    };
    config.get_hosts().iter().all(is_here)
        && config.get_hostaddrs().iter().all(|address| is_this_machine(&address.to_string()))
}

impl Target {
    /// From `postgresql://user@host:port/database?sslmode=…`. A password that is not in the URL is taken
    /// from `PGPASSWORD` or `PGPASSFILE`, so that it need not be on a command line.
    pub fn parse(url: &str) -> Result<Target> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        if !base.starts_with("postgresql://") && !base.starts_with("postgres://") {
            return refuse("expected postgresql://user@host/database");
        }
        // The library knows neither every mode nor where the certificates are: these are ours.
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => roots = Some(unescape(value)?),
                _ => rest.push(pair),
            }
        }
        let mut config: Config =
            format!("{base}?{}", rest.join("&")).parse().map_err(|error| refusal(&format!("{error}")))?;
        let security = security(mode, roots.is_some(), &config)?;
        let tls = tls(security, roots.as_deref(), &mut config)?;
        with_defaults(&mut config);
        Ok(Target { config, tls, pass_file: pass_file::usual_path() })
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
        let mut config = self.config.clone();
        let mut note = None;
        if let (None, Some(file)) = (config.get_password(), &self.pass_file) {
            match pass_file::password(file, &config) {
                Ok(Some(password)) => drop(config.password(password)),
                Ok(None) => {}
                Err(why) => {
                    tracing::warn!("{why}");
                    note = Some(why);
                }
            }
        }
        let connected = config.connect(self.tls.clone()).await;
        let (client, mut connection) =
            connected.map_err(|error| self.unreachable(&error, note.as_deref()))?;
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

    /// Why there is no connection, with what is known of the password.
    fn unreachable(&self, error: &tokio_postgres::Error, note: Option<&str>) -> StoreError {
        let place = self.place();
        let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
        if let Some(problem) = Problem::of(error) {
            let advice = problem.advice("sslrootcert", "sslmode");
            return StoreError::Refused(format!("cannot connect to {place}: {problem}: {advice}"));
        }
        match store_error(error) {
            StoreError::Refused(text) => StoreError::Refused(format!("{place}: {text}{note}")),
            other => StoreError::Backend(format!("cannot connect to {place}: {other}{note}")),
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
        assert_eq!(target.place(), "d on h");
        let target = Target::parse("postgres:///d?host=/run/pg&application_name=mine").unwrap();
        assert_eq!(target.config.get_application_name(), Some("mine"));
        assert_eq!(target.place(), "d on /run/pg");
    }

    #[test]
    fn a_connection_over_a_network_is_encrypted_and_verified_unless_something_else_is_said() {
        use Encryption::{Never, Preferred, Required};
        let found = |url: &str, mode: Option<&str>, has_roots: bool| {
            security(mode, has_roots, &url.parse().unwrap()).unwrap()
        };
        for (url, expected) in [
            ("postgresql://u@db.example/d", (Required, Verify::Full)),
            ("postgresql://u@10.0.0.1/d", (Required, Verify::Full)),
            ("postgresql://u@localhost,db.example/d", (Required, Verify::Full)),
            ("postgresql://u@localhost/d?hostaddr=10.0.0.1", (Required, Verify::Full)),
            ("postgresql://u@localhost.evil.test/d", (Required, Verify::Full)),
            ("postgresql://u@localhost/d", (Preferred, Verify::Nothing)),
            ("postgresql://u@127.0.0.1,[::1]/d", (Preferred, Verify::Nothing)),
            ("postgresql://u@/d?host=/run/pg", (Never, Verify::Nothing)),
        ] {
            assert_eq!(found(url, None, false), expected, "{url}");
        }
        let db = "postgresql://u@db.example/d";
        for (mode, has_roots, expected) in [
            (None, true, (Required, Verify::Full)),
            (Some("disable"), false, (Never, Verify::Nothing)),
            (Some("prefer"), false, (Preferred, Verify::Nothing)),
            (Some("require"), false, (Required, Verify::Nothing)),
            (Some("require"), true, (Required, Verify::Authority)),
            (Some("verify-ca"), true, (Required, Verify::Authority)),
            (Some("verify-full"), false, (Required, Verify::Full)),
        ] {
            assert_eq!(found(db, mode, has_roots), expected, "{mode:?}");
        }
        let local = "postgresql://u@localhost/d";
        assert_eq!(found(local, None, true), (Required, Verify::Full), "an authority is named to be asked");
    }

    #[test]
    fn a_url_that_cannot_be_used_says_why_and_keeps_its_password() {
        for (url, why) in [
            ("book.sqlite", "expected postgresql://"),
            ("postgresql://u:hunter2@h/d?sslmode=allow", "sslmode is one of"),
            ("postgresql://u:hunter2@h/d?sslmode=verify-ca", "needs sslrootcert"),
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
