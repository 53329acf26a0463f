//! Web addresses as keys: one form each, without what is never sent, and without secrets.

use domesday_model::ObjectKey;
use reqwest::Url;

/// Bytes of an address, at most.
pub(super) const ADDRESS_MAX: usize = 2_048;

/// An address that people wrote into a configuration: what is wrong with it is said, and it is not repeated,
/// for it may have a password in it.
pub(super) fn strict(given: &str) -> Result<Url, String> {
    let url = Url::parse(given.trim())
        .map_err(|error| format!("not an address ({error}); begin it with https:// or http://"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("give the user and the password as a credential, not in the address".to_owned());
    }
    normal(url).ok_or_else(|| "only addresses that begin with https:// or http:// are read".to_owned())
}

/// An address that came from elsewhere, without what is secret in it.
pub(super) fn lenient(given: &str) -> Option<Url> {
    normal(Url::parse(given.trim()).ok()?)
}

/// The one form of an address: without user, password and fragment. `None` for what is not of the web.
pub(super) fn normal(mut url: Url) -> Option<Url> {
    if !matches!(url.scheme(), "https" | "http") || url.as_str().len() > ADDRESS_MAX {
        return None;
    }
    url.set_fragment(None);
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    Some(url)
}

/// The address that a key is.
pub(super) fn of_key(key: &ObjectKey) -> Option<Url> {
    let text = std::str::from_utf8(key.as_bytes()).ok()?;
    normal(Url::parse(text).ok()?).filter(|url| url.as_str() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_form_and_no_secret() {
        for (given, expected) in [
            ("HTTPS://Example.COM:443/a/../b#part", Some("https://example.com/b")),
            ("http://u:p@example.com", Some("http://example.com/")),
            (" http://example.com/a b ", Some("http://example.com/a%20b")),
            ("http://2130706433/", Some("http://127.0.0.1/")),
            ("http://0x7f.1/", Some("http://127.0.0.1/")),
            ("ftp://example.com", None),
            ("mailto:a@example.com", None),
            ("example.com", None),
        ] {
            assert_eq!(lenient(given).as_ref().map(Url::as_str), expected, "{given}");
        }
        assert!(of_key(&ObjectKey::new("https://example.com/b")).is_some());
        for wrong in ["https://example.com", "https://example.com/#x", "no-such-object", ""] {
            assert_eq!(of_key(&ObjectKey::new(wrong)), None, "{wrong}");
        }
    }
}
