//! Values as people write them: sizes, durations, ids, settings. Each parser's error says what to write.

use std::time::Duration;

use domesday_connector::credentials::reference_forms;
use domesday_model::{
    EnumerationSessionId, MasterJobId, SessionStatus, TargetType, TaskId, TaskStatus, TaskType,
};
use serde_json::Value;

/// `123`, `10K`, `50M`, `2G`, `1T`: powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("`{text}` is not a size: write a number of bytes, or one with K, M, G or T behind it");
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        Some(b't' | b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// `30s`, `15m`, `12h`, `90d`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!("`{text}` is not a duration: write a number with s, m, h or d behind it, such as 12h or 90d")
    };
    let seconds = match text.as_bytes().last() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 3_600,
        Some(b'd') => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    // The book counts milliseconds in 63 bits.
    let total = number.checked_mul(seconds).filter(|total| *total <= i64::MAX as u64 / 1_000);
    total.map(Duration::from_secs).ok_or_else(wrong)
}

/// The id of a job that is to be: 32 hexadecimal digits, or the same as a UUID.
pub fn parse_job_id(text: &str) -> Result<MasterJobId, String> {
    text.replace('-', "").parse().map_err(|_| {
        format!("`{text}` is not an id: write 32 hexadecimal digits, or a UUID, such as from `uuidgen`")
    })
}

/// Attempts at a source, at most: each may take as long as its time-outs allow.
const ATTEMPTS_MAX: u32 = 20;

pub fn parse_attempts(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(attempts @ 1..=ATTEMPTS_MAX) => Ok(attempts),
        _ => Err(format!("attempts are a number from 1 to {ATTEMPTS_MAX}")),
    }
}

pub fn parse_task_id(text: &str) -> Result<TaskId, String> {
    let wrong = || format!("`{text}` is not the id of a task: `domesday task list` shows them");
    text.parse().map(TaskId).map_err(|_| wrong())
}

pub fn parse_session_id(text: &str) -> Result<EnumerationSessionId, String> {
    let wrong = || format!("`{text}` is not the id of a session: `domesday session list` shows them");
    text.parse().map(EnumerationSessionId).map_err(|_| wrong())
}

pub fn parse_session_status(text: &str) -> Result<SessionStatus, String> {
    SessionStatus::parse(&text.to_uppercase()).ok_or_else(|| {
        let known: Vec<String> =
            SessionStatus::ALL.iter().map(|status| status.as_str().to_lowercase()).collect();
        format!("`{text}` is not the status of a session: one of {}", known.join(", "))
    })
}

pub fn parse_target_type(text: &str) -> Result<TargetType, String> {
    TargetType::parse(&text.to_lowercase()).ok_or_else(|| {
        let known: Vec<&str> = TargetType::ALL.iter().map(|target| target.as_str()).collect();
        format!("`{text}` is not a type of target: one of {}", known.join(", "))
    })
}

pub fn parse_task_status(text: &str) -> Result<TaskStatus, String> {
    TaskStatus::parse(&text.to_uppercase()).ok_or_else(|| {
        let known: Vec<String> =
            TaskStatus::ALL.iter().map(|status| status.as_str().to_lowercase()).collect();
        format!("`{text}` is not the status of a task: one of {}", known.join(", "))
    })
}

pub fn parse_task_type(text: &str) -> Result<TaskType, String> {
    let named = TaskType::ALL.iter().find(|kind| kind.facts().title == text.to_lowercase());
    named
        .copied()
        .or_else(|| TaskType::parse(&text.to_uppercase()))
        .ok_or_else(|| format!("`{text}` is not a type of task: one of {}", task_types()))
}

/// What `--type` takes.
pub fn task_types() -> String {
    TaskType::ALL.iter().map(|kind| kind.facts().title).collect::<Vec<_>>().join(", ")
}

/// One `--set`: where, and what.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// The way to the field, from the outside in.
    pub path: Vec<String>,
    pub value: Value,
}

/// `root=/srv/share`, `exclude=["*.lock"]`, `limits.depth=3`: what is no JSON value is text. The value is
/// not quoted in an error: it may be a secret that belongs elsewhere.
pub fn parse_setting(text: &str) -> Result<Setting, String> {
    let (path, value) = text.split_once('=').ok_or("write it as FIELD=VALUE")?;
    let path: Vec<String> = path.split('.').map(|part| part.trim().to_owned()).collect();
    if path.iter().any(String::is_empty) {
        return Err("write it as FIELD=VALUE, the field named as in the configuration".into());
    }
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok(Setting { path, value })
}

/// The help of an option that takes a reference: what it is for, and how references are written.
pub fn reference_help(what: &str) -> String {
    format!("{what}: {}, never the secret itself", reference_forms())
}

/// `host=nas1`.
pub fn parse_label(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("`{text}` is not a label: write KEY=VALUE, such as host=nas1")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("123"), Ok(123));
        assert_eq!(parse_size("2k"), Ok(2_048));
        assert_eq!(parse_size("3G"), Ok(3 << 30));
        for wrong in ["", "G", "1.5M", "-1", "99999999999T", "5 M"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, seconds) in [("30s", 30), ("15m", 900), ("12h", 43_200), ("90d", 7_776_000), ("0s", 0)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)));
        }
        for wrong in ["", "90", "d", "1.5h", "-1d", "3w", "99999999999999999d", "1 d", "9é"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ids_may_be_uuids() {
        let id = parse_job_id("0102030405060708090a0b0c0d0e0f10").unwrap();
        assert_eq!(parse_job_id("01020304-0506-0708-090a-0b0c0d0e0f10"), Ok(id));
        assert!(parse_job_id("0102").is_err() && parse_task_id("x").is_err());
        assert_eq!(parse_task_id("17"), Ok(TaskId(17)));
    }

    #[test]
    fn settings_are_json_or_text() {
        let value = |text| parse_setting(text).unwrap().value;
        assert_eq!(value("root=/srv/share"), json!("/srv/share"));
        assert_eq!(value("exclude=[\"*.lock\"]"), json!(["*.lock"]));
        assert_eq!(value("max_file_size=10"), json!(10));
        assert_eq!(value("name=\"10\""), json!("10"));
        assert_eq!(value("query=a=b"), json!("a=b"));
        assert_eq!(parse_setting("a.b=true").unwrap().path, ["a", "b"]);
        for wrong in ["hunter2", "=hunter2", "a..b=hunter2"] {
            assert!(!parse_setting(wrong).unwrap_err().contains("hunter2"));
        }
    }

    #[test]
    fn words_are_taken_in_any_case() {
        assert_eq!(parse_task_status("failed"), Ok(TaskStatus::Failed));
        assert_eq!(parse_task_status("FAILED"), Ok(TaskStatus::Failed));
        assert!(parse_task_status("dead").unwrap_err().contains("pending"));
        assert_eq!(parse_task_type("Classification"), Ok(TaskType::Classification));
        assert!(parse_task_type("x").is_err());
        assert_eq!(parse_label("host=nas1"), Ok("host=nas1".into()));
        for wrong in ["host", "=x", "host=", ""] {
            assert!(parse_label(wrong).is_err(), "{wrong}");
        }
    }
}
