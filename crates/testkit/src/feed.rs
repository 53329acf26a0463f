//! Runs a program with text on its standard input.
//!
//! A program may end before it has read all of its input, after an error for instance. That is no failure of the test:
//! what the program printed and its exit status are the answer. So a broken pipe is expected, and any other error is
//! returned. A thread of its own writes, so that a program that prints before it has read everything cannot block.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// What the program prints, and how it ends.
pub fn feed(command: &mut Command, input: &[u8]) -> io::Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().expect("its input is piped");
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || stdin.write_all(input));
        let output = child.wait_with_output()?;
        match writer.join().expect("writing does not panic") {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(output),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than a pipe holds, so that a program that leaves early always breaks it.
    const LONGER_THAN_A_PIPE: usize = 1 << 20;

    #[test]
    fn a_program_that_leaves_early_still_gives_its_answer() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo refused >&2; exit 7"]);
        let output = feed(&mut command, &vec![b'x'; LONGER_THAN_A_PIPE]).unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(7), b"refused\n".as_slice()));
    }

    #[test]
    fn a_program_that_prints_while_it_reads_gets_everything() {
        let input = vec![b'x'; LONGER_THAN_A_PIPE];
        assert_eq!(feed(&mut Command::new("cat"), &input).unwrap().stdout, input);
    }
}
