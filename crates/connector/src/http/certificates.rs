//! Certificates beside those of the system, as the fields of a configuration name them: `ca_file`, `cert_file` and
//! `key_file`, PEM files of whoever reads the data source.

use std::fs;
use std::path::Path;

use reqwest::{Certificate, ClientBuilder, Identity};

/// The files that a configuration names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Certificates {
    /// The authorities that may have signed a server's certificate; without it the system's.
    pub ca_file: Option<String>,
    /// Who we are, and the key that proves it.
    pub cert_file: Option<String>,
    pub key_file: Option<String>,
}

impl Certificates {
    /// The files by the names of their fields.
    pub fn fields(&self) -> [(&'static str, Option<&str>); 3] {
        [
            ("ca_file", self.ca_file.as_deref()),
            ("cert_file", self.cert_file.as_deref()),
            ("key_file", self.key_file.as_deref()),
        ]
    }

    /// What is wrong with the fields, without a look at the files.
    pub fn check(&self) -> Result<(), String> {
        for (field, file) in self.fields() {
            if file.is_some_and(|file| !Path::new(file).is_absolute() || file.contains('\0')) {
                return Err(format!("field `{field}`: expected the absolute path of a PEM file"));
            }
        }
        match (&self.cert_file, &self.key_file) {
            (Some(_), None) => Err("field `key_file`: a certificate needs its key".to_owned()),
            (None, Some(_)) => Err("field `cert_file`: a key needs its certificate".to_owned()),
            _ => Ok(()),
        }
    }

    /// A client with these. Reads the files.
    pub fn apply(&self, builder: ClientBuilder) -> Result<ClientBuilder, String> {
        let read = |field: &str, file: &str| {
            fs::read(file).map_err(|error| format!("field `{field}`: {file}: {error}"))
        };
        let unusable = |field: &str, file: &str| format!("field `{field}`: {file} has nothing usable in PEM");
        let mut builder = builder;
        if let Some(file) = &self.ca_file {
            let authorities = Certificate::from_pem_bundle(&read("ca_file", file)?).unwrap_or_default();
            if authorities.is_empty() {
                return Err(unusable("ca_file", file));
            }
            builder = builder.tls_certs_only(authorities);
        }
        if let (Some(certificate), Some(key)) = (&self.cert_file, &self.key_file) {
            let pem = [read("key_file", key)?, b"\n".to_vec(), read("cert_file", certificate)?].concat();
            let identity = Identity::from_pem(&pem).map_err(|_| unusable("cert_file", certificate))?;
            builder = builder.identity(identity);
        }
        Ok(builder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let files = |ca: &str, certificate: &str, key: &str| {
            let file = |file: &str| (!file.is_empty()).then(|| file.to_owned());
            Certificates { ca_file: file(ca), cert_file: file(certificate), key_file: file(key) }
        };
        for (files, field) in [
            (files("ca.pem", "", ""), "`ca_file`"),
            (files("", "/c.pem", ""), "`key_file`"),
            (files("", "", "/k.pem"), "`cert_file`"),
        ] {
            assert!(files.check().unwrap_err().contains(field), "{files:?}");
        }
        assert_eq!(files("/ca.pem", "/c.pem", "/k.pem").check(), Ok(()));
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty.pem");
        fs::write(&empty, "no certificate").unwrap();
        for file in [empty.to_str().unwrap(), "/no/such.pem"] {
            let refused = files(file, "", "").apply(super::super::client_builder()).unwrap_err();
            assert!(refused.contains("`ca_file`") && refused.contains(file), "{refused}");
        }
    }
}
