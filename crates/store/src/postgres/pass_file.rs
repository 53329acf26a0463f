//! The password in `PGPASSFILE`, or in `~/.pgpass`, as PostgreSQL's own programs find it.
//!
//! Each line is `host:port:database:user:password`; `*` stands for any value of a field, and a backslash takes the
//! meaning from the character behind it. The first line that matches counts. A file that others can read is ignored.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The variable that names the file, and where it is without it, in the user's home.
const VARIABLE: &str = "PGPASSFILE";
const USUAL_NAME: &str = ".pgpass";
/// Where servers are reached that are asked for without a host: in the file they are `localhost`.
const USUAL_SOCKETS: [&str; 3] = ["/tmp", "/run/postgresql", "/var/run/postgresql"];
const PORT: u16 = 5432;
/// Permissions of group and others.
const OTHERS: u32 = 0o077;
/// Bytes of the file, at most.
const LEN_MAX: u64 = 1 << 20;

/// The file to look into.
pub(super) fn usual_path() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    named.or_else(|| Some(std::env::home_dir()?.join(USUAL_NAME)))
}

/// The password for a server, if the file has one; or why the file is ignored.
pub(super) fn password(path: &Path, config: &Config) -> Result<Option<Vec<u8>>, String> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(None) };
    let ignored = |why: &str| format!("the password file {} is ignored: {why}", path.display());
    if !metadata.is_file() {
        return Err(ignored("it is no regular file"));
    }
    if metadata.permissions().mode() & OTHERS != 0 {
        return Err(ignored("others can read it; run `chmod 600` on it"));
    }
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LEN_MAX).read_to_end(&mut text));
    read.map_err(|error| ignored(&error.to_string()))?;
    // One password is sent to whichever server answers first: it must be that of each.
    let mut passwords = servers(config).into_iter().map(|(host, port)| find(&text, &host, port, config));
    let first = passwords.next().flatten();
    Ok(first.filter(|first| passwords.all(|other| other.as_ref() == Some(first))))
}

/// The servers of a configuration, as the file names them.
fn servers(config: &Config) -> Vec<(String, u16)> {
    let name = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) if USUAL_SOCKETS.iter().any(|usual| path == Path::new(usual)) => "localhost".into(),
        Host::Unix(path) => path.to_string_lossy().into_owned(),
    };
    let mut names: Vec<String> = config.get_hosts().iter().map(name).collect();
    if names.is_empty() {
        names = config.get_hostaddrs().iter().map(ToString::to_string).collect();
    }
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
    names.into_iter().enumerate().map(|(at, name)| (name, port(at))).collect()
}

fn find(text: &[u8], host: &str, port: u16, config: &Config) -> Option<Vec<u8>> {
    let user = config.get_user().unwrap_or_default();
    let wanted = [host, &port.to_string(), config.get_dbname().unwrap_or(user), user];
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut rest = line.strip_suffix(b"\r").unwrap_or(line);
        if rest.starts_with(b"#") {
            return None;
        }
        for value in wanted {
            let (raw, after) = first_field(rest)?;
            if raw != b"*" && unescaped(raw) != value.as_bytes() {
                return None;
            }
            rest = after;
        }
        (!rest.is_empty()).then(|| unescaped(rest))
    })
}

/// What is before the first colon that no backslash is before, and what is behind it.
fn first_field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        match byte {
            b':' => return Some((&line[..at], &line[at + 1..])),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => plain.extend(bytes.next()),
            byte => plain.push(*byte),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> Config {
        url.parse().unwrap()
    }

    fn file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn the_first_line_that_matches_counts() {
        let text = "# db.example:5432:book:ann:comment\n\n\
            short:line\n\
            db.example:5432:book:ann:of-ann\n\
            db.example:5432:book:a\\:b\\\\c:colon\n\
            *:6000:*:*:by-port\r\n\
            [odd:1:2:3:4\n\
            localhost:*:book:ann:a:b\\:c\\\\d\n\
            /srv/pg:*:*:*:socket\n\
            db.example:*:other:*:\n\
            db.example:*:*:bob:of-bob\n\
            a.example:*:*:*:same\nb.example:*:*:*:same\nc.example:*:*:*:another";
        let file = file(text, 0o600);
        for (url, expected) in [
            ("postgresql://ann@db.example/book", Some("of-ann")),
            ("postgresql://ann@db.example:5433/book", None),
            ("postgresql://a%3Ab%5Cc@db.example/book", Some("colon")),
            ("postgresql://eve@any.example:6000/x", Some("by-port")),
            ("postgresql://ann@localhost/book", Some("a:b:c\\d")),
            ("postgresql://ann@/book?host=/run/postgresql", Some("a:b:c\\d")),
            ("postgresql://ann@/book?host=/srv/pg", Some("socket")),
            ("postgresql://bob@db.example", Some("of-bob")),
            ("postgresql://bob@db.example/other", Some("of-bob")),
            ("postgresql://eve@db.example/book", None),
            ("postgresql://x@a.example,b.example/d", Some("same")),
            ("postgresql://x@a.example,c.example/d", None),
        ] {
            let found = password(file.path(), &config(url)).unwrap();
            assert_eq!(found, expected.map(|text| text.as_bytes().to_vec()), "{url}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_ignored_and_that_is_said() {
        let ann = config("postgresql://ann@db.example/book");
        for mode in [0o644, 0o640, 0o660, 0o604] {
            let told = password(file("*:*:*:*:hunter2", mode).path(), &ann).unwrap_err();
            assert!(told.contains("chmod 600") && !told.contains("hunter2"), "{told}");
        }
        assert_eq!(password(file("*:*:*:*:p", 0o400).path(), &ann), Ok(Some(b"p".to_vec())));
        assert_eq!(password(Path::new("/no/such/file"), &ann), Ok(None));
        assert!(password(Path::new("/"), &ann).unwrap_err().contains("no regular file"));
    }
}
