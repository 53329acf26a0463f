//! Keys in the shared credentials file of AWS's tools (`~/.aws/credentials`), which `object_store` does not read.
//!
//! Only keys that are written there: profiles that assume a role or sign in are for AWS's own tools, whose
//! `aws configure export-credentials` a credential command can call.

use std::path::PathBuf;

use object_store::aws::AwsCredential;

/// Variables whose presence says that credentials come from elsewhere.
const ELSEWHERE: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];

/// The keys of the profile that the environment names, unless the environment has something better.
pub(super) fn find() -> Option<AwsCredential> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if ELSEWHERE.iter().any(|name| set(name).is_some()) {
        return None;
    }
    let path = match set("AWS_SHARED_CREDENTIALS_FILE") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(set("HOME")?).join(".aws/credentials"),
    };
    let profile = std::env::var("AWS_PROFILE").unwrap_or_else(|_| "default".into());
    read(&std::fs::read_to_string(path).ok()?, &profile)
}

fn read(text: &str, profile: &str) -> Option<AwsCredential> {
    let (mut within, mut key_id, mut secret_key, mut token) = (false, None, None, None);
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            within = section.trim() == profile;
        } else if within && let Some((name, value)) = line.split_once('=') {
            let value = value.trim();
            let is_plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
            let value = is_plain.then(|| value.to_owned());
            match name.trim() {
                "aws_access_key_id" => key_id = value,
                "aws_secret_access_key" => secret_key = value,
                "aws_session_token" => token = value,
                _ => {}
            }
        }
    }
    Some(AwsCredential { key_id: key_id?, secret_key: secret_key?, token })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_that_was_asked_for_is_read() {
        let text = "[default]\naws_access_key_id = AKIA1\naws_secret_access_key=one\n\n# more\n[ci]\n\
                    aws_access_key_id=AKIA2\naws_secret_access_key=a=b\naws_session_token = t\n[role]\nrole_arn=x\n";
        let keys = |profile| {
            read(text, profile).map(|found| (found.key_id, found.secret_key, found.token.unwrap_or_default()))
        };
        assert_eq!(keys("default"), Some(("AKIA1".into(), "one".into(), String::new())));
        assert_eq!(keys("ci"), Some(("AKIA2".into(), "a=b".into(), "t".into())));
        assert_eq!(keys("role"), None);
        assert_eq!(keys("missing"), None);
    }
}
