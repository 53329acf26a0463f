//! A rule's regex, made ready as far as text needs it. Most rules that are asked have no match, or are asked
//! where one would have to start: an automaton of the regex without its groups answers that. What finds starts and groups
//! is several times as much to make, and is made when there is a match.

use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::meta::{self, Regex};
use regex_automata::nfa::thompson::{NFA, WhichCaptures};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{Hir, HirKind};

use super::split::Split;
use crate::rules::{Rule, compile_hir};

/// Bytes that one lazily built automaton of a rule may take per thread.
pub const REGEX_CACHE_BYTES: usize = 1024 * 1024;

/// The regex of one rule.
pub struct Compiled {
    /// Tells where a match ends that starts at a given place, and whether there is one at all.
    ends: Option<DFA>,
    /// Tells everything.
    whole: OnceLock<Regex>,
    pub value: Value,
}

/// Where the value is in a match of a regex.
pub enum Value {
    /// It is the match.
    Whole,
    /// As its bytes tell, or else in the first of these groups that is not empty.
    Split(Split, Range<usize>),
    Groups(Range<usize>),
}

/// One thread's working memory for it.
#[derive(Default)]
pub struct Cache {
    ends: Option<dfa::Cache>,
    whole: Option<meta::Cache>,
}

impl Cache {
    pub fn bytes(&self) -> usize {
        let ends = self.ends.as_ref().map_or(0, dfa::Cache::memory_usage);
        ends + self.whole.as_ref().map_or(0, meta::Cache::memory_usage)
    }
}

impl Compiled {
    pub fn new(rule: &Rule) -> Compiled {
        let hir = compile_hir(rule);
        let groups = rule.value_groups.clone();
        let one = groups.clone().next().filter(|_| groups.len() == 1);
        let split = || one.and_then(|group| Split::of(&hir, group));
        let value = match split() {
            _ if groups.is_empty() || one.is_some_and(|group| is_all(&hir, group)) => Value::Whole,
            Some(split) => Value::Split(split, groups),
            None => Value::Groups(groups),
        };
        Compiled { ends: ends(&hir), whole: OnceLock::new(), value }
    }

    /// Where the match ends that starts where `input` does.
    pub fn end_at(&self, rule: &Rule, cache: &mut Cache, input: Input<'_>) -> Option<usize> {
        let input = input.anchored(Anchored::Yes);
        if let Some(dfa) = &self.ends {
            let cache = cache.ends.get_or_insert_with(|| dfa.create_cache());
            // It may give up where it would take too much memory.
            if let Ok(found) = dfa.try_search_fwd(cache, &input) {
                return Some(found?.offset());
            }
        }
        let (regex, cache) = self.whole(rule, cache);
        Some(regex.search_half_with(cache, &input)?.offset())
    }

    /// The leftmost match.
    pub fn find(&self, rule: &Rule, cache: &mut Cache, input: &Input<'_>) -> Option<Range<usize>> {
        // As long as there was none, nobody asked where one starts.
        if let (Some(dfa), None) = (&self.ends, self.whole.get()) {
            let cache = cache.ends.get_or_insert_with(|| dfa.create_cache());
            if let Ok(None) = dfa.try_search_fwd(cache, &input.clone().earliest(true)) {
                return None;
            }
        }
        let (regex, cache) = self.whole(rule, cache);
        Some(regex.search_with(cache, input)?.range())
    }

    /// Where the groups are of the match that starts where `input` does; false if there is none.
    pub fn groups(
        &self,
        rule: &Rule,
        cache: &mut Cache,
        input: Input<'_>,
        slots: &mut [Option<NonMaxUsize>],
    ) -> bool {
        let (regex, cache) = self.whole(rule, cache);
        regex.search_slots_with(cache, &input.anchored(Anchored::Yes), slots).is_some()
    }

    fn whole<'c>(&'c self, rule: &Rule, cache: &'c mut Cache) -> (&'c Regex, &'c mut meta::Cache) {
        let regex = self.whole.get_or_init(|| whole(rule));
        (regex, cache.whole.get_or_insert_with(|| regex.create_cache()))
    }
}

fn ends(hir: &Hir) -> Option<DFA> {
    let config = NFA::config().utf8(false).which_captures(WhichCaptures::None).shrink(false);
    let nfa = NFA::compiler().configure(config).build_from_hir(hir).ok()?;
    let config = DFA::config()
        .unicode_word_boundary(true)
        .cache_capacity(REGEX_CACHE_BYTES)
        .minimum_cache_clear_count(Some(3))
        .minimum_bytes_per_state(Some(10));
    DFA::builder().configure(config).build_from_nfa(nfa).ok()
}

fn whole(rule: &Rule) -> Regex {
    // Where the trigger tells the start of a match, nothing is searched for: it would not pay to prepare that.
    let config = Regex::config()
        .utf8_empty(false)
        .auto_prefilter(rule.lead.min < rule.lead.max)
        .nfa_size_limit(None)
        .hybrid_cache_capacity(REGEX_CACHE_BYTES)
        .pool_capacity(1);
    Regex::builder()
        .configure(config)
        .build_from_hir(&compile_hir(rule))
        .expect("a loaded rule's regex parses, and its size is bounded when it is loaded")
}

/// Whether the group holds all bytes of every match.
fn is_all(hir: &Hir, group: usize) -> bool {
    match hir.kind() {
        HirKind::Capture(capture) => capture.index as usize == group || is_all(&capture.sub, group),
        HirKind::Concat(parts) => {
            let mut parts = parts.iter().filter(|part| !matches!(part.kind(), HirKind::Look(_)));
            parts.next().is_some_and(|part| is_all(part, group)) && parts.next().is_none()
        }
        _ => false,
    }
}
