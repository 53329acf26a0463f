//! Objects of formats that are recognised and not read: scanned as they stand, and named.

use domesday_model::Reason;

use super::support::*;
use super::table::{Table, text};

/// A PDF with a key in it, and so many bytes before its trailer.
fn pdf(len: usize, trailer: &str) -> Vec<u8> {
    let body = format!("%PDF-1.7\n{} {}\n", key(1), "x y ".repeat(len / 4));
    format!("{body}xref\n0 1\ntrailer\n{trailer}\nstartxref\n{}\n%%EOF\n", body.len()).into_bytes()
}

fn unsupported(name: &str) -> (String, &'static str, Option<Reason>) {
    (name.to_owned(), "unsupported", Some(Reason::UnsupportedFormat))
}

fn encrypted(name: &str) -> (String, &'static str, Option<Reason>) {
    (name.to_owned(), "partial", Some(Reason::Encrypted))
}

#[test]
fn a_document_is_named_and_its_bytes_are_scanned() {
    for len in [0, 100_000] {
        for threads in [1, 3] {
            let (open, locked) = (pdf(len, "<< >>"), pdf(len, "<< /Encrypt 3 0 R >>"));
            let outcome = Survey::new(threads).chunk(512).run(vec![
                Body::bytes(open.clone()),
                Body::stream(open.clone()),
                Body::bytes(gzip(&open)),
                Body::bytes(locked.clone()),
                Body::stream(locked.clone()),
                Body::stream(gzip(&locked)),
                Body::bytes(key(2)),
            ]);
            assert_eq!(outcome.places().len(), 7, "all bytes are scanned");
            let expected = [
                unsupported("o0"),
                unsupported("o1"),
                unsupported("o2"),
                encrypted("o3"),
                encrypted("o4"),
                encrypted("o5"),
            ];
            assert_eq!(outcome.reported(), expected);
            assert_eq!(outcome.reports[0].detail, "pdf");
            assert_eq!(outcome.totals.incomplete, 3, "what is unsupported is not incomplete");
        }
    }
}

#[test]
fn what_is_in_an_archive_is_named_by_its_place() {
    let archive =
        tar(&[("a.pdf", &pdf(5000, "<< >>")), ("b.pdf", &pdf(5000, "<< /Encrypt 3 0 R >>")), ("c", b"x")]);
    for body in [Body::bytes(archive.clone()), Body::stream(gzip(&archive))] {
        let outcome = Survey::new(2).chunk(512).run(vec![body]);
        assert_eq!(outcome.reported(), [unsupported("o0!/a.pdf"), encrypted("o0!/b.pdf")]);
    }
}

#[test]
fn what_keeps_bytes_from_being_read_weighs_more() {
    let outcome = Survey::new(1).run(vec![Body::Short(std::sync::Arc::new(pdf(5000, "<< >>")))]);
    assert_eq!(outcome.reported(), [("o0".to_owned(), "partial", Some(Reason::Changed))]);
}

#[test]
fn of_documents_in_cells_the_table_is_named_once() {
    let document = || Some(pdf(10, "<< >>"));
    let rows = (0..50).map(|n| vec![text(format!("id-{n}")), document()]).collect();
    let outcome = Survey::new(2).run(vec![Body::table(Table::new(&["id", "body"], rows))]);
    assert_eq!(outcome.reported(), [unsupported("o0")]);
    assert_eq!(outcome.findings.len(), 50);
}
