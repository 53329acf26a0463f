//! Every type comes out as exactly the text that it is.

use super::*;

/// Creates a table of one column of a type, fills it with these SQL values, and reads it.
fn texts(type_name: &str, values: &[&str]) -> Vec<Option<String>> {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    let rows: Vec<String> = values.iter().enumerate().map(|(i, value)| format!("({i}, {value})")).collect();
    server.sql(
        &database,
        &format!(
            "SET sql_mode = ''; CREATE TABLE t (i INT PRIMARY KEY, v {type_name}); INSERT INTO t VALUES {}",
            rows.join(", ")
        ),
    );
    let connector = connector(server, json!({}));
    let rows = read(connector.as_ref(), &[&database], &listed(connector.as_ref(), &database, "t")).unwrap();
    server.sql("", &format!("DROP DATABASE {database}"));
    rows.into_iter().map(|mut row| row.remove(1)).collect()
}

#[test]
fn each_type_is_written_exactly() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("TINYINT", &[("-128", "-128"), ("127", "127")]),
        ("BIGINT UNSIGNED", &[("18446744073709551615", "18446744073709551615")]),
        ("INT(8) ZEROFILL", &[("42", "00000042")]),
        ("DECIMAL(30,10)", &[("12345678901234567890.0123456789", "12345678901234567890.0123456789")]),
        ("DECIMAL(5,2)", &[("-0.5", "-0.50")]),
        ("FLOAT", &[("0.1", "0.1"), ("16777216", "16777216"), ("1e30", "1e30"), ("-2.5", "-2.5")]),
        (
            "DOUBLE",
            &[
                ("0.1", "0.1"),
                ("1e0/3", "0.3333333333333333"),
                ("1.7976931348623157e308", "1.7976931348623157e308"),
            ],
        ),
        ("BIT(1)", &[("b'1'", "1"), ("b'0'", "0")]),
        (
            "BIT(64)",
            &[(
                "b'1111111111111111111111111111111111111111111111111111111111111111'",
                "18446744073709551615",
            )],
        ),
        ("BOOLEAN", &[("TRUE", "1")]),
        (
            "DATE",
            &[("'2024-02-29'", "2024-02-29"), ("'0000-00-00'", "0000-00-00"), ("'2024-00-00'", "2024-00-00")],
        ),
        ("TIME(6)", &[("'-838:59:59'", "-838:59:59.000000"), ("'00:00:00.5'", "00:00:00.500000")]),
        (
            "DATETIME",
            &[("'9999-12-31 23:59:59'", "9999-12-31 23:59:59"), ("'0000-00-00'", "0000-00-00 00:00:00")],
        ),
        ("DATETIME(3)", &[("'2001-02-03 04:05:06.789'", "2001-02-03 04:05:06.789")]),
        ("TIMESTAMP(2) NULL", &[("FROM_UNIXTIME(86400.25)", "1970-01-02 00:00:00.25")]),
        ("YEAR", &[("2024", "2024"), ("0", "0000")]),
        ("CHAR(5)", &[("'a b  '", "a b"), ("''", "")]),
        ("VARCHAR(9) CHARACTER SET latin1", &[("'ünï'", "ünï")]),
        ("VARCHAR(9) CHARACTER SET ucs2", &[("'日本'", "日本")]),
        ("TEXT CHARACTER SET utf8mb4", &[("'😀 a'", "😀 a")]),
        ("TINYTEXT CHARACTER SET koi8r", &[("'Привет'", "Привет")]),
        ("BINARY(3)", &[("'ab'", "ab\0")]),
        ("VARBINARY(9)", &[("'a\\0b'", "a\0b")]),
        ("LONGBLOB", &[("x'504b0304'", "PK\u{3}\u{4}")]),
        ("ENUM('x','y''z')", &[("'y''z'", "y'z"), ("1", "x")]),
        ("SET('a','b','c')", &[("'c,a'", "a,c"), ("''", "")]),
        ("JSON", &[("'{\"a\": [1, \"ü\"]}'", "{\"a\": [1, \"ü\"]}")]),
        ("POINT", &[("POINT(1.5, -2)", "POINT(1.5 -2)")]),
        ("GEOMETRY", &[("ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')", "POLYGON((0 0,1 0,1 1,0 0))")]),
        ("UUID", &[("'123e4567-e89b-12d3-a456-426655440000'", "123e4567-e89b-12d3-a456-426655440000")]),
        ("INET6", &[("'2001:db8::1'", "2001:db8::1"), ("'::ffff:192.0.2.1'", "::ffff:192.0.2.1")]),
        ("INET4", &[("'192.0.2.1'", "192.0.2.1")]),
    ];
    for (type_name, values) in cases {
        let mut given: Vec<&str> = values.iter().map(|(value, _)| *value).collect();
        let mut expected: Vec<Option<String>> =
            values.iter().map(|(_, text)| Some((*text).to_owned())).collect();
        given.push("NULL");
        expected.push(None);
        assert_eq!(texts(type_name, &given), expected, "{type_name}");
    }
}

#[test]
fn long_values_are_cut_on_the_server() {
    let (server, database) = (Server::shared(), Server::shared().create_database());
    server.sql(
        &database,
        "CREATE TABLE t (i INT PRIMARY KEY, t LONGTEXT, b LONGBLOB);
         INSERT INTO t VALUES (1, REPEAT('üa', 2000000), REPEAT(x'80', 3000000)), (2, 'short', 'b'),
             (3, REPEAT('x', 262144), REPEAT('y', 262145))",
    );
    let connector = connector(server, json!({}));
    let record = listed(connector.as_ref(), &database, "t");
    let mut seen = Vec::new();
    read_each(connector.as_ref(), &[&database], &record, |batch| {
        for row in 0..batch.rows() {
            let value = |column: usize| {
                let values = &batch.columns[column];
                (values.get(row).unwrap().len(), values.is_cut(row))
            };
            seen.push((value(1), value(2)));
        }
        if let Some(text) = batch.columns[1].get(0) {
            assert!(std::str::from_utf8(text).is_ok(), "it is cut between characters");
        }
    })
    .unwrap();
    let max = RowBatch::VALUE_MAX;
    assert_eq!(seen, [((max - 1, true), (max, true)), ((5, false), (1, false)), ((max, false), (max, true))]);
}
