//! What the scripted server makes of dates and of SQL.

use super::sql::{Lexeme, lex};
use super::values::{date_of, days_of};

#[test]
fn days_and_dates_are_the_same_both_ways() {
    assert_eq!(days_of(1, 1, 1), 0);
    assert_eq!(days_of(1900, 1, 1), 693_595);
    assert_eq!(days_of(2000, 3, 1) - days_of(2000, 2, 28), 2);
    assert_eq!(days_of(9999, 12, 31), 3_652_058);
    for days in (0..3_652_059).step_by(97) {
        let (year, month, day) = date_of(days);
        assert_eq!(days_of(year, month, day), days);
    }
}

#[test]
fn names_texts_and_comments_are_told_apart_as_the_language_does() {
    let lex = |sql: &str| lex(sql).unwrap();
    let name = |name: &str| Lexeme::Name(name.to_owned());
    assert_eq!(lex("[a]]b] -- [c]\n[d\n--]"), [name("a]b"), name("d\n--")]);
    assert_eq!(
        lex("N'it''s [x] --' @P1"),
        [Lexeme::Text("it's [x] --".into()), Lexeme::Variable("P1".into())]
    );
    for broken in ["[a", "'a", "[a]]", "SELECT *"] {
        assert!(super::sql::lex(broken).is_err(), "{broken}");
    }
}

#[test]
fn what_is_more_than_one_select_of_one_table_is_refused() {
    let parse = |sql: &str| super::sql::parse(super::sql::lex(sql).unwrap());
    assert!(
        parse("SELECT TOP (5) [a] FROM [s].[t] WHERE [a] > CONVERT(int, @P1) OR ([a] = 1 AND [b] <= 2)")
            .is_ok()
    );
    for wrong in ["SELECT [a] FROM [s].[t]; DROP TABLE [t]", "DELETE FROM [s].[t]", "SELECT [a] FROM [t]"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
