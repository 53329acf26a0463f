//! Files that are damaged, or made to do damage: told, in bounded time and memory, and never the end of the process.

use super::*;

/// Reads all tables as far as they go; how many rows that were.
fn drain(bytes: Vec<u8>) -> Result<u64, ObjectError> {
    let bytes: Arc<dyn ReadAt> = Arc::new(bytes);
    let mut rows = 0;
    for table in open_tables(&bytes)? {
        let Ok(mut table) = table.table else { continue };
        loop {
            let mut batch = RowBatch::new(table.shape.columns.len());
            if table.rows.fill(&mut batch).is_err() || batch.rows() == 0 {
                break;
            }
            assert!(batch.columns.iter().all(|column| column.len() == batch.rows()), "rows are whole");
            rows += batch.rows() as u64;
        }
    }
    Ok(rows)
}

fn sound() -> Vec<u8> {
    let file = File::new(
        "PRAGMA page_size = 512;
         CREATE TABLE t (a TEXT, b BLOB); CREATE INDEX i ON t (a);
         CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
         WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 500)
         INSERT INTO t SELECT 'value ' || x, zeroblob(x) FROM c;
         INSERT INTO w SELECT a, b FROM t;",
    );
    std::fs::read(&file.path).unwrap()
}

/// Small steps of a generator of numbers that look random.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn damaged_files_end_with_what_can_be_read() {
    let sound = sound();
    assert_eq!(drain(sound.clone()).unwrap(), 1_000);
    let (mut state, mut whole, mut parts, mut refused) = (7, 0, 0, 0);
    for round in 0..400 {
        let mut bytes = sound.clone();
        match round % 4 {
            0 => bytes.truncate(next(&mut state) as usize % sound.len()),
            1 => {
                // A page in another's place, so that pages point at one another.
                let pages = (sound.len() / 512) as u64;
                let (from, to) = (next(&mut state) % pages, next(&mut state) % pages);
                bytes.copy_within(from as usize * 512..from as usize * 512 + 512, to as usize * 512);
            }
            _ => {
                for _ in 0..1 + round % 40 {
                    let at = next(&mut state) as usize % bytes.len();
                    bytes[at] = next(&mut state) as u8;
                }
            }
        }
        match drain(bytes) {
            Ok(1_000) => whole += 1,
            Ok(_) => parts += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(whole > 10 && parts > 10 && refused > 10, "{whole} {parts} {refused}");
}

#[test]
fn pages_that_point_at_one_another_do_not_go_on_for_ever() {
    // A root page of a thousand ways to the same leaf, twenty pages deep: more rows than anybody could read.
    const PAGE: usize = 512;
    let file = File::new(
        "PRAGMA page_size = 512; CREATE TABLE t (a);
         WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 5000)
         INSERT INTO t SELECT x FROM c;",
    );
    let mut bytes = std::fs::read(&file.path).unwrap();
    let is_interior = |page: &[u8]| page[0] == 5;
    let leaf = (1..bytes.len() / PAGE).find(|at| bytes[at * PAGE] == 13).unwrap() as u32 + 1;
    for at in 1..bytes.len() / PAGE {
        let page = &mut bytes[at * PAGE..(at + 1) * PAGE];
        if is_interior(page) {
            let cells = u16::from_be_bytes([page[3], page[4]]) as usize;
            page[8..12].copy_from_slice(&leaf.to_be_bytes());
            for cell in 0..cells {
                let place = 12 + cell * 2;
                let offset = u16::from_be_bytes([page[place], page[place + 1]]) as usize;
                page[offset..offset + 4].copy_from_slice(&leaf.to_be_bytes());
            }
        }
    }
    let most = bytes.len() as u64 / 4 + RowBatch::ROWS_MAX as u64;
    assert!(drain(bytes).unwrap() <= most);
}
