//! Files that are SQLite databases.

use std::sync::Arc;

use domesday_content::{ReadAt, sqlite};
use domesday_model::RowBatch;

/// Batches read of one table, and tables of one file, at most.
const BATCHES_MAX: usize = 64;
const TABLES_MAX: usize = 64;

pub fn read(input: &[u8]) {
    let bytes: Arc<dyn ReadAt> = Arc::new(input.to_vec());
    let Ok(tables) = sqlite::open_tables(&bytes) else { return };
    for nested in tables.take(TABLES_MAX) {
        let Ok(mut table) = nested.table else { continue };
        let columns = table.shape.columns.len();
        let mut batch = RowBatch::new(columns);
        for _ in 0..BATCHES_MAX {
            batch.clear();
            if table.rows.fill(&mut batch).is_err() || batch.rows() == 0 {
                break;
            }
            assert!(batch.columns.len() == columns, "a batch has the columns of the shape");
        }
    }
}
