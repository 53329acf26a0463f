//! Triggers that many rules share, such as `password`: what stands on either side of one is read once, and tells which of
//! these rules may have a match there. Only those are asked, each with its own regex. That saves work and never
//! changes an answer.

use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{NFA, WhichCaptures};
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::Hir;

use super::confirm::window;
use super::sides::{STRAY_MAX, Sides, shortest};
use crate::prefilter::Hit;
use crate::rules::{Rule, Trigger};

/// Rules that have a trigger in common, at least, to be asked together.
const SHARED_MIN: usize = 8;
/// Bytes before and behind a trigger that are read, at most. What they do not rule out may be.
const LOOK: usize = 128;

/// Places of a text that were read last, of which it is known what was told: triggers at neighbouring places take turns.
const KNOWN: usize = 4;
/// Bytes that the automaton of either side may take per thread.
const CACHE_BYTES: usize = 1024 * 1024;

/// Places of triggers in the regexes of all rules that are asked together, as bits.
type Bits = u128;

/// Which rules are asked together.
pub struct Beside {
    /// By rule, whether it is one of them.
    is_one: Vec<bool>,
    together: OnceLock<Together>,
}

struct Together {
    /// By rule: its places, or none if it cannot be told where its triggers stand; and whether its matches may be without
    /// a trigger there.
    rules: Vec<(Bits, bool)>,
    /// Such matches have one of these words, which begin with one letter. In order, and none begins with another.
    strays: Vec<Vec<u8>>,
    /// By byte, whether one may have it second or third, in any case: a bit each.
    behind: [u8; 256],
    /// How far before a trigger such a match may begin.
    lead_max: usize,
    from: DFA,
    /// Of those places that not everything may stand before, each with its bit.
    before: DFA,
    choosy: Vec<Bits>,
    /// The others.
    free: Bits,
}

/// Working memory.
#[derive(Default)]
pub struct BesideScratch {
    caches: Option<(Cache, Cache)>,
    /// Hits that are left.
    kept: Vec<Hit>,
    strays: Strays,
}

/// Where strays are in a part of a text.
#[derive(Default)]
struct Strays {
    searched: Range<usize>,
    /// In order.
    found: Vec<usize>,
}

impl Beside {
    pub fn new(rules: &[Rule]) -> Beside {
        let mut triggers: Vec<(&[u8], usize)> = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            if let Trigger::Literals(literals) = &rule.trigger {
                let any_case = literals.iter().filter(|literal| literal.any_case);
                triggers.extend(any_case.map(|literal| (&literal.bytes[..], index)));
            }
        }
        triggers.sort_unstable();
        let (mut is_one, mut rest) = (vec![false; rules.len()], &triggers[..]);
        while let [(first, _), ..] = rest {
            let shared = rest.iter().take_while(|(bytes, _)| bytes.starts_with(first)).count();
            let mut of_rules: Vec<usize> = rest[..shared].iter().map(|(_, rule)| *rule).collect();
            of_rules.sort_unstable();
            of_rules.dedup();
            let is_enough = of_rules.len() >= SHARED_MIN;
            of_rules.into_iter().filter(|_| is_enough).for_each(|rule| is_one[rule] = true);
            rest = &rest[if is_enough { shared } else { 1 }..];
        }
        Beside { is_one, together: OnceLock::new() }
    }

    /// Those hits of a segment where their rules may have a match.
    pub fn may_match<'h>(
        &self,
        rules: &[Rule],
        bytes: &[u8],
        hits: &'h [Hit],
        scratch: &'h mut BesideScratch,
    ) -> &'h [Hit] {
        let is_one = |hit: &Hit| self.is_one.get(hit.rule as usize).is_some_and(|is_one| *is_one);
        if !hits.iter().any(is_one) {
            return hits;
        }
        let together = self.together.get_or_init(|| Together::new(rules, &self.is_one));
        let BesideScratch { caches, kept, strays } = scratch;
        let caches =
            caches.get_or_insert_with(|| (together.before.create_cache(), together.from.create_cache()));
        kept.clear();
        *strays = Strays::default();
        let mut known = [(usize::MAX, 0); KNOWN];
        kept.extend(hits.iter().filter(|hit| {
            if !is_one(hit) {
                return true;
            }
            let (places, may_stray) = together.rules[hit.rule as usize];
            let known = &mut known[hit.at % KNOWN];
            if known.0 != hit.at {
                *known = (hit.at, together.at(bytes, hit.at, caches));
            }
            places == 0
                || known.1 & places != 0
                || may_stray
                    && strays.are_in(together, bytes, hit.at, window(&rules[hit.rule as usize], bytes, hit))
        }));
        kept
    }
}

