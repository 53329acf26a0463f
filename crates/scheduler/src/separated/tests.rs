//! What is taken for a file of separated values, and which rows are cut out of it.

use proptest::prelude::*;

use super::*;

fn recognised(text: &str) -> Option<(char, Vec<String>)> {
    Dialect::recognise(text.as_bytes(), true).map(|found| (char::from(found.delimiter), found.columns))
}

fn columns(text: &str) -> Option<String> {
    recognised(text).map(|(delimiter, columns)| format!("{delimiter} {}", columns.join("/")))
}

#[test]
fn files_are_told_by_name() {
    for name in ["a.csv", "dir/A.CSV", "x.tsv.gz", "x.tab", "a.b.csv.zst"] {
        assert!(head::is_name(name.as_bytes()), "{name}");
    }
    for name in ["", "csv", "a.csv.txt", "a.gz", "a.csvx", "a.csv.gz.gz"] {
        assert!(!head::is_name(name.as_bytes()), "{name}");
    }
}

#[test]
fn headers_are_told_from_values() {
    let check = |text: &str, expected: Option<&str>| {
        assert_eq!(columns(text).as_deref(), expected, "{text:?}");
    };
    check("a,b\n1,2\n", Some(", a/b"));
    check("a;b,c;d\n1;2;3\n", Some("; a/b,c/d"));
    check("name\tmail\nx\ty", Some("\t name/mail"));
    check("a|b\r\n1|2\r\n", Some("| a/b"));
    check("\r\n\n\"first name\",\"last\"\"name\"\nx,y\n", Some(", first name/last\"name"));
    check(",name\n0,x\n", Some(", /name"));
    check("city,region,2019,y2020\nx,y,1,2\n", Some(", city/region/2019/y2020"));
    check("a,b\n\"x\ny\",2\n3,\"4", Some(", a/b"));
    check("a,b,c\n1,2,3\n1,2\n1,2,3\n1,2,3\n", Some(", a/b/c"));
    // No row, no name, no column, no order.
    check("", None);
    check("a,b\n", None);
    check("a\nb\n", None);
    check("1,2\n3,4\n", None);
    check("ann@example.org,Ann\nbob@example.org,Bob\n", None);
    check("a,b,c\n1,2\n1\n", None);
    check("https://example.org/,page\nx,y\n", None);
}

/// The rows that are kept, and how many were met.
fn rows(text: &[u8], pieces: usize, limits: SampleLimits) -> (Vec<(u64, Vec<u8>)>, u64) {
    let dialect = Dialect { delimiter: b',', columns: vec!["a".to_owned(), "b".to_owned()] };
    let mut sampler = Sampler::of(dialect, limits);
    text.chunks(pieces).for_each(|piece| sampler.feed(piece));
    let (_, kept, met) = sampler.finish();
    (kept.into_iter().map(|row| (row.number, row.bytes.into_vec())).collect(), met)
}

const ALL: SampleLimits = SampleLimits { rows: usize::MAX, bytes: usize::MAX };

fn values(text: &str) -> Vec<Vec<String>> {
    let (kept, met) = rows(text.as_bytes(), 3, ALL);
    assert_eq!(kept.len() as u64, met);
    let value = |value: std::borrow::Cow<'_, [u8]>| String::from_utf8_lossy(&value).into_owned();
    kept.iter().map(|(_, row)| fields(row, b',').map(value).collect()).collect()
}

#[test]
fn rows_and_values_are_those_that_were_written() {
    let check =
        |text: &str, expected: &[&[&str]]| assert_eq!(values(&format!("h,h\n{text}")), expected, "{text:?}");
    check("1,2\n3,4", &[&["1", "2"], &["3", "4"]]);
    check("1,2\r\n\r\n\n3,4\r\n", &[&["1", "2"], &["3", "4"]]);
    check("\"a,\"\"b\nc\",2\n,\n", &[&["a,\"b\nc", "2"], &["", ""]]);
    check("\"\",\"\"\n\"\"\"\",x\n", &[&["", ""], &["\"", "x"]]);
    check("5\" pipe,a \"b\" c\n1,2,3\n4\n", &[&["5\" pipe", "a \"b\" c"], &["1", "2", "3"], &["4"]]);
    check("\"a\"b,c\n1,2\n", &[&["\"a\"b", "c"], &["1", "2"]]);
}

#[test]
fn a_quote_that_is_never_closed_costs_its_row_and_no_more() {
    let filler = "x,y\n".repeat(ROW_MAX / 4);
    let text = format!("h,h\n1,2\n\"open,{filler}3,4\n5,6\n");
    let (kept, met) = rows(text.as_bytes(), 1000, ALL);
    assert_eq!(kept.first().unwrap().1, b"1,2\n");
    assert_eq!(kept.last().unwrap().1, b"5,6\n");
    assert!(kept.len() < 10 && met < 10, "{met}");
    assert_eq!(rows(text.as_bytes(), 7, ALL), (kept, met));
}

#[test]
fn the_sample_is_spread_over_the_file_and_bounded() {
    let text: String =
        std::iter::once("h,h\n".to_owned()).chain((0..10_000).map(|n| format!("{n:05},x\n"))).collect();
    for limits in
        [SampleLimits { rows: 500, bytes: usize::MAX }, SampleLimits { rows: usize::MAX, bytes: 4_000 }]
    {
        let (kept, met) = rows(text.as_bytes(), 4096, limits);
        assert_eq!(met, 10_000);
        assert!((200..=500).contains(&kept.len()), "{}", kept.len());
        for part in 0..10 {
            let there = kept.iter().filter(|(number, _)| number / 1000 == part).count();
            assert!(there > 5, "{there} of rows {part}000 to {part}999");
        }
        for (number, row) in &kept {
            assert_eq!(row, format!("{number:05},x\n").as_bytes());
        }
        assert_eq!(rows(text.as_bytes(), 11, limits), (kept, met));
    }
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_rows(text in "[a,\"\n\r]{0,60}", piece in 1usize..20, most in 1usize..6) {
        let limits = SampleLimits { rows: most, bytes: 40 };
        prop_assert_eq!(rows(text.as_bytes(), piece, limits), rows(text.as_bytes(), 1000, limits));
        prop_assert_eq!(rows(text.as_bytes(), piece, ALL), rows(text.as_bytes(), 1000, ALL));
    }

    #[test]
    fn what_is_written_is_read(cells in proptest::collection::vec("[a-c,\"\n\r]{0,6}", 2..40)) {
        let rows: Vec<Vec<String>> = cells.chunks_exact(2).map(<[String]>::to_vec).collect();
        let quoted = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
        let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\r\n";
        let text = format!("h,h\n{}", rows.iter().map(line).collect::<String>());
        prop_assert_eq!(values(&text), rows);
    }
}
