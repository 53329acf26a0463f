//! Provider `command`: what a program prints, such as a password manager's. One line break at its end is not
//! part of the secret.
//!
//! Which commands a data source may have run is for the policy ([`super::CredentialPolicy`]). No shell takes part: the
//! reference is split into words here. What the program says on its standard error goes nowhere, for it may have the
//! secret in it.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::Child;

use super::{CredentialError, CredentialProvider, CredentialReference, SECRET_LEN_MAX, Secret};

/// How long a program may take; people are asked nothing.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(30);
/// The exit code of programs that failed for now (EX_TEMPFAIL).
const EXIT_FOR_NOW: i32 = 75;

/// Runs programs for secrets.
pub struct CommandOutput {
    time_max: Duration,
}

impl Default for CommandOutput {
    fn default() -> Self {
        CommandOutput { time_max: COMMAND_TIME_MAX }
    }
}

#[async_trait]
impl CredentialProvider for CommandOutput {
    fn scheme(&self) -> &'static str {
        "command"
    }

    async fn fetch(&self, reference: &CredentialReference) -> Result<Secret, CredentialError> {
        let words = words(reference.name()).map_err(|problem| reference.unavailable(problem))?;
        let (secret, status) = match tokio::time::timeout(self.time_max, run(&words)).await {
            Ok(ended) => {
                ended.map_err(|error| reference.unavailable(format!("cannot run the program: {error}")))?
            }
            Err(_) => {
                let seconds = self.time_max.as_secs();
                return Err(reference
                    .unavailable_now(format!("the program did not end within {seconds} s, and was killed")));
            }
        };
        if !status.success() {
            let detail = format!("the program failed ({}): run it by hand to see why", shown(status));
            return Err(match status.code() {
                Some(EXIT_FOR_NOW) => reference.unavailable_now(detail),
                _ => reference.unavailable(detail),
            });
        }
        secret.checked(reference, "the program printed")
    }
}

fn shown(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    }
}

/// Runs a program to its end. When this is dropped before, whatever runs is killed.
async fn run(words: &[String]) -> std::io::Result<(Secret, ExitStatus)> {
    let child = tokio::process::Command::new(&words[0])
        .args(&words[1..])
        // Not where the user is: that may be somebody else's repository, and programs look around.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let mut group = Group(child);
    // Room for one byte too many, so that more is noticed and the buffer never moves, which would leave a
    // copy behind.
    let mut secret = Secret::new(Vec::with_capacity(SECRET_LEN_MAX + 1));
    if let Some(output) = group.0.stdout.take() {
        output.take(SECRET_LEN_MAX as u64 + 1).read_to_end(&mut secret.0).await?;
    }
    if secret.expose().len() > SECRET_LEN_MAX {
        // It may go on for ever; it is killed on the way out.
        return Ok((secret, ExitStatus::default()));
    }
    let status = group.0.wait().await?;
    Ok((secret, status))
}

/// A program and what it started. Killed together, unless the program has ended by itself.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // While it was not waited for, the id is its own.
        let id = self.0.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

/// A command's words: separated by spaces, or quoted, in which a quote ends with another of its kind.
pub(super) fn words(command: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut rest = command.trim_start();
    while !rest.is_empty() {
        let mut word = String::new();
        while let Some(first) = rest.chars().next().filter(|c| !c.is_whitespace()) {
            if matches!(first, '\'' | '"') {
                let (quoted, after) =
                    rest[1..].split_once(first).ok_or("a quote is opened and not closed")?;
                word.push_str(quoted);
                rest = after;
            } else {
                word.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        words.push(word);
        rest = rest.trim_start();
    }
    match words.first() {
        Some(program) if Path::new(program).is_absolute() => Ok(words),
        _ => Err("begin it with the absolute path of a program"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{Mode, OFlags};
    use tempfile::TempDir;

    use super::*;

    /// A program of these lines, as the beginning of a command.
    fn program(lines: &str) -> (TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, lines).unwrap();
        // Not run by itself: a file that was just written is busy while another test starts a process.
        let command = format!("/bin/sh {}", path.display());
        (folder, command)
    }

    async fn fetch(lines: &str, arguments: &str) -> Result<Secret, CredentialError> {
        let (_folder, command) = program(lines);
        CommandOutput::default().fetch(&format!("command:{command} {arguments}").parse()?).await
    }

    #[tokio::test]
    async fn what_it_prints_is_the_secret() {
        let printed = |lines| async move { fetch(lines, "").await.unwrap().expose().to_vec() };
        assert_eq!(printed("echo hunter2").await, b"hunter2");
        assert_eq!(printed("printf 'a\\n\\n'").await, b"a\n");
        assert_eq!(printed("echo a; echo noise >&2").await, b"a");
        assert_eq!(printed("pwd; cat").await, b"/", "nothing comes in, and it is nowhere in particular");
    }

    #[tokio::test]
    async fn words_come_as_they_are_and_no_shell_reads_them() {
        let arguments = r#"one 'two three' "f'our" 'fi'"ve" $HOME `id` ;id '' *"#;
        let printed = fetch(r#"for word in "$@"; do echo "[$word]"; done"#, arguments).await.unwrap();
        let expected = "[one]\n[two three]\n[f'our]\n[five]\n[$HOME]\n[`id`]\n[;id]\n[]\n[*]";
        assert_eq!(String::from_utf8_lossy(printed.expose()), expected);
    }

    #[test]
    fn a_command_is_split_or_refused() {
        for wrong in ["", " ", "program", "./program", "/bin/a 'b", "/bin/a \"b", "''"] {
            assert!(words(wrong).is_err(), "{wrong}");
        }
        assert_eq!(words("  /bin/a  b ").unwrap(), ["/bin/a", "b"]);
    }

    #[tokio::test]
    async fn failures_are_told_without_what_was_printed() {
        for (lines, told, retryable) in [
            ("echo hunter2; exit 3", "exit code 3", false),
            ("echo hunter2 >&2; exit 75", "exit code 75", true),
            ("echo hunter2; kill -9 $$", "signal: 9", false),
            ("echo", "nothing", false),
            ("yes hunter2", "more than", false),
        ] {
            let error = fetch(lines, "").await.unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
            assert_eq!(error.is_retryable(), retryable, "{error}");
        }
        let provider = CommandOutput::default();
        let error = provider.fetch(&"command:/no/such/program".parse().unwrap()).await.unwrap_err();
        assert!(error.to_string().contains("cannot run the program"), "{error}");
    }

    #[tokio::test]
    async fn a_program_that_does_not_end_is_killed_with_what_it_started() {
        let (folder, command) =
            program("mkfifo $(dirname $0)/alive; cat $(dirname $0)/alive & echo hunter2; wait");
        let provider = CommandOutput { time_max: Duration::from_secs(1) };
        let error = provider.fetch(&format!("command:{command}").parse().unwrap()).await.unwrap_err();
        assert!(error.is_retryable() && error.to_string().contains("did not end"), "{error}");
        let fifo = folder.path().join("alive");
        assert!(fifo.exists());
        // A fifo that nobody reads cannot be opened for writing without waiting.
        let is_read = || rustix::fs::open(&fifo, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()).is_ok();
        for _ in 0..500 {
            if !is_read() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("what the program started still runs");
    }
}