impl Together {
    fn new(all: &[Rule], is_one: &[bool]) -> Together {
        let (mut rules, mut strays) = (vec![(0, false); all.len()], Vec::<Vec<u8>>::new());
        let (mut before, mut from, mut choosy, mut free) = (Vec::new(), Vec::new(), Vec::new(), 0);
        let mut lead_max = 0;
        for (index, rule) in all.iter().enumerate().filter(|(index, _)| is_one[*index]) {
            let Some(sides) =
                Sides::of(rule).filter(|sides| from.len() + sides.ways.len() <= Bits::BITS as usize)
            else {
                continue;
            };
            let mut words = strays.iter().chain(&sides.strays);
            if words.next().is_some_and(|first| words.any(|word| word[0] != first[0])) {
                continue;
            }
            let may_stray = !sides.strays.is_empty();
            if may_stray {
                lead_max = lead_max.max(rule.lead.max);
            }
            strays.extend(sides.strays);
            let mut bits = 0;
            for way in sides.ways {
                let bit = 1 << from.len();
                bits |= bit;
                from.push(way.1);
                let properties = way.0.properties();
                if properties.minimum_len() == Some(0) && properties.look_set().is_empty() {
                    free |= bit;
                } else {
                    choosy.push(bit);
                    before.push(way.0);
                }
            }
            rules[index] = (bits, may_stray);
        }
        let strays = shortest(strays);
        Together {
            rules,
            behind: second_and_third(&strays),
            strays,
            lead_max,
            before: compile(&before, true),
            from: compile(&from, false),
            choosy,
            free,
        }
    }

    /// The places that a trigger at `at` may stand in.
    fn at(&self, bytes: &[u8], at: usize, (before, from): &mut (Cache, Cache)) -> Bits {
        let input = Input::new(bytes).anchored(Anchored::Yes);
        let start = self.from.start_state_forward(from, &input.clone().range(at..));
        let all = |start| follow(&self.from, from, start, bytes[at..].iter(), |place| 1 << place);
        let may = start.map_or(Bits::MAX, all);
        if may & !self.free == 0 {
            return may;
        }
        let start = self.before.start_state_reverse(before, &input.range(..at));
        let all =
            |start| follow(&self.before, before, start, bytes[..at].iter().rev(), |place| self.choosy[place]);
        may & (self.free | start.map_or(Bits::MAX, all))
    }

    /// Whether a stray is at `at`.
    fn is_stray(&self, bytes: &[u8], at: usize) -> bool {
        let mut here = [0; STRAY_MAX];
        let text = &bytes[at..bytes.len().min(at + STRAY_MAX)];
        let here = &mut here[..text.len()];
        here.copy_from_slice(text);
        here.make_ascii_lowercase();
        // Words between the one that is here and all of it would begin with it.
        let next = self.strays.partition_point(|word| word[..] <= *here);
        next.checked_sub(1).is_some_and(|before| here.starts_with(&self.strays[before]))
    }
}

impl Strays {
    /// Whether one is in the window of a trigger at `at`. Where windows overlap the text is read once.
    fn are_in(&mut self, together: &Together, bytes: &[u8], at: usize, window: Range<usize>) -> bool {
        if !self.searched.contains(&window.start) {
            // Other rules with this trigger may have wider windows.
            let start = window.start.min(at.saturating_sub(together.lead_max));
            *self = Strays { searched: start..start, found: std::mem::take(&mut self.found) };
            self.found.clear();
        }
        if let Some(stray) = together.strays.first().filter(|_| self.searched.end < window.end) {
            let (small, large) = (stray[0], stray[0].to_ascii_uppercase());
            let rest = self.searched.end..window.end;
            let places = memchr::memchr2_iter(small, large, &bytes[rest.clone()]).map(|at| rest.start + at);
            let may_be = |at: &usize| {
                bytes.get(at + 1..at + 3).is_some_and(|next| {
                    together.behind[usize::from(next[0])] & SECOND != 0
                        && together.behind[usize::from(next[1])] & THIRD != 0
                })
            };
            let places = places.filter(may_be);
            self.found.extend(places.filter(|&at| together.is_stray(bytes, at)));
            self.searched.end = window.end;
        }
        let next = self.found.partition_point(|at| *at < window.start);
        self.found.get(next).is_some_and(|at| *at < window.end)
    }
}

const SECOND: u8 = 1;
const THIRD: u8 = 2;

/// By byte, whether one of some words has it second or third, in any case. They are of three bytes at least.
fn second_and_third(words: &[Vec<u8>]) -> [u8; 256] {
    let mut behind = [0; 256];
    for word in words {
        for (byte, bit) in [(word[1], SECOND), (word[2], THIRD)] {
            behind[usize::from(byte)] |= bit;
            behind[usize::from(byte.to_ascii_uppercase())] |= bit;
        }
    }
    behind
}

/// The places whose side is matched by the first of these bytes.
fn follow<'b>(
    dfa: &DFA,
    cache: &mut Cache,
    mut state: LazyStateID,
    mut bytes: impl Iterator<Item = &'b u8>,
    bit: impl Fn(usize) -> Bits,
) -> Bits {
    let matched = |cache: &Cache, state: LazyStateID| {
        let matches = if state.is_match() { dfa.match_len(cache, state) } else { 0 };
        (0..matches).fold(0, |all, at| all | bit(dfa.match_pattern(cache, state, at).as_usize()))
    };
    let mut all = 0;
    for byte in bytes.by_ref().take(LOOK) {
        match dfa.next_state(cache, state, *byte) {
            Ok(next) => state = next,
            Err(_) => return Bits::MAX,
        }
        if state.is_tagged() {
            all |= matched(cache, state);
            if state.is_dead() {
                return all;
            }
        }
    }
    if bytes.next().is_some() {
        return Bits::MAX;
    }
    dfa.next_eoi_state(cache, state).map_or(Bits::MAX, |state| all | matched(cache, state))
}

