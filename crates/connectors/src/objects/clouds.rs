//! The servers of each cloud's own store, which alone are given what the cloud's own chain of credentials finds.
//!
//! The end of a name is not enough: customers run machines and load balancers under names of their cloud.

use super::config::Kind;

/// Whether a server of this name is the cloud's own store. Names are in lower case.
pub(super) fn is_own_host(kind: Kind, name: &str) -> bool {
    match kind {
        Kind::S3 => [".amazonaws.com", ".amazonaws.com.cn"]
            .iter()
            .any(|domain| name.strip_suffix(domain).is_some_and(is_s3)),
        Kind::Gcs => name == "storage.googleapis.com" || name.ends_with(".storage.googleapis.com"),
        Kind::Azure => {
            let domains =
                [".blob.core.windows.net", ".blob.core.usgovcloudapi.net", ".blob.core.chinacloudapi.cn"];
            domains
                .iter()
                .any(|domain| name.strip_suffix(domain).is_some_and(|account| !account.contains('.')))
        }
    }
}

/// Whether this ends with `s3`, perhaps `dualstack`, and a region. What comes before them is a bucket.
fn is_s3(name: &str) -> bool {
    let mut labels = name.rsplit('.');
    let mut label = labels.next();
    if label.is_some_and(is_region) {
        label = labels.next();
    }
    if label == Some("dualstack") {
        label = labels.next();
    }
    matches!(label, Some("s3" | "s3-fips"))
}

/// Whether this is a region such as `eu-west-1`, and no name of a service such as `elb`.
fn is_region(label: &str) -> bool {
    label.contains('-') && label.ends_with(|last: char| last.is_ascii_digit()) && !label.starts_with("s3")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clouds_own_store_is_told_from_its_customers() {
        for (kind, name, expected) in [
            (Kind::S3, "s3.amazonaws.com", true),
            (Kind::S3, "s3.eu-west-1.amazonaws.com", true),
            (Kind::S3, "shop.s3.eu-west-1.amazonaws.com", true),
            (Kind::S3, "my.shop.s3.eu-west-1.amazonaws.com", true),
            (Kind::S3, "shop.s3.dualstack.us-gov-west-1.amazonaws.com", true),
            (Kind::S3, "shop.s3-fips.us-east-1.amazonaws.com", true),
            (Kind::S3, "shop.s3.cn-north-1.amazonaws.com.cn", true),
            (Kind::S3, "s3-1234567890.us-east-1.elb.amazonaws.com", false),
            (Kind::S3, "s3.us-east-1.elb.amazonaws.com", false),
            (Kind::S3, "ec2-1-2-3-4.compute-1.amazonaws.com", false),
            (Kind::S3, "s3.execute-api.us-east-1.amazonaws.com", false),
            (Kind::S3, "s3.amazonaws.com.evil.test", false),
            (Kind::S3, "evils3.amazonaws.com", false),
            (Kind::S3, "amazonaws.com", false),
            (Kind::S3, "storage.googleapis.com", false),
            (Kind::Gcs, "storage.googleapis.com", true),
            (Kind::Gcs, "shop.storage.googleapis.com", true),
            (Kind::Gcs, "evilstorage.googleapis.com", false),
            (Kind::Gcs, "storage.googleapis.com.evil.test", false),
            (Kind::Azure, "acme.blob.core.windows.net", true),
            (Kind::Azure, "acme.blob.core.usgovcloudapi.net", true),
            (Kind::Azure, "acme.z1.blob.core.windows.net", false),
            (Kind::Azure, "acme.cloudapp.azure.com", false),
            (Kind::Azure, "blob.core.windows.net", false),
        ] {
            assert_eq!(is_own_host(kind, name), expected, "{name}");
        }
    }
}
