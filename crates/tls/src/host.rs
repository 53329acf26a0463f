//! Where connections need no encryption unless somebody asks for it.

use std::net::IpAddr;

/// Whether a host is this machine itself: a loopback address, `localhost`, or the path of a Unix socket.
pub fn is_this_machine(host: &str) -> bool {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    is_socket(host)
        || name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Whether a host is the path of a Unix socket.
pub fn is_socket(host: &str) -> bool {
    host.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_this_machine() {
        for host in [
            "localhost",
            "LOCALHOST",
            "127.0.0.1",
            "127.8.9.1",
            "::1",
            "[::1]",
            "::ffff:127.0.0.1",
            "/run/pg",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "db.example",
            "localhost.evil.test",
            "10.0.0.1",
            "0.0.0.0",
            "::",
            "127.0.0.1.evil.test",
            "",
            "run/pg",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
