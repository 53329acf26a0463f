//! Peels compressors off an input until plain bytes, an archive or tables are left.

use std::io::Read;
use std::sync::Arc;

use crate::archive::Archive;
use crate::budget::{Budget, CountPacked, Metered};
use crate::codec::Unpacked;
use crate::error::ContentError;
use crate::format::{Format, HEAD_LEN, Inside, detect, detect_seekable};
use crate::input::{Broken, Held, Input, read_full_at};
use crate::source::Source;
use crate::table::{OpenTables, TableFile};

/// What an input turned out to be once all compressors around it are peeled off.
pub enum Unwrapped {
    Plain(Box<dyn Read + Send>),
    Archive(Archive),
    /// A file of tables. One that had no random access of its own is held in memory; one that does not fit there is
    /// [`Unwrapped::Plain`].
    Tables(TableFile),
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
        match format.0.inside {
            Inside::Tables(open) => return Ok((chain, table_file(peeked, open, budget, depth))),
            Inside::Entries(open) => {
                budget.check_depth(depth)?;
                let entries = open(peeked, budget, depth + 1)?;
                return Ok((chain, Unwrapped::Archive(Archive::new(entries))));
            }
            Inside::Stream(compressor) => {
                budget.check_depth(depth)?;
                depth += 1;
                chain.push(format.name());
                let unpacked = Unpacked::new(Source::new(peeked.into_read()), compressor);
                input = Input::Stream(Box::new(Metered::new(unpacked, budget)));
            }
        }
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

/// Tables are read at any place: a file that is not an outermost object is held in memory for that. One that
/// cannot be is only so many bytes, as it is when it breaks off or is nested too deep.
fn table_file(input: Input, open: OpenTables, budget: &Arc<Budget>, depth: u32) -> Unwrapped {
    if budget.check_depth(depth).is_err() {
        return Unwrapped::Plain(input.into_read());
    }
    let mut stream = match input {
        Input::Seekable(bytes) if depth == 0 => return Unwrapped::Tables(TableFile::new(bytes, open)),
        input => input.into_read(),
    };
    let mut held = Held::new(budget);
    match held.fill(&mut *stream) {
        (true, None) => Unwrapped::Tables(TableFile::new(Arc::new(held), open)),
        (true, Some(error)) => Unwrapped::Plain(held.then(Broken::with(error))),
        (false, _) => Unwrapped::Plain(held.then(stream)),
    }
}
