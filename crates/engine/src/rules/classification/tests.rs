//! The classification compiled in: that it covers everything, names nothing that is not there, and says what is meant.

use super::super::{RuleSet, RuleSource};
use super::*;

static BUILTIN: LazyLock<RuleSet> =
    LazyLock::new(|| RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}")));

fn own_rule(fields: &str) -> Result<RuleSet, String> {
    let text = format!(
        "[[rule]]\nid = 'acme-number'\ndescription = 'd'\ncategory = 'personal'\nregex = 'acme_[0-9]{{9}}'\n\
         positive = ['a', 'b']\nnegative = ['c', 'd']\n{fields}\n"
    );
    RuleSet::load(&[RuleSource { name: "my.toml".into(), text }]).map_err(|errors| errors.to_string())
}

fn shown(class: &Class) -> String {
    let names: Vec<_> = class.regulations.iter().map(Regulation::as_str).collect();
    format!("{} {}", class.sensitivity, names.join(",")).trim_end().to_owned()
}

#[test]
fn every_built_in_rule_and_every_category_is_classified() {
    for rule in BUILTIN.rules() {
        let subject =
            Subject { id: &rule.id, category: rule.category, tags: &rule.tags, regions: &rule.regions };
        assert!(subject.sensitivity().is_some(), "no entry says how sensitive `{}` is", rule.id);
        if rule.category == Category::Personal && !rule.tags.iter().any(|tag| tag == "company") {
            let without_law = ["us-employer-identification-number", "pk-cnic", "ve-rif"];
            let expected = without_law.contains(&&*rule.id);
            assert_eq!(
                rule.class().regulations.is_empty(),
                expected,
                "which privacy law is for `{}`?",
                rule.id
            );
        }
    }
    for category in Category::ALL {
        let subject = Subject { id: "", category: *category, tags: &[], regions: &[] };
        assert!(subject.sensitivity().is_some(), "{category}");
    }
}

#[test]
fn entries_name_only_what_is_there() {
    let mut used = Vec::new();
    for entry in &TABLE.class {
        for pattern in entry.rules.iter().chain(&entry.except_rules) {
            assert!(
                BUILTIN.rules().iter().any(|rule| names(pattern, &rule.id)),
                "no rule is named `{pattern}`"
            );
        }
        for tag in entry.tags.iter().chain(&entry.except_tags) {
            assert!(
                BUILTIN.rules().iter().any(|rule| rule.tags.contains(tag)),
                "no rule has the tag `{tag}`"
            );
        }
        assert!(entry.sensitivity.is_some() || !entry.regulations.is_empty(), "an entry says nothing");
        used.extend(entry.regulations.iter());
    }
    used.sort();
    used.dedup();
    assert_eq!(used, TABLE.regulations.keys().collect::<Vec<_>>(), "the titles are of what entries name");
}

