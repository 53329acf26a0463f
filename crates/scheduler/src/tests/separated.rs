//! Files of separated values, beside their text.

use domesday_model::{Reason, TableKind};
use proptest::prelude::*;

use super::support::*;

fn file(rows: usize) -> String {
    let row = |n: usize| {
        format!("{n},\"a, \"\"b\"\"\nc\",{}\r\n", if n.is_multiple_of(2) { key(n) } else { String::new() })
    };
    format!("id,remark,token\r\n{}", (0..rows).map(row).collect::<String>())
}

#[test]
fn a_file_of_separated_values_is_a_table_beside_its_text() {
    let bytes = file(50);
    let bodies = || vec![Body::bytes(bytes.as_bytes()), Body::bytes(gzip(bytes.as_bytes()))];
    let plain = Survey::new(1).suffix(".txt").run(bodies());
    assert_eq!((plain.tables.len(), plain.findings.len()), (0, 50));
    let outcome = Survey::new(1).suffix(".csv").run(bodies());
    let places = |outcome: &Outcome| {
        outcome
            .findings
            .iter()
            .map(|f| (f.span, f.position, f.score, f.fingerprint, f.row.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(places(&outcome), places(&plain), "the text is scanned as ever");
    assert_eq!(outcome.totals, plain.totals);
    let [seen, packed] = &outcome.tables[..] else { panic!("two tables") };
    assert_eq!((seen.table.to_string(), seen.part.to_string()), ("o0.csv".to_owned(), "o0.csv".to_owned()));
    let columns: Vec<&str> = seen.shape.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!((seen.shape.kind, columns), (TableKind::File, vec!["id", "remark", "token"]));
    assert_eq!((seen.rows, seen.is_sample, seen.shape.row_estimate), (50, false, Some(50)));
    assert!(seen.shape.primary_key.is_empty() && seen.sketches.len() == 3);
    assert_eq!((&packed.sketches, &packed.shape), (&seen.sketches, &seen.shape));

    let archive =
        tar(&[("x/people.TSV", b"name\tmail\nA\ta@b\n"), ("x/people.txt", b"name\tmail\nA\ta@b\n")]);
    let outcome = Survey::new(2).run(vec![Body::stream(archive)]);
    let [seen] = &outcome.tables[..] else { panic!("one table") };
    assert_eq!((seen.table.to_string().as_str(), seen.part.to_string().as_str()), ("o0!/x/people.TSV", "o0"));
}

#[test]
fn a_file_that_breaks_off_is_a_sample() {
    let outcome = Survey::new(1).suffix(".csv").run(vec![Body::Short(file(5).into_bytes().into())]);
    assert_eq!(outcome.reported(), [("o0.csv".to_owned(), "partial", Some(Reason::Changed))]);
    assert_eq!((outcome.tables[0].rows, outcome.tables[0].is_sample), (5, true));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_chunk_size_gives_the_same_table(
        cells in proptest::collection::vec("[a-z ,\"\n\r\u{e9}]{0,12}", 1..60),
        repeat in 1usize..80,
        chunk in 300usize..20_000,
        threads in 1usize..4,
    ) {
        let row = |cells: &[String]| {
            let quoted = cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\"")));
            quoted.collect::<Vec<_>>().join(",") + "\r\n"
        };
        let rows: String = cells.chunks(3).map(row).collect();
        let text = format!("one,two,three\n{}", rows.repeat(repeat));
        let wide: Vec<u8> = [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let bodies = || vec![
            Body::bytes(text.as_bytes()),
            Body::stream([b"\xef\xbb\xbf", text.as_bytes()].concat()),
            Body::bytes(wide.clone()),
            Body::stream(gzip(text.as_bytes())),
        ];
        let whole = Survey::new(1).suffix(".csv").run(bodies());
        let chunked = Survey::new(threads).chunk(chunk).suffix(".csv").run(bodies());
        prop_assert_eq!(&chunked, &whole);
        for table in whole.tables.windows(2) {
            prop_assert_eq!(&table[0].sketches, &table[1].sketches);
        }
    }
}
