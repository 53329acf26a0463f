//! Where an example of each rule is: of the value with the smallest hash, so that it is the same in any order of rows.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::sketch::ColumnSketch;

/// The example of a rule in a batch. Which of its rows it is, is told by their texts, which are known when all columns
/// are scanned.
pub struct Candidate {
    pub column: usize,
    pub rule: Arc<str>,
    pub is_reported: bool,
    pub hash: u64,
    pub preview: String,
    /// All that have the value.
    pub rows: Vec<usize>,
}

/// The examples of one column in a batch, few.
pub struct Candidates<'b> {
    pub all: &'b mut Vec<Candidate>,
    /// Where those of the column begin.
    pub first: usize,
    pub column: usize,
}

impl Candidates<'_> {
    fn of_column(&mut self) -> impl Iterator<Item = &mut Candidate> {
        self.all[self.first..].iter_mut()
    }

    pub fn offer(
        &mut self,
        sketch: &ColumnSketch,
        rule: &Arc<str>,
        is_reported: bool,
        (hash, row): (u64, usize),
        preview: impl FnOnce() -> String,
    ) {
        let mut of_column = self.of_column();
        if let Some(known) = of_column.find(|known| known.is_reported == is_reported && known.rule == *rule) {
            match hash.cmp(&known.hash) {
                Ordering::Less => (known.hash, known.preview, known.rows) = (hash, preview(), vec![row]),
                Ordering::Equal => known.rows.push(row),
                Ordering::Greater => {}
            }
            return;
        }
        drop(of_column);
        if sketch.wants_example(rule, hash, is_reported) {
            let (rule, column) = (Arc::clone(rule), self.column);
            let preview = preview();
            self.all.push(Candidate { column, rule, is_reported, hash, preview, rows: vec![row] });
        }
    }

    /// A value of the sample again: it may be the example of a rule.
    pub fn repeat(&mut self, sketch: &ColumnSketch, hash: u64, row: usize) {
        self.of_column()
            .filter(|known| !known.is_reported && known.hash == hash)
            .for_each(|known| known.rows.push(row));
        for (rule, kept) in sketch.sampled_examples(hash) {
            if !self.of_column().any(|known| !known.is_reported && known.rule == *rule) {
                self.offer(sketch, rule, false, (hash, row), || kept.preview.clone());
            }
        }
    }
}
