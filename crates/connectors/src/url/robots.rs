//! `robots.txt`: what a site lets those see who follow its links.
//!
//! The rules of the group that names us hold, else those of `*`; of the rules that fit a path the longest
//! holds, and of two as long the one that allows.

use std::time::Duration;

use reqwest::Url;

/// How a site's rules call us.
const PRODUCT: &str = "domesday";
/// Bytes of a site's rules that are read: what all who read them promise to read.
pub(super) const ROBOTS_BYTES_MAX: u64 = 500 << 10;
/// Rules that count.
const RULES_MAX: usize = 10_000;
/// Wildcards of one rule; more is not meant to be a rule.
const STARS_MAX: usize = 32;
/// The longest pause between two pages that is kept, whatever a site asks for.
const DELAY_MAX: Duration = Duration::from_secs(10);

/// The rules of one site.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Robots {
    rules: Vec<Rule>,
    pub delay: Option<Duration>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Rule {
    pattern: String,
    allows: bool,
}

/// Whose rules a line is one of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Group {
    is_ours: bool,
    is_for_all: bool,
    /// Whether a rule came already, so that the next name begins another group.
    has_rules: bool,
}

impl Robots {
    /// A site whose rules cannot be had for now: nothing is allowed.
    pub fn closed() -> Robots {
        Robots { rules: vec![Rule { pattern: "/".to_owned(), allows: false }], delay: None }
    }

    pub fn parse(text: &str) -> Robots {
        let (mut ours, mut for_all) = (None, Robots::default());
        let mut group = Group::default();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((field, value)) = line.split_once(':') else { continue };
            let (field, value) = (field.trim().to_ascii_lowercase(), value.trim());
            if field == "user-agent" {
                if group.has_rules {
                    group = Group::default();
                }
                group.is_ours |= is_us(value);
                group.is_for_all |= value == "*";
                if group.is_ours {
                    ours.get_or_insert_with(Robots::default);
                }
                continue;
            }
            group.has_rules |= matches!(field.as_str(), "allow" | "disallow" | "crawl-delay");
            if let Some(ours) = ours.as_mut().filter(|_| group.is_ours) {
                ours.add(&field, value);
            }
            if group.is_for_all {
                for_all.add(&field, value);
            }
        }
        ours.unwrap_or(for_all)
    }

    fn add(&mut self, field: &str, value: &str) {
        match field {
            "crawl-delay" => {
                let seconds = value.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
                self.delay =
                    seconds.map(|seconds| Duration::from_secs_f64(seconds.min(DELAY_MAX.as_secs_f64())));
            }
            "allow" | "disallow" if value.is_empty() || self.rules.len() >= RULES_MAX => {}
            "allow" | "disallow" => {
                self.rules.push(Rule { pattern: value.to_owned(), allows: field == "allow" });
            }
            _ => {}
        }
    }

    pub fn allows(&self, url: &Url) -> bool {
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let fitting = self.rules.iter().filter(|rule| fits(&rule.pattern, &path));
        let best = fitting.max_by_key(|rule| (rule.pattern.len(), rule.allows));
        best.is_none_or(|rule| rule.allows)
    }
}

/// A name of ours, with or without a version.
fn is_us(agent: &str) -> bool {
    let name = agent.split(['/', ' ']).next().unwrap_or_default();
    name.eq_ignore_ascii_case(PRODUCT)
}

/// Whether a path begins as a pattern says, in which `*` stands for anything and `$` at the end for the end.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, is_whole) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts: Vec<&str> = pattern.split('*').collect();
    if parts.len() > STARS_MAX {
        return false;
    }
    let Some(mut rest) = path.strip_prefix(parts.remove(0)) else { return false };
    let last = if is_whole { parts.pop() } else { None };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    match last {
        Some(last) => rest.ends_with(last),
        None => !is_whole || rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(robots: &str, path: &str, allows: bool) {
        let url = Url::parse(&format!("https://example.com{path}")).unwrap();
        assert_eq!(Robots::parse(robots).allows(&url), allows, "{path} by {robots}");
    }

    #[test]
    fn the_longest_rule_that_fits_holds() {
        let robots = "User-agent: *\nDisallow: /a\nAllow: /a/b # but not\nDisallow: /*.php$\n\
                      Disallow: /x*y\nDisallow:\n";
        for (path, allows) in [
            ("/", true),
            ("/a", false),
            ("/abc", false),
            ("/a/b/c", true),
            ("/p/q.php", false),
            ("/p/q.php?x=1", true),
            ("/p/q.php5", true),
            ("/xxxy/z", false),
            ("/xz", true),
        ] {
            check(robots, path, allows);
        }
        check("User-agent: *\nDisallow: /p\nAllow: /p\n", "/p", true);
        check("User-agent: *\nDisallow: /a?b=\n", "/a?b=1", false);
        check("nonsense\n:\nDisallow: /\n", "/", true);
        check("", "/", true);
    }

    #[test]
    fn the_group_that_names_us_holds() {
        let robots = "User-agent: other\nDisallow: /o\n\nUser-agent: Domesday/1.0\nUser-agent: third\n\
                      Disallow: /d\n\
                      Crawl-delay: 2.5\n\nUser-agent: *\nDisallow: /\n";
        check(robots, "/o", true);
        check(robots, "/d", false);
        assert_eq!(Robots::parse(robots).delay, Some(Duration::from_millis(2_500)));
        check("User-agent: *\nDisallow: /\nUser-agent: domesday\nDisallow:\n", "/x", true);
        assert_eq!(Robots::parse("User-agent: *\nCrawl-delay: 1e9").delay, Some(DELAY_MAX));
        assert_eq!(Robots::parse("User-agent: *\nCrawl-delay: NaN").delay, None);
        assert!(!Robots::closed().allows(&Url::parse("http://a/").unwrap()));
    }

    #[test]
    fn patterns_of_stars_end() {
        assert!(!fits(&format!("/{}", "*a".repeat(40)), &format!("/{}", "a".repeat(1_000))));
        assert!(fits("/*a*a*b", &format!("/{}b", "a".repeat(100_000))));
    }
}
