//! The grams and buckets of the literals of built-in rules, chosen by the build script (`build.rs`): a good choice takes
//! longer than to scan a tree. There is a plan for each index that is built of them.
//!
//! A plan decides how quickly literals are found, never whether: a literal that it does not know, or whose place it has
//! wrong, is given one when the index is built.

use std::collections::BTreeMap;

use super::choice::{Placed, choose, firsts, offsets, rarest};
use super::literals_of;
use super::simd::BUCKETS;
use crate::builtin;
use crate::rules::{Literal, Rule};

/// How often the build script chooses for each literal: with more rounds, nothing changes.
const ROUNDS: usize = 5;

/// A hash of the literal in four bytes, the offset of its gram, its bucket, and the first of its neighbouring grams,
/// from one before the literal on.
type Record = [u8; 7];

/// The gram and bucket of each of some literals that are searched together, if they were chosen.
pub fn placed(literals: &[&Literal]) -> Vec<Option<Placed>> {
    let placed = |literal: &Literal, &[.., offset, bucket, _]: &Record| {
        let placed = Placed { offset: offset.into(), bucket: bucket.into() };
        (offsets(literal).contains(&placed.offset) && placed.bucket < BUCKETS).then_some(placed)
    };
    of_each(literals, placed)
}

/// Where the first of the rarest neighbouring grams of each starts, if that was chosen.
pub fn first(literals: &[&Literal]) -> Vec<Option<i32>> {
    let first = |literal: &Literal, &[.., first]: &Record| {
        let first = i32::from(first) - 1;
        firsts(literal).contains(&first).then_some(first)
    };
    of_each(literals, first)
}

/// What the plan that knows the most of the literals says of each.
fn of_each<T>(literals: &[&Literal], say: impl Fn(&Literal, &Record) -> Option<T>) -> Vec<Option<T>> {
    let keys: Vec<_> = literals.iter().map(|literal| key(literal)).collect();
    let known = |plan: &'static [Record]| {
        let record = |key| plan.binary_search_by_key(key, |&[a, b, c, d, ..]| [a, b, c, d]).ok();
        keys.iter().map(|key| record(key).map(|at| &plan[at])).collect::<Vec<_>>()
    };
    let unknown = |records: &Vec<Option<_>>| records.iter().filter(|record| record.is_none()).count();
    let records = plans().map(known).min_by_key(unknown).unwrap_or_else(|| vec![None; keys.len()]);
    literals.iter().zip(records).map(|(literal, record)| say(literal, record?)).collect()
}

fn plans() -> impl Iterator<Item = &'static [Record]> {
    let mut rest = builtin::PLANS;
    std::iter::from_fn(move || {
        let (len, plans) = rest.split_first_chunk()?;
        let (records, after) =
            plans.split_at_checked(size_of::<Record>() * usize::from(u16::from_le_bytes(*len)))?;
        rest = after;
        Some(records.as_chunks().0)
    })
}

/// FNV-1a: the same everywhere.
fn hash<'b>(bytes: impl IntoIterator<Item = &'b u8>) -> u64 {
    let add = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// What a literal is found by in a plan.
fn key(literal: &Literal) -> [u8; 4] {
    let hash = hash(literal.bytes.iter().chain([&u8::from(literal.any_case)]));
    ((hash >> 32) as u32).to_be_bytes()
}

/// The packed plans for built-in rules: for each plan, how many records it has, and the records in order of their keys.
#[allow(dead_code, reason = "only the build script packs")]
pub fn pack_plans(rules: &[Rule]) -> Vec<u8> {
    literals_of_each_index(rules).iter().flat_map(|literals| pack_plan(literals)).collect()
}

/// Literals that are searched together: those of source code, all, and all near long words.
fn literals_of_each_index(rules: &[Rule]) -> [Vec<Literal>; 3] {
    let of = |wanted: fn(&Rule) -> bool| literals_of(rules, wanted);
    let ((in_code, _), (all, near)) = (of(|rule| !rule.low_in_code), of(|_| true));
    [in_code, all, near]
        .map(|literals| literals.into_literals().into_iter().map(|(literal, _)| literal).collect())
}

fn pack_plan(literals: &[Literal]) -> Vec<u8> {
    let literals: Vec<_> = literals.iter().collect();
    let small = |number: usize| u8::try_from(number).expect("literals are short");
    let mut records = BTreeMap::new();
    for (literal, placed) in literals.iter().zip(choose(&literals, vec![None; literals.len()], ROUNDS)) {
        let ([a, b, c, d], first) = (key(literal), rarest(literal) + 1);
        let record: Record = [a, b, c, d, small(placed.offset), small(placed.bucket), small(first as usize)];
        let other = records.insert(key(literal), record);
        assert_eq!(
            other,
            None,
            "no other literal has the key of {:?}",
            literal.bytes.escape_ascii().to_string()
        );
    }
    let len = u16::try_from(records.len()).expect("literals are few").to_le_bytes();
    len.into_iter().chain(records.into_values().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RuleSet;

    fn builtin_literals() -> [Vec<Literal>; 3] {
        literals_of_each_index(RuleSet::builtin().unwrap().rules())
    }

    /// Each literal has its place in the plan for it, and nothing else has.
    #[test]
    fn the_compiled_plans_are_those_of_the_rules() {
        let indexes = builtin_literals();
        assert_eq!(plans().count(), indexes.len());
        for (literals, plan) in indexes.iter().zip(plans()) {
            let literals: Vec<_> = literals.iter().collect();
            assert_eq!(plan.len(), literals.len());
            assert!(placed(&literals).iter().all(Option::is_some));
            let rarest: Vec<_> = literals.iter().map(|literal| Some(rarest(literal))).collect();
            assert_eq!(first(&literals), rarest);
        }
    }

    #[test]
    fn what_is_not_in_a_plan_has_no_place() {
        let [literals, ..] = builtin_literals();
        let other = Literal { bytes: b"no rule has this".to_vec(), any_case: true };
        let literals = [&literals[0], &other, &literals[1]];
        assert!(matches!(placed(&literals)[..], [Some(_), None, Some(_)]));
        assert!(matches!(first(&literals)[..], [Some(_), None, Some(_)]));
    }
}
