//! HTTP as every connector speaks it: one TLS, one set of time limits, one name.
//!
//! Redirects are not followed: whoever asks decides where a request, and a credential with it, may go.

mod certificates;
mod retry;

use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

pub use certificates::Certificates;
pub use retry::{parse_date, retry_after, until};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may pause.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// How we call ourselves.
pub const USER_AGENT: &str = concat!("domesday/", env!("CARGO_PKG_VERSION"));

/// A client to add to: proxies as the environment says, certificates as the system has them.
pub fn client_builder() -> ClientBuilder {
    // The first one in holds; it is the same whoever is first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .redirect(Policy::none())
}
