//! Addresses of object stores as people write them: `s3://bucket/prefix`.

use serde_json::Value;

use super::config::{Kind, ObjectsConfig};

/// An address that names no bucket.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{0}` is not the address of an object store: write s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://ACCOUNT/CONTAINER/PREFIX"
)]
pub struct BadAddress(String);

/// The kind and the configuration that an address stands for. `s3a://` and `gcs://` are the same as `s3://` and
/// `gs://`.
pub fn parse_address(address: &str) -> Result<(&'static str, Value), BadAddress> {
    let bad = || BadAddress(address.to_owned());
    let (scheme, rest) = address.split_once("://").ok_or_else(bad)?;
    let kind = match scheme.to_ascii_lowercase().as_str() {
        "s3" | "s3a" => Kind::S3,
        "gs" | "gcs" => Kind::Gcs,
        "az" | "azure" => Kind::Azure,
        _ => return Err(bad()),
    };
    let (account, rest) = match (kind, rest.split_once('/')) {
        (Kind::Azure, Some((account, rest))) => (Some(account.to_owned()), rest),
        (Kind::Azure, None) => return Err(bad()),
        _ => (None, rest),
    };
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let config = ObjectsConfig { account, prefix: prefix.to_owned(), ..ObjectsConfig::new(bucket) };
    config.check(kind).map_err(|_| bad())?;
    Ok((kind.as_str(), serde_json::to_value(&config).map_err(|_| bad())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_a_bucket_and_perhaps_a_prefix() {
        let parse = |address: &str| {
            let (kind, value) = parse_address(address).unwrap();
            let config: ObjectsConfig = serde_json::from_value(value).unwrap();
            (kind, config.account.unwrap_or_default(), config.bucket, config.prefix)
        };
        let parts = |kind, account: &str, bucket: &str, prefix: &str| {
            (kind, account.to_owned(), bucket.to_owned(), prefix.to_owned())
        };
        assert_eq!(parse("s3://shop"), parts("s3", "", "shop", ""));
        assert_eq!(parse("s3://shop/"), parts("s3", "", "shop", ""));
        assert_eq!(parse("S3A://shop//a b/"), parts("s3", "", "shop", "/a b/"));
        assert_eq!(parse("gs://shop/logs/2024"), parts("gcs", "", "shop", "logs/2024"));
        assert_eq!(parse("az://acme/shop/x"), parts("azure", "acme", "shop", "x"));
        for bad in ["s3://", "s3:///x", "shop", "az://acme", "az://acme/", "ftp://shop", "s3://a b"] {
            assert_eq!(parse_address(bad), Err(BadAddress(bad.into())));
        }
    }
}
