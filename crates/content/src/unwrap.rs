//! Peels compressors off an input until plain bytes, an archive or a database are left.

use std::io::Read;
use std::sync::Arc;

use crate::archive::Archive;
use crate::budget::{Budget, CountPacked, Metered};
use crate::codec::{Packing, Unpacked};
use crate::detect::{Format, HEAD_LEN, detect, detect_seekable};
use crate::error::ContentError;
use crate::input::{Held, Input, ReadAt, read_full_at};
use crate::source::Source;
use crate::tar::Tar;
use crate::zip::Zip;

/// What an input turned out to be once all compressors around it are peeled off.
pub enum Unwrapped {
    Plain(Box<dyn Read + Send>),
    Archive(Archive),
    /// A file that is a database: [`open_tables`](crate::open_tables) reads it. One that had no random access of its own
    /// is held in memory; one that does not fit there is [`Unwrapped::Plain`].
    Database(Arc<dyn ReadAt>),
}

/// Opens an input: the names of the compressors peeled off it, outermost first, and what was in them.
///
/// `head_format` is what [`detect`] said of its first bytes; with `None` they are looked at here. `depth`
/// is the number of containers around the input, 0 for an outermost object; each compressor and each
/// archive is one more, and past the limit nothing is opened.
pub fn unwrap(
    input: Input,
    head_format: Option<Format>,
    budget: &Arc<Budget>,
    mut depth: u32,
) -> Result<(Vec<&'static str>, Unwrapped), ContentError> {
    let mut input = if depth == 0 { counted(input, budget)? } else { input };
    let mut chain = Vec::new();
    let mut known = head_format;
    loop {
        let (format, peeked) = match known.take() {
            Some(format) => (Some(format), input),
            None => look(input)?,
        };
        let Some(format) = format else {
            return Ok((chain, Unwrapped::Plain(peeked.into_read())));
        };
        if format == Format::Sqlite {
            return Ok((chain, database(peeked, budget, depth)));
        }
        budget.check_depth(depth)?;
        depth += 1;
        let archive = match format {
            Format::Tar => Archive::tar(Tar::new(peeked, budget, depth)?),
            Format::Zip => Archive::zip(open_zip(peeked, budget, depth)?),
            compressor => {
                chain.push(compressor.name());
                let unpacked = Unpacked::new(Source::new(peeked.into_read()), Packing::Format(compressor));
                input = Input::Stream(Box::new(Metered::new(unpacked, budget)));
                continue;
            }
        };
        return Ok((chain, Unwrapped::Archive(archive)));
    }
}

/// Sees to it that the budget learns the size of the outermost object.
fn counted(input: Input, budget: &Arc<Budget>) -> Result<Input, ContentError> {
    if budget.packed_known() {
        return Ok(input);
    }
    Ok(match input {
        Input::Seekable(bytes) => {
            budget.add_packed(bytes.size()?);
            Input::Seekable(bytes)
        }
        Input::Stream(inner) => Input::Stream(Box::new(CountPacked { inner, budget: Arc::clone(budget) })),
    })
}

/// Looks at the head of an input and gives it back whole.
fn look(input: Input) -> Result<(Option<Format>, Input), ContentError> {
    match input {
        Input::Seekable(bytes) => {
            let mut head = [0; HEAD_LEN];
            let len = read_full_at(&*bytes, &mut head, 0)?;
            Ok((detect_seekable(&head[..len], &*bytes)?, Input::Seekable(bytes)))
        }
        Input::Stream(stream) => {
            let mut source = Source::new(stream);
            let format = detect(source.peek(HEAD_LEN));
            Ok((format, Input::Stream(Box::new(source))))
        }
    }
}

/// A zip is read through its directory, which is at its end: one that comes as a stream is held in memory
/// as far as the budget allows, and beyond that read entry by entry as it comes.
fn open_zip(input: Input, budget: &Arc<Budget>, depth: u32) -> Result<Zip, ContentError> {
    let mut stream = match input {
        Input::Seekable(bytes) => return Zip::central(bytes, budget, depth),
        Input::Stream(stream) => stream,
    };
    let mut held = Held::new(budget);
    match held.fill(&mut *stream) {
        (true, None) => Zip::central(Arc::new(held), budget, depth),
        // A stream that broke off has no directory: what is there is read as it comes, then the error.
        (true, Some(error)) => Ok(Zip::stream(held.then(Box::new(Broken(Some(error)))), budget, depth)),
        (false, _) => Ok(Zip::stream(held.then(stream), budget, depth)),
    }
}

/// A database is read at any place: one that is not an outermost object is held in memory for that. One that
/// cannot be is only so many bytes, as it is when it breaks off or is nested too deep.
fn database(input: Input, budget: &Arc<Budget>, depth: u32) -> Unwrapped {
    if budget.check_depth(depth).is_err() {
        return Unwrapped::Plain(input.into_read());
    }
    let mut stream = match input {
        Input::Seekable(bytes) if depth == 0 => return Unwrapped::Database(bytes),
        input => input.into_read(),
    };
    let mut held = Held::new(budget);
    match held.fill(&mut *stream) {
        (true, None) => Unwrapped::Database(Arc::new(held)),
        (true, Some(error)) => Unwrapped::Plain(held.then(Box::new(Broken(Some(error))))),
        (false, _) => Unwrapped::Plain(held.then(stream)),
    }
}

/// The end of a stream that failed.
struct Broken(Option<std::io::Error>);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        match self.0.take() {
            Some(error) => Err(error),
            None => Ok(0),
        }
    }
}
