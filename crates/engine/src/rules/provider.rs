//! The regex of a provider's key that has no form of its own: the provider's name, close behind it the name of
//! a secret, then the value, with nothing but signs of assignment between. One way of writing it for all such
//! rules, so that each syntax is supported for every provider or for none.

use std::sync::LazyLock;

use super::pattern::{self, Pattern};
use crate::MAX_MATCH_LEN;

/// The index of the only group.
const VALUE_GROUP: usize = 1;

/// Bytes between the provider's name and the name of the secret, line ends included: settings are grouped in
/// blocks, and headers follow the address they are sent to.
const GAP: &str = r"(?s:.){0,40}?";

/// What such values are called, and how several of them are told apart.
const NAME: &str = r"(?:key|token|secret|passw(?:or)?d|pass|pwd|auth|authorization|credentials?|bearer|api|pat)(?:s|_?(?:[0-9]|dev|live|prod|production|test))?";

/// From the name to the value: `=`, `: "`, `', '`, `": "`, `("`, `>`, ` || '`, also with a type or the name
/// of an attribute in between.
const ASSIGNED: &str = r#"[\s"'`\])}\\>=:,(|?\[{@&]{1,12}(?:(?:str|string|value|default)[\s"'`=:>(]{1,8})?"#;

/// Nothing of the value follows.
const END: &str = "(?:[^A-Za-z0-9_-]|(?m:$))";

/// `provider` in any case, `value` as it is written.
pub fn regex(provider: &str, value: &str) -> String {
    format!("{}{GAP}{NAME}{ASSIGNED}(?P<value>(?-i:{value})){END}", head(provider))
}

/// What every match begins with.
fn head(provider: &str) -> String {
    format!("(?i)(?:{provider})")
}

/// What [`regex`] allows, told from its two parts, as the rest is the same for hundreds of rules. Its syntax tree is
/// that of the name alone, which holds the triggers.
pub fn pattern(provider: &str, value: &str) -> Result<Pattern, String> {
    static REST: LazyLock<Pattern> = LazyLock::new(|| {
        let rest = pattern::parse(&format!("(?i){GAP}{NAME}{ASSIGNED}{END}"));
        rest.expect("the fixed part of a provider's regex is bounded")
    });
    let name = pattern::parse(&head(provider))?;
    let value = pattern::parse(value)?;
    let groups =
        name.hir.properties().explicit_captures_len() + value.hir.properties().explicit_captures_len();
    if groups > 0 {
        return Err("`provider` and `value` have groups that capture: write `(?:`".to_owned());
    }
    let max_len = name.max_len + REST.max_len + value.max_len;
    if max_len > MAX_MATCH_LEN {
        return Err(format!(
            "rule can match {max_len} bytes: shorten `value` to match at most {MAX_MATCH_LEN} in all"
        ));
    }
    // With its one group, as the whole has.
    let cost = 2 * (name.cost + REST.cost + value.cost);
    Ok(Pattern { cost, max_len, value_group: Some(VALUE_GROUP), run: value.run, hir: name.hir })
}

#[cfg(test)]
mod tests {
    use regex_automata::meta::Regex;

    use crate::rules::pattern;

    fn check(text: &str, expected: Option<&str>) {
        let regex = Regex::builder()
            .build_from_hir(&pattern::read(&super::regex("acme", "[0-9a-f]{8}")).unwrap())
            .unwrap();
        let mut captures = regex.create_captures();
        regex.captures(text, &mut captures);
        assert_eq!(captures.get_group_by_name("value").map(|span| &text[span.range()]), expected, "{text}");
    }

    #[test]
    fn every_syntax_of_assignment_is_known() {
        for text in [
            "ACME_API_KEY=5f0c77ab",
            "export ACME_TOKEN='5f0c77ab'",
            "acme:\n  api_key: 5f0c77ab\n",
            "\"acme\": {\n  \"apiKey\": \"5f0c77ab\"",
            r#"{\"acme_key\": \"5f0c77ab\"}"#,
            "acme.setApiKey(\"5f0c77ab\");",
            "os.environ['ACME_KEY'] = '5f0c77ab'",
            "getenv('ACME_KEY', '5f0c77ab')",
            "process.env.ACME_KEY || '5f0c77ab'",
            "const ACME_KEY: &str = \"5f0c77ab\";",
            "<add key=\"AcmeKey\" value=\"5f0c77ab\"/>",
            "<acme-token>5f0c77ab</acme-token>",
            "#define ACME_KEY \"5f0c77ab\"",
            "curl https://api.acme.io/v1 -H \"Authorization: Bearer 5f0c77ab\"",
            "https://api.acme.io/v1?api_key=5f0c77ab&page=2",
            "variable \"acme_token\" { default = \"5f0c77ab\" }",
        ] {
            check(text, Some("5f0c77ab"));
        }
    }

    #[test]
    fn the_parts_tell_what_the_whole_allows() {
        let (name, value) = (r"\bacme(?:_?mail)?", "[0-9a-f]{8}|[A-Z]{4,20}");
        let whole = pattern::parse(&super::regex(name, value)).unwrap();
        let parts = super::pattern(name, value).unwrap();
        assert_eq!((parts.max_len, parts.value_group), (whole.max_len, whole.value_group));
        for (name, value) in
            [("(acme)", "[0-9]{8}"), ("acme", "([0-9]{8})"), ("acme", "[0-9]+"), ("acme", "")]
        {
            assert!(super::pattern(name, value).is_err(), "{name} {value}");
        }
    }

    #[test]
    fn names_of_other_things_are_not() {
        for text in [
            "ACME_KEY_ID=5f0c77ab",
            "acme-2.1.tgz#5f0c77ab",
            "ACME_KEY=5f0c77ab9",
            "acme_token = hash(5f0c77ab)",
            "acme: 5f0c77ab",
            "ACME_KEY=5F0C77AB",
        ] {
            check(text, None);
        }
    }
}
