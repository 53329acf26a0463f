//! Documents in both formats, and what is said of wrong ones.

use serde_json::json;

use super::*;
use crate::args::values::parse_setting;

#[test]
fn formats_are_told_by_extension_or_beginning() {
    for (text, extension, is) in [
        ("a = 1", None, json!({"a": 1})),
        ("[[datasource]]\na = 1", None, json!({"datasource": [{"a": 1}]})),
        ("[a]\nb = 1", Some("toml"), json!({"a": {"b": 1}})),
        (" {\"a\": 1}", None, json!({"a": 1})),
        ("[ {\"a\": 1} ]", None, json!([{"a": 1}])),
        ("[]", Some("json"), json!([])),
    ] {
        assert_eq!(parse(text, extension), Ok(is), "{text}");
    }
}

#[test]
fn what_does_not_parse_is_told_by_line_and_without_its_words() {
    let wrong = parse("a = 1\nb = hunter2", Some("toml")).unwrap_err();
    assert!(wrong.starts_with("2:5: this is not TOML: ") && !wrong.contains("hunter2"), "{wrong}");
    let wrong = parse("{\n\"a\": hunter2}", Some("json")).unwrap_err();
    assert!(wrong.starts_with("2:") && wrong.contains("this is not JSON"), "{wrong}");
    assert!(!wrong.contains("hunter2") && !wrong.contains("at line"), "{wrong}");
}

#[test]
fn a_document_is_one_definition_or_several() {
    let all = |value| entries(value, "datasource").unwrap();
    assert_eq!(all(json!({"name": "a"})), [json!({"name": "a"})]);
    assert_eq!(all(json!([{"name": "a"}, {}])).len(), 2);
    assert_eq!(all(json!({"datasource": [{}, {}], "template": [{}]})).len(), 2);
    assert_eq!(all(json!({"datasource": {"name": "a"}})), [json!({"name": "a"})]);
    assert_eq!(all(json!({"template": {}})).len(), 0);
    let wrong = entries(json!({"datasource": [], "datasorce": []}), "datasource").unwrap_err().to_string();
    assert_eq!(wrong, "unknown field `datasorce`; did you mean `datasource`?");
}

#[test]
fn fields_are_named_when_wrong() {
    let mut fields = Fields::new("datasource a", json!({"limit": "hunter2", "nmae": 1, "x": null})).unwrap();
    let wrong = fields.take::<u32>("limit", "a number").unwrap_err().to_string();
    assert_eq!(wrong, "datasource a: limit: expected a number");
    assert_eq!(fields.needed_text("name").unwrap_err().to_string(), "datasource a: name: is missing");
    assert_eq!(fields.value("x"), None);
    let wrong = fields.finish().unwrap_err().to_string();
    assert_eq!(wrong, "datasource a: unknown field `nmae`; did you mean `name`?");
}

#[test]
fn the_nearest_name_is_near() {
    let known = ["root", "only", "exclude", "max_file_size"];
    for (name, near) in [
        ("rot", Some("root")),
        ("rooot", Some("root")),
        ("excludes", Some("exclude")),
        ("max_filesize", Some("max_file_size")),
        ("password", None),
        ("", None),
    ] {
        assert_eq!(nearest(name, known), near, "{name}");
    }
    assert_eq!(distance("kitten", "sitting"), 3);
    assert!(unknown_field("password", known).ends_with("known: `root`, `only`, `exclude`, `max_file_size`"));
}

#[test]
fn settings_go_where_they_say() {
    let settings = ["a=1", "b.c=x", "b.d=[2]"].map(|text| parse_setting(text).unwrap());
    let mut value = json!({"a": 0});
    apply(&settings, &mut value).unwrap();
    assert_eq!(value, json!({"a": 1, "b": {"c": "x", "d": [2]}}));
    assert!(remove("b.c", &mut value) && !remove("b.x", &mut value) && !remove("a.x", &mut value));
    assert_eq!(value, json!({"a": 1, "b": {"d": [2]}}));
    assert!(apply(&[parse_setting("a.b=1").unwrap()], &mut value).is_err());
}

#[test]
fn changes_are_found_field_by_field() {
    let found = changes(
        &json!({"a": 1, "b": {"c": "x", "same": 1}, "gone": null}),
        &json!({"a": 2, "b": {"d": [1], "same": 1}}),
    );
    let fields: Vec<&str> = found.iter().map(|change| change.field.as_str()).collect();
    assert_eq!(fields, ["a", "b.c", "b.d"]);
    assert_eq!((&found[0].from, &found[0].to), (&Some(json!(1)), &Some(json!(2))));
    assert_eq!(found[1].to, None);
}
