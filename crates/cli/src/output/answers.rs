//! What administrative commands say: lists, one thing in full, or one sentence, for people or programs.

use std::io::{self, Write};

use serde::Serialize;

use super::json::{write_json, write_json_lines};
use super::lists::{columns, write_rule_detail};
use super::{ListFormat, Style, text};

/// Writes things in the order given: a JSON array, or a row each.
pub fn write_list<'t, T, J: Serialize, const N: usize>(
    out: &mut impl Write,
    items: &'t [T],
    json: impl Fn(&'t T) -> J,
    (header, row): ([&str; N], impl Fn(&T) -> [String; N]),
    format: ListFormat,
    style: Style,
) -> io::Result<()> {
    match format {
        ListFormat::Json => write_json_lines(out, items.iter().map(json)),
        ListFormat::Table => columns(out, header, items.iter().map(row).collect(), style),
    }
}

/// Writes a list of any length, a page at a time: a JSON array, or a table, whose columns are as wide as each page
/// needs.
pub struct ListPages<W, const N: usize> {
    out: W,
    header: [&'static str; N],
    format: ListFormat,
    style: Style,
    items: usize,
}

impl<W: Write, const N: usize> ListPages<W, N> {
    pub fn new(out: W, header: [&'static str; N], format: ListFormat, style: Style) -> Self {
        ListPages { out, header, format, style, items: 0 }
    }

    pub fn page<'t, T, J: Serialize>(
        &mut self,
        items: &'t [T],
        json: impl Fn(&'t T) -> J,
        row: impl Fn(&T) -> [String; N],
    ) -> io::Result<()> {
        match self.format {
            ListFormat::Table => {
                columns(&mut self.out, self.header, items.iter().map(row).collect(), self.style)?;
            }
            ListFormat::Json => {
                for (index, item) in items.iter().enumerate() {
                    self.out.write_all(if self.items + index == 0 { b"[\n" } else { b",\n" })?;
                    write_json(&mut self.out, &json(item))?;
                }
            }
        }
        self.items += items.len();
        Ok(())
    }

    /// After the last page: ends the array, or shows that there is nothing.
    pub fn end(mut self) -> io::Result<()> {
        match (self.format, self.items) {
            (ListFormat::Json, 0) => self.out.write_all(b"[\n]\n")?,
            (ListFormat::Json, _) => self.out.write_all(b"\n]\n")?,
            (ListFormat::Table, 0) => columns(&mut self.out, self.header, Vec::new(), self.style)?,
            (ListFormat::Table, _) => {}
        }
        self.out.flush()
    }
}

/// A table with its title, and nothing when it has no rows.
pub fn write_table<const N: usize>(
    out: &mut impl Write,
    header: [&str; N],
    rows: Vec<[String; N]>,
    style: Style,
) -> io::Result<()> {
    if rows.is_empty() { Ok(()) } else { columns(out, header, rows, style) }
}

/// Writes one thing: a JSON object, or its fields, those without a value left out.
pub fn write_detail(
    out: &mut impl Write,
    json: &impl Serialize,
    fields: Vec<(&str, String)>,
    format: ListFormat,
    style: Style,
) -> io::Result<()> {
    if format == ListFormat::Json {
        return write_object(out, json);
    }
    let fields: Vec<(&str, String)> = fields.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    write_rule_detail(out, &fields, style)
}

/// Writes what was done: a JSON object, or lines.
pub fn write_answer(
    out: &mut impl Write,
    json: &impl Serialize,
    lines: &[String],
    format: ListFormat,
) -> io::Result<()> {
    if format == ListFormat::Json {
        return write_object(out, json);
    }
    lines.iter().try_for_each(|line| writeln!(out, "{}", text::shown(line)))
}

/// One JSON object on a line.
pub fn write_object(out: &mut impl Write, json: &impl Serialize) -> io::Result<()> {
    write_json(out, json)?;
    out.write_all(b"\n")?;
    out.flush()
}
