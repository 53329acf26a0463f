//! What a column's type means to reading it: how its values come as text, and how they are compared as a key.
//!
//! Everything is decided by the type as the server writes it, which is what the listing kept. Results come in the
//! text protocol, so the server itself writes numbers, dates and the rest; an expression is asked for only where
//! that text would not be exact, not be text, or be too long.

use std::fmt::Write as _;

use domesday_model::ColumnShape;
use domesday_model::RowBatch;

/// Bytes of one row that its long values may have together, so that no table is too wide for memory.
const ROW_MAX: usize = 16 << 20;

/// What a type is to us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    Integer,
    /// Exact, with a fraction.
    Decimal,
    Float,
    Double,
    Bit,
    /// One or more of a list of words. Ordered by their numbers, though compared with texts as texts.
    Enum,
    /// At most 64 KiB in the server's own row.
    Text,
    LongText,
    /// Bytes.
    Binary,
    LongBinary,
    Geometry,
    /// What is read and written as its text: dates and times, UUIDs, addresses.
    Other,
}

impl Family {
    /// Of a type such as `decimal(10,2) unsigned zerofill`.
    pub fn of(type_name: &str) -> Family {
        let base = type_name.split(['(', ' ']).next().unwrap_or_default();
        match base.to_ascii_lowercase().as_str() {
            "tinyint" | "smallint" | "mediumint" | "int" | "integer" | "bigint" | "year" => Family::Integer,
            "decimal" | "numeric" => Family::Decimal,
            "float" => Family::Float,
            "double" | "real" => Family::Double,
            "bit" => Family::Bit,
            "enum" | "set" => Family::Enum,
            "char" | "varchar" => Family::Text,
            "tinytext" | "text" | "mediumtext" | "longtext" | "json" => Family::LongText,
            // A vector is at most 64 KiB, and MySQL has no function that would cut it.
            "binary" | "varbinary" | "vector" => Family::Binary,
            "tinyblob" | "blob" | "mediumblob" | "longblob" => Family::LongBinary,
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
            | "multipolygon" | "geometrycollection" | "geomcollection" => Family::Geometry,
            _ => Family::Other,
        }
    }

    fn is_long(self) -> bool {
        matches!(self, Family::LongText | Family::LongBinary | Family::Geometry)
    }
}

/// A column to be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Column {
    /// Its quoted name.
    name: String,
    pub family: Family,
    /// Bytes kept of a value.
    max: usize,
    /// Whether its values are not asked for.
    pub is_out: bool,
}

impl Column {
    /// All columns of a table.
    pub fn all(shapes: &[ColumnShape]) -> Vec<Column> {
        let families: Vec<Family> = shapes.iter().map(|shape| Family::of(&shape.type_name)).collect();
        let long = families.iter().filter(|family| family.is_long()).count();
        let max = RowBatch::VALUE_MAX.min(ROW_MAX / long.max(1));
        let column = |(shape, family): (&ColumnShape, Family)| Column {
            name: identifier(&shape.name),
            family,
            max,
            is_out: false,
        };
        shapes.iter().zip(families).map(column).collect()
    }

    /// What its values are read with. Of a long one a character more than is kept: so it is known to be cut.
    pub fn value(&self) -> String {
        let Column { name, family, max, is_out } = self;
        match family {
            _ if *is_out => "NULL".to_owned(),
            // The server rounds a FLOAT to six digits when it writes it; as a DOUBLE it has them all.
            Family::Float => format!("{name} * 1e0"),
            Family::Bit => format!("{name} + 0"),
            Family::LongText | Family::LongBinary => format!("LEFT({name}, {})", max + 1),
            Family::Geometry => format!("LEFT(ST_AsText({name}), {})", max + 1),
            _ => name.clone(),
        }
    }

    /// What is kept of a value that was read, unless that is all of it.
    pub fn cut<'a>(&self, value: &'a [u8]) -> Option<&'a [u8]> {
        if value.len() <= self.max || !self.family.is_long() {
            return None;
        }
        let mut end = self.max;
        // Not inside of a character; of bytes that are no text, nothing is lost by it.
        while self.family != Family::LongBinary && end > 0 && value[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        Some(&value[..end])
    }

    /// Its quoted name, by which keys are compared and ordered: the index has the same order.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its part of a key is read with.
    pub fn key(&self) -> String {
        match self.family {
            Family::Enum | Family::Bit => format!("{} + 0", self.name),
            Family::Float => format!("{} * 1e0", self.name),
            Family::Binary | Family::LongBinary => format!("HEX({})", self.name),
            _ => self.name.clone(),
        }
    }

    /// A part of a key that was read, to compare with; `None` when it cannot be one.
    pub fn literal(&self, part: &str) -> Option<String> {
        let is_number = |allowed: &str| {
            part.bytes().any(|b| b.is_ascii_digit())
                && part.bytes().all(|b| b.is_ascii_digit() || allowed.as_bytes().contains(&b))
        };
        match self.family {
            Family::Integer | Family::Enum | Family::Bit => is_number("-").then(|| part.to_owned()),
            Family::Decimal => is_number("-.").then(|| part.to_owned()),
            // With an exponent, or it would be a DECIMAL.
            Family::Float | Family::Double if part.contains('e') => {
                is_number("-+.e").then(|| part.to_owned())
            }
            Family::Float | Family::Double => is_number("-.").then(|| format!("{part}e0")),
            Family::Binary | Family::LongBinary => {
                part.bytes().all(|b| b.is_ascii_hexdigit()).then(|| format!("x'{part}'"))
            }
            _ => Some(text(part)),
        }
    }
}