#[test]
fn well_known_rules_have_the_class_one_expects() {
    let expected = [
        ("private-key-pem", "critical ISO-27001"),
        ("bitcoin-private-key", "critical ISO-27001"),
        ("aws-secret-access-key", "critical ISO-27001"),
        ("aws-access-key-id", "high ISO-27001"),
        ("azure-storage-account-key", "critical ISO-27001"),
        ("gcp-api-key", "high ISO-27001"),
        ("database-url-password", "critical ISO-27001"),
        ("database-url-default-password", "low ISO-27001"),
        ("airtable-token", "high ISO-27001"),
        ("stripe-key", "critical ISO-27001,PCI-DSS"),
        ("github-token", "high ISO-27001"),
        ("slack-token", "high ISO-27001"),
        ("vault-token", "critical ISO-27001"),
        ("kubernetes-client-key", "critical ISO-27001"),
        ("generic-password-quoted", "high ISO-27001"),
        ("password-hash-crypt", "moderate ISO-27001"),
        ("windows-hash-dump", "critical ISO-27001"),
        ("json-web-token", "moderate ISO-27001"),
        ("email-address", "moderate CCPA,GDPR"),
        ("phone-us", "moderate CCPA,PIPEDA"),
        ("date-of-birth", "moderate CCPA,GDPR"),
        ("us-social-security-number", "critical CCPA"),
        ("us-social-security-number-unseparated", "critical CCPA"),
        ("us-employer-identification-number", "low"),
        ("fr-nir", "high GDPR"),
        ("no-fodselsnummer", "high GDPR"),
        ("fr-siret", "low"),
        ("uk-national-insurance-number", "high UK-GDPR"),
        ("ch-ahv-number", "high FADP"),
        ("br-cpf", "high LGPD"),
        ("in-aadhaar", "critical DPDP"),
        ("cn-resident-id", "critical PIPL"),
        ("jp-my-number", "high APPI"),
        ("za-identity-number", "high POPIA"),
        ("religion", "critical CCPA,GDPR,GDPR-9"),
        ("student-number", "moderate CCPA,FERPA,GDPR"),
        ("payment-card", "high CCPA,GDPR,PCI-DSS"),
        ("card-verification-code", "critical CCPA,GDPR,PCI-DSS"),
        ("iban", "moderate CCPA,GDPR"),
        ("us-bank-account", "high CCPA,GLBA"),
        ("bitcoin-address", "low"),
        ("medical-record-number", "high CCPA,GDPR,GDPR-9,HIPAA"),
        ("us-medicare-beneficiary", "high CCPA,HIPAA"),
        ("us-provider-npi", "low"),
        ("uk-nhs-number", "high UK-GDPR"),
        ("ipv4-address", "low CCPA,GDPR"),
        ("marking-classification", "critical EO-13526"),
        ("marking-cui", "high CUI"),
        ("marking-export-control", "high EAR,ITAR"),
        ("marking-tlp", "moderate"),
    ];
    let got = |id: &str| BUILTIN.get(id).map_or("no such rule".to_owned(), |rule| shown(&rule.class()));
    let wrong: Vec<_> =
        expected.iter().filter(|(id, class)| got(id) != *class).map(|(id, _)| (id, got(id))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_a_rule_says_of_itself_wins() {
    let class = |fields: &str| shown(&own_rule(fields).unwrap().get("acme-number").unwrap().class());
    assert_eq!(class(""), "moderate CCPA,GDPR");
    assert_eq!(class("regions = ['BR']"), "moderate LGPD");
    assert_eq!(class("sensitivity = 'critical'"), "critical CCPA,GDPR");
    assert_eq!(class("regulations = ['gdpr', 'ACME-7', 'GDPR']"), "moderate ACME-7,GDPR");
    assert_eq!(class("regulations = []"), "moderate");
    let refused = |fields: &str| own_rule(fields).unwrap_err();
    assert_eq!(
        refused("sensitivity = 'top'"),
        "my.toml:8: rule `acme-number`: `top` is not a sensitivity: use one of low, moderate, high, critical"
    );
    let bad = refused("regulations = ['GDPR', 'PCI DSS']");
    assert!(bad.starts_with("my.toml:8: rule `acme-number`: `PCI DSS` cannot name a regulation"), "{bad}");
    assert!(refused("regulations = 'GDPR'").contains("make it a list of strings"));
}

#[test]
fn the_hash_has_what_a_rule_says_of_itself() {
    let rules = |fields: &str| own_rule(fields).unwrap();
    let plain = rules("").hash();
    for fields in ["sensitivity = 'moderate'", "regulations = []", "regulations = ['X']"] {
        assert_ne!(rules(fields).hash(), plain, "{fields}");
    }
}

#[test]
fn grounds_name_title_and_article() {
    let rules = own_rule("regulations = ['ACME-7', 'GDPR']").unwrap();
    let grounds = rules.get("acme-number").unwrap().grounds();
    assert_eq!((grounds[0].title, &grounds[0].notes[..]), (None, &[][..]));
    assert_eq!(grounds[1].title, Some("General Data Protection Regulation, (EU) 2016/679"));
    let religion = BUILTIN.get("religion").unwrap().grounds();
    let special = religion.iter().find(|ground| ground.regulation.as_str() == "GDPR-9").unwrap();
    assert!(special.notes.iter().any(|note| note.starts_with("Art. 9(1)")), "{special:?}");
}