fn compile(sides: &[Hir], reverse: bool) -> DFA {
    let config = NFA::config().utf8(false).reverse(reverse).which_captures(WhichCaptures::None).shrink(false);
    let nfa = NFA::compiler().configure(config).build_many_from_hir(sides).expect("sides are small");
    let config =
        DFA::config().match_kind(MatchKind::All).cache_capacity(CACHE_BYTES).skip_cache_capacity_check(true);
    DFA::builder().configure(config).build_from_nfa(nfa).expect("no side has a Unicode word boundary")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock};

    use proptest::prelude::*;
    use regex_automata::meta::Regex;

    use super::*;
    use crate::prefilter::Buffers;
    use crate::rules::compile_hir;
    use crate::scoring::PathKind;
    use crate::{RuleSet, Scanner};

    static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
        Scanner::new(Arc::new(RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"))))
    });

    fn rules() -> &'static [Rule] {
        SCANNER.rules().rules()
    }

    /// The rules that are asked together, and their regexes.
    static TOGETHER: LazyLock<(Beside, Vec<(u32, Regex)>)> = LazyLock::new(|| {
        let beside = Beside::new(rules());
        let together = Together::new(rules(), &beside.is_one);
        let told = (0..).zip(&together.rules).filter(|(_, (bits, _))| *bits != 0);
        let regex = |rule: u32| {
            let hir = compile_hir(&rules()[rule as usize]);
            Regex::builder().build_from_hir(&hir).unwrap()
        };
        let regexes = told.map(|(rule, _)| (rule, regex(rule))).collect();
        (beside, regexes)
    });

    /// All hits, and those that are left.
    fn hits_of(text: &str) -> (Vec<Hit>, Vec<Hit>) {
        let mut hits = Vec::new();
        let prefilter = SCANNER.prefilter(PathKind::of(b""));
        prefilter.find(text.as_bytes(), 0..text.len(), &mut Buffers::default(), &mut hits);
        let mut scratch = BesideScratch::default();
        let kept = TOGETHER.0.may_match(rules(), text.as_bytes(), &hits, &mut scratch).to_vec();
        (hits, kept)
    }

    #[test]
    fn rules_that_cannot_match_are_not_asked() {
        assert!(TOGETHER.1.len() > 30);
        for (text, left) in [
            ("the password is kept in a vault", 1),
            ("char *passwd_file = password_of(user);", 0),
            ("audit: user password=Kd83nf02q was accepted", 2),
        ] {
            let (hits, kept) = hits_of(text);
            let told = |hits: &[Hit]| {
                hits.iter().filter(|hit| TOGETHER.1.iter().any(|(rule, _)| *rule == hit.rule)).count()
            };
            assert!(told(&hits) >= 8 && told(&kept) <= left, "{text}: {} of {}", told(&kept), told(&hits));
        }
    }

    const WORDS: &[&str] = &[
        "password",
        "passwd",
        "pass",
        "pwd",
        "PASSWORD",
        "DB_",
        "_",
        "secret",
        "token",
        "api_key",
        "passphrase",
        "user",
        "login",
        "name",
        "key",
        "value",
        "host",
        "server",
        "export ",
        "#define ",
        "-D",
        "--",
        "?",
        "&",
        "</",
        ">",
        "[a]",
        "=",
        "==",
        ":",
        " = ",
        ": ",
        ":=",
        "\"",
        "'",
        "(",
        ")",
        ",",
        ";",
        "\n",
        "\n",
        "\r",
        "\t",
        " ",
        " ",
        "]",
        "//",
        "x9K2mQ7xT4",
        "hT5-Vole-3",
        "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "as string",
        " is ",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn every_match_has_a_trigger_that_is_left(words in proptest::collection::vec(proptest::sample::select(WORDS), 1..40)) {
            let text = words.concat();
            let (hits, kept) = hits_of(&text);
            for (index, regex) in &TOGETHER.1 {
                let rule = &rules()[*index as usize];
                for start in 0..text.len() {
                    let room = start..text.len().min(start + rule.max_len);
                    let input = Input::new(&text).range(room).anchored(Anchored::Yes);
                    let Some(found) = regex.search(&input) else { continue };
                    let leads_to = |hit: &&Hit| {
                        hit.rule == *index
                            && hit.at >= start
                            && (rule.lead.min..=rule.lead.max).contains(&(hit.at - start))
                            && hit.at + hit.len as usize <= found.end()
                    };
                    if hits.iter().any(|hit| leads_to(&hit)) {
                        prop_assert!(kept.iter().any(|hit| leads_to(&hit)), "{} {:?} in {text:?}", rule.id, found.span());
                    }
                }
            }
        }
    }
}