/// A FLOAT, from the DOUBLE that it was read as: the shortest number that is the same.
pub(super) fn write_float(value: &[u8], into: &mut Vec<u8>) {
    use std::io::Write as _;
    let parsed = std::str::from_utf8(value).ok().and_then(|text| text.parse::<f64>().ok());
    let written = match parsed.map(|number| number as f32) {
        // Where the server, too, leaves the digits and gives an exponent.
        Some(number) if number != 0.0 && !(1e-5..1e15).contains(&number.abs()) => write!(into, "{number:e}"),
        Some(number) => write!(into, "{number}"),
        None => into.write_all(value),
    };
    written.expect("a vector takes all that is written into it");
}

/// A quoted identifier. Backticks quote in every SQL mode.
pub(super) fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as a literal that no SQL mode reads otherwise.
pub(super) fn text(value: &str) -> String {
    let mut literal = String::with_capacity(value.len() * 2 + 12);
    literal.push_str("_utf8mb4 x'");
    for byte in value.bytes() {
        write!(literal, "{byte:02x}").expect("a string takes all that is written into it");
    }
    literal.push('\'');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(type_name: &str) -> Column {
        let shape = ColumnShape { name: "a`b".into(), type_name: type_name.into(), comment: None };
        Column::all(&[shape]).remove(0)
    }

    #[test]
    fn types_are_told_apart_by_their_first_word() {
        for (type_name, family) in [
            ("int(10) unsigned zerofill", Family::Integer),
            ("BIGINT", Family::Integer),
            ("decimal(10,2)", Family::Decimal),
            ("enum('int','a b')", Family::Enum),
            ("varchar(20)", Family::Text),
            ("longtext /*M!100301 COMPRESSED*/", Family::LongText),
            ("varbinary(3)", Family::Binary),
            ("vector(2048)", Family::Binary),
            ("point", Family::Geometry),
            ("datetime(6)", Family::Other),
            ("uuid", Family::Other),
            ("", Family::Other),
        ] {
            assert_eq!(Family::of(type_name), family, "{type_name}");
        }
    }

    #[test]
    fn a_part_of_a_key_is_compared_as_its_type_is() {
        for (type_name, part, literal) in [
            ("bigint(20)", "-42", Some("-42")),
            ("bigint(20)", "1 OR 1", None),
            ("int(11)", "", None),
            ("decimal(5,2)", "-1.50", Some("-1.50")),
            ("double", "0.1", Some("0.1e0")),
            ("double", "1e-300", Some("1e-300")),
            ("double", "nan", None),
            ("enum('a')", "1", Some("1")),
            ("varbinary(4)", "00FF", Some("x'00FF'")),
            ("varbinary(4)", "00' OR '", None),
            ("varchar(4)", "a'\\", Some("_utf8mb4 x'61275c'")),
            ("datetime", "0000-00-00", Some("_utf8mb4 x'303030302d30302d3030'")),
        ] {
            assert_eq!(column(type_name).literal(part).as_deref(), literal, "{type_name} {part}");
        }
        assert_eq!(column("int(11)").name(), "`a``b`");
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let text = column("longtext");
        let max = RowBatch::VALUE_MAX;
        assert_eq!(text.value(), format!("LEFT(`a``b`, {})", max + 1));
        assert_eq!(text.cut(&vec![b'x'; max]), None);
        assert_eq!(text.cut(&vec![b'x'; max + 1]).map(<[u8]>::len), Some(max));
        let umlauts = "xü".repeat(max).into_bytes();
        assert!(std::str::from_utf8(text.cut(&umlauts).unwrap()).is_ok());
        let bytes = vec![0x80; max + 1];
        assert_eq!(column("blob").cut(&bytes).map(<[u8]>::len), Some(max));
        let many: Vec<ColumnShape> =
            (0..1_000).map(|_| ColumnShape { type_name: "text".into(), ..ColumnShape::default() }).collect();
        let kept: usize = Column::all(&many).iter().filter_map(|c| c.cut(&bytes)).map(<[u8]>::len).sum();
        assert!(kept <= ROW_MAX, "{kept}");
    }

    #[test]
    fn a_float_has_the_digits_it_needs() {
        for (double, float) in [
            ("0.10000000149011612", "0.1"),
            ("16777216", "16777216"),
            ("0", "0"),
            ("-1.5", "-1.5"),
            ("1.0000000150474662e30", "1e30"),
            ("odd", "odd"),
        ] {
            let mut written = Vec::new();
            write_float(double.as_bytes(), &mut written);
            assert_eq!(String::from_utf8(written).unwrap(), float);
        }
    }
}
