//! Small texts that a listing needs whole: lists, sitemaps, `robots.txt`, pages with links.

use std::error::Error;
use std::io::Read;

use domesday_connector::remote;
use domesday_content::ObjectError;
use domesday_model::Reason;
use flate2::read::MultiGzDecoder;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Url};
use tokio::time::timeout;

use super::fetch::{ATTEMPTS_MAX, FetchError, Fetched, Fetcher, passing};

/// Compressors around a text, at most: one of the transfer, one of the file.
const LAYERS_MAX: usize = 2;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A text, and the address it came from in the end.
pub(super) struct Text {
    pub text: String,
    pub address: Url,
}

impl Fetcher {
    /// The text at an address, unpacked, at most `max` bytes of it: more is an error. `None` when `wants`
    /// does not want it for its content type; its body is not read then.
    pub async fn text(
        &self,
        address: &Url,
        max: u64,
        wants: impl Fn(&str) -> bool,
    ) -> Result<Option<Text>, FetchError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let fetched = self.get(Method::GET, address).await?;
            let kind = fetched.response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            if !wants(&kind.unwrap_or_default().to_ascii_lowercase()) {
                return Ok(None);
            }
            let at = fetched.address.clone();
            let body = match timeout(self.timeout, body(fetched, max)).await {
                Ok(body) => body,
                Err(_) => Err(passing(&at, "sends too slowly")),
            };
            match body {
                Ok(body) => {
                    let plain = unpack(body, max).map_err(|why| too_much(&at, why))?;
                    let text = String::from_utf8_lossy(&plain).into_owned();
                    return Ok(Some(Text { text, address: at }));
                }
                Err(FetchError::Passing { .. }) if attempt < ATTEMPTS_MAX => {
                    remote::rest(self.backoff.after(attempt)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

async fn body(mut fetched: Fetched, max: u64) -> Result<Vec<u8>, FetchError> {
    let mut body = Vec::new();
    loop {
        match fetched.response.chunk().await {
            Ok(None) => return Ok(body),
            Ok(Some(bytes)) if (body.len() + bytes.len()) as u64 > max => {
                return Err(too_much(&fetched.address, format!("has more than {max} bytes")));
            }
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            Err(error) => return Err(passing(&fetched.address, &describe(&error))),
        }
    }
}

fn too_much(address: &Url, why: String) -> FetchError {
    let error = ObjectError::new(Reason::ByteLimit, format!("{address}: {why}"));
    FetchError::Final { error, status: None, is_authenticated: false }
}

/// Plain bytes, whatever they are packed with.
fn unpack(mut bytes: Vec<u8>, max: u64) -> Result<Vec<u8>, String> {
    for _ in 0..LAYERS_MAX {
        let mut plain = Vec::new();
        let read = match bytes.as_slice() {
            packed if packed.starts_with(&GZIP) => {
                MultiGzDecoder::new(packed).take(max + 1).read_to_end(&mut plain)
            }
            packed if packed.starts_with(&ZSTD) => zstd::stream::read::Decoder::new(packed)
                .and_then(|decoder| decoder.take(max + 1).read_to_end(&mut plain)),
            _ => return Ok(bytes),
        };
        read.map_err(|error| format!("is packed, and damaged: {error}"))?;
        if plain.len() as u64 > max {
            return Err(format!("has more than {max} bytes when it is unpacked"));
        }
        bytes = plain;
    }
    Ok(bytes)
}

/// An error with what caused it: the outermost says little.
pub(super) fn describe(error: &reqwest::Error) -> String {
    let (mut text, mut cause) = (String::from("no whole answer"), error.source());
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_is_packed_is_unpacked_within_its_limit() {
        assert_eq!(unpack(b"plain".to_vec(), 100).unwrap(), b"plain");
        assert_eq!(unpack(gzip(&gzip(b"plain")), 100).unwrap(), b"plain");
        assert_eq!(unpack(zstd::encode_all(&b"plain"[..], 1).unwrap(), 100).unwrap(), b"plain");
        let bomb = gzip(&vec![0; 10 << 20]);
        assert!(unpack(bomb, 1 << 20).unwrap_err().contains("more than 1048576 bytes"));
        let mut damaged = gzip(b"plain");
        damaged.truncate(12);
        assert!(unpack(damaged, 100).unwrap_err().contains("damaged"));
    }
}
