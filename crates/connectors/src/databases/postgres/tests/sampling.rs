//! Samples: spread over the table, the same for the same seed.

use super::*;

fn numbers(rows: &[Vec<Cell>]) -> Vec<u32> {
    rows.iter().map(|row| row[0].as_ref().unwrap().parse().unwrap()).collect()
}

fn assert_is_spread(numbers: &[u32], of: u32) {
    for tenth in 0..10 {
        let range = of / 10 * tenth..of / 10 * (tenth + 1);
        assert!(numbers.iter().any(|number| range.contains(number)), "nothing of {range:?}");
    }
}

#[tokio::test]
async fn a_sample_is_spread_over_the_table_and_the_same_for_the_same_seed() {
    const ROWS: u32 = 400_000;
    let fixture = Fixture::new(&format!(
        "CREATE TABLE small AS SELECT n FROM generate_series(0, 19999) AS n;
         CREATE TABLE large AS SELECT n, repeat('x', 300) AS pad FROM generate_series(0, {ROWS} - 1) AS n;
         CREATE VIEW seen AS SELECT n FROM small;
         ANALYZE"
    ));
    let connector = |seed: u64| fixture.connector(json!({ "sample_rows": 1_000, "seed": seed }));
    for (table, of) in [("small", 20_000), ("large", ROWS), ("seen", 20_000)] {
        let (rows, is_sample) = fixture.read(&connector(1), "public", table).await.unwrap();
        let first = numbers(&rows);
        assert!(is_sample);
        assert!((500..=2_000).contains(&first.len()), "{table}: {}", first.len());
        assert_is_spread(&first, of);
        let again = numbers(&fixture.read(&connector(1), "public", table).await.unwrap().0);
        assert_eq!(again, first, "{table}");
        let other = numbers(&fixture.read(&connector(2), "public", table).await.unwrap().0);
        assert_ne!(other, first, "{table}");
    }
}

#[tokio::test]
async fn a_table_that_was_never_analysed_is_sampled_by_its_size() {
    let fixture = Fixture::new(
        "CREATE TABLE fresh (n int, pad text) WITH (autovacuum_enabled = off);
         INSERT INTO fresh SELECT n, repeat('x', 50) FROM generate_series(0, 49999) AS n;
         CREATE TABLE emptied (n int) WITH (autovacuum_enabled = off);
         INSERT INTO emptied SELECT n FROM generate_series(1, 50000) AS n; ANALYZE emptied; DELETE FROM emptied WHERE n > 3",
    );
    let connector = fixture.connector(json!({ "sample_rows": 1_000 }));
    let (rows, is_sample) = fixture.read(&connector, "public", "fresh").await.unwrap();
    assert!(is_sample && (300..=2_000).contains(&rows.len()), "{}", rows.len());
    assert_is_spread(&numbers(&rows), 50_000);
    let (rows, _) = fixture.read(&connector, "public", "emptied").await.unwrap();
    assert_eq!(numbers(&rows), [1, 2, 3]);
}
