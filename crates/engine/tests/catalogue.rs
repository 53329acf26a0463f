//! Every info type of the catalogue has its rules, and every one that can be proved is: a rule's first example is
//! found with a proof among its reasons.

use std::sync::Arc;

use domesday_engine::{Chunk, Evidence, Rule, RuleSet, Scanner, Scratch};
use domesday_model::Category;

/// Info types that are no secrets, at least.
const INFO_TYPES_MIN: usize = 130;

/// What a value must show.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    /// A check digit, a numbering plan or the like.
    Proved,
    /// The form, the ranges in use or words near.
    Form,
}

use Told::{Form, Proved};

/// The catalogue's entries with the rules that find them.
const CATALOGUE: &[(&str, Told, &[&str])] = &[
    // Finance.
    ("payment card", Proved, &["payment-card", "payment-card-unseparated", "payment-card-spaced"]),
    ("track data", Proved, &["payment-card-track"]),
    ("CVV", Form, &["card-verification-code"]),
    ("card expiry", Form, &["card-expiry-date"]),
    ("IBAN", Proved, &["iban", "iban-grouped", "iban-typeset"]),
    ("BIC", Form, &["bank-identifier-code"]),
    ("US ABA routing", Proved, &["us-bank-routing-number"]),
    ("US account", Form, &["us-bank-account"]),
    ("UK sort code and account", Form, &["uk-sort-code-account", "uk-sort-code"]),
    ("ES CCC", Proved, &["es-bank-account"]),
    ("MX CLABE", Proved, &["mx-clabe"]),
    ("AR CBU", Proved, &["ar-cbu"]),
    ("IN IFSC", Form, &["in-ifsc"]),
    ("Bitcoin address", Proved, &["bitcoin-address"]),
    ("Ethereum address", Proved, &["ethereum-address"]),
    // Contact and person.
    ("email", Form, &["email-address"]),
    ("phone", Proved, &["phone-international", "phone-international-dialled", "phone-typeset"]),
    (
        "phone within a country",
        Form,
        &["phone-us", "phone-national", "phone-national-form", "phone-labelled"],
    ),
    ("person name", Proved, &["person-name-labelled", "person-name-introduced", "person-name-field"]),
    ("person name in mail", Proved, &["person-name-mail-header", "person-name-signature"]),
    ("date of birth", Form, &["date-of-birth"]),
    ("age", Form, &["person-age", "person-age-labelled", "person-age-told"]),
    ("gender", Form, &["person-gender"]),
    (
        "street address",
        Form,
        &["street-address", "street-address-german", "street-address-romance", "street-address-labelled"],
    ),
    ("postcode", Form, &["postcode-labelled"]),
    ("coordinates", Form, &["coordinates", "coordinates-keyed"]),
    ("ethnicity", Form, &["ethnicity"]),
    ("religion", Form, &["religion"]),
    ("marital status", Form, &["marital-status"]),
    ("user name", Form, &["user-name"]),
    ("vehicle plate", Form, &["vehicle-plate"]),
    // Device.
    ("IPv4", Form, &["ipv4-address"]),
    ("IPv6", Form, &["ipv6-address"]),
    ("MAC", Form, &["mac-address"]),
    ("IMEI", Proved, &["imei"]),
    ("ICCID", Proved, &["sim-card-iccid"]),
    ("IMSI", Form, &["imsi"]),
    ("MEID", Proved, &["meid"]),
    ("VIN", Proved, &["vehicle-identification-number"]),
    // Americas.
    ("US SSN", Form, &["us-social-security-number", "us-social-security-number-unseparated"]),
    ("US ITIN", Form, &["us-itin"]),
    ("US EIN", Form, &["us-employer-identification-number"]),
    ("US MBI", Form, &["us-medicare-beneficiary"]),
    ("US passport", Form, &["us-passport"]),
    ("US driving licence", Form, &["us-driving-licence"]),
    ("US NPI", Proved, &["us-provider-npi"]),
    ("US DEA", Proved, &["us-dea-number"]),
    ("CA SIN", Proved, &["ca-social-insurance-number"]),
    ("CA BC PHN", Proved, &["ca-health-bc"]),
    ("CA BN", Proved, &["ca-business-number"]),
    ("MX CURP", Proved, &["mx-curp"]),
    ("MX RFC", Proved, &["mx-rfc", "mx-rfc-company"]),
    ("BR CPF", Proved, &["br-cpf", "br-cpf-unseparated"]),
    ("BR CNPJ", Proved, &["br-cnpj", "br-cnpj-unseparated"]),
    ("AR CUIT", Proved, &["ar-cuit"]),
    ("AR DNI", Form, &["ar-dni"]),
    ("CL RUT", Proved, &["cl-rut", "cl-rut-undotted"]),
    ("CO NIT", Proved, &["co-nit"]),
    ("PE RUC", Proved, &["pe-ruc"]),
    ("PE CUI", Proved, &["pe-identity"]),
    ("UY RUT", Proved, &["uy-rut"]),
    ("VE RIF", Proved, &["ve-rif"]),
    ("EC CI", Proved, &["ec-cedula"]),
    ("DO cédula", Proved, &["do-cedula"]),
    // Europe.
    ("UK NINO", Form, &["uk-national-insurance-number"]),
    ("UK driving licence", Form, &["uk-driving-licence"]),
    ("UK passport", Form, &["uk-passport"]),
    ("UK NHS number", Proved, &["uk-nhs-number"]),
    ("UK UTR", Proved, &["uk-unique-taxpayer-reference"]),
    ("UK VAT", Proved, &["uk-vat"]),
    ("IE PPS", Proved, &["ie-pps-number"]),
    ("FR NIR", Proved, &["fr-nir", "fr-nir-unseparated", "fr-nir-corsica"]),
    ("FR NIF", Proved, &["fr-tax-number"]),
    ("FR SIREN", Proved, &["fr-siren"]),
    ("FR SIRET", Proved, &["fr-siret"]),
    ("DE IdNr", Proved, &["de-tax-id"]),
    ("DE identity card and passport", Proved, &["de-identity-card"]),
    ("DE RVNR", Proved, &["de-pension-insurance"]),
    ("DE KVNR", Proved, &["de-health-insurance"]),
    ("AT VNR", Proved, &["at-social-insurance"]),
    ("CH AHV", Proved, &["ch-ahv-number"]),
    ("BE national number", Proved, &["be-national-number"]),
    ("NL BSN", Proved, &["nl-bsn"]),
    ("ES DNI and NIE", Proved, &["es-dni-nie"]),
    ("ES CIF", Proved, &["es-cif"]),
    ("PT NIF", Proved, &["pt-nif"]),
    ("PT citizen card", Proved, &["pt-citizen-card"]),
    ("IT codice fiscale", Proved, &["it-codice-fiscale"]),
    ("IT partita IVA", Proved, &["it-partita-iva"]),
    ("GR AMKA", Proved, &["gr-amka"]),
    ("GR AFM", Proved, &["gr-afm"]),
    ("HR OIB", Proved, &["hr-oib"]),
    ("SI EMŠO", Proved, &["si-emso"]),
    ("BG EGN", Proved, &["bg-egn"]),
    ("RO CNP", Proved, &["ro-cnp"]),
    ("CZ and SK birth number", Proved, &["cz-sk-birth-number"]),
    ("LV personal code", Proved, &["lv-personal-code"]),
    ("IS kennitala", Proved, &["is-kennitala"]),
    ("EE and LT personal code", Proved, &["ee-lt-personal-code"]),
    ("PL PESEL", Proved, &["pl-pesel"]),
    ("PL NIP", Proved, &["pl-nip"]),
    ("HU tax", Proved, &["hu-tax-number"]),
    ("FI HETU", Proved, &["fi-hetu", "fi-hetu-newer"]),
    ("SE personnummer", Proved, &["se-personnummer"]),
    ("NO fødselsnummer", Proved, &["no-fodselsnummer"]),
    ("DK CPR", Form, &["dk-cpr"]),
    ("EU VAT", Proved, &["eu-vat-number"]),
    ("RU INN", Proved, &["ru-inn"]),
    ("RU SNILS", Proved, &["ru-snils"]),
    ("UA taxpayer", Proved, &["ua-tax-number"]),
    ("BY taxpayer", Proved, &["by-tax-number"]),
    ("TR TCKN", Proved, &["tr-tckn"]),
    // Asia, Pacific, Middle East, Africa.
    ("IN Aadhaar", Proved, &["in-aadhaar"]),
    ("IN PAN", Form, &["in-pan"]),
    ("IN GSTIN", Proved, &["in-gstin"]),
    ("IN EPIC", Proved, &["in-voter-id"]),
    ("PK CNIC", Form, &["pk-cnic"]),
    ("CN resident identity", Proved, &["cn-resident-id"]),
    ("CN USCC", Proved, &["cn-organisation-code"]),
    ("HK HKID", Proved, &["hk-identity-card"]),
    ("TW national id", Proved, &["tw-national-id"]),
    ("JP My Number", Proved, &["jp-my-number"]),
    ("KR RRN", Proved, &["kr-resident-registration"]),
    ("KR BRN", Proved, &["kr-business-number"]),
    ("TH identity", Proved, &["th-national-id"]),
    ("MY NRIC", Form, &["my-nric"]),
    ("ID NIK", Form, &["id-nik"]),
    ("SG NRIC", Proved, &["sg-nric"]),
    ("VN MST", Proved, &["vn-tax-number"]),
    ("AU TFN", Proved, &["au-tax-file-number"]),
    ("AU ABN", Proved, &["au-business-number"]),
    ("AU Medicare", Proved, &["au-medicare-number"]),
    ("NZ IRD", Proved, &["nz-inland-revenue"]),
    ("IL identity", Proved, &["il-identity-number"]),
    ("ZA identity", Proved, &["za-identity-number"]),
    ("AE identity", Proved, &["ae-emirates-id"]),
    ("SA identity", Proved, &["sa-national-id"]),
    // Health.
    ("ICD-10 code in context", Form, &["icd10-code"]),
    ("medical record number", Form, &["medical-record-number"]),
    ("health plan number", Form, &["health-plan-number"]),
    ("diagnosis terms in context", Form, &["diagnosis-statement"]),
    ("medication terms in context", Form, &["medication-dose"]),
    // Markings.
    ("classification banner", Form, &["marking-classification", "marking-confidential"]),
    ("CUI", Form, &["marking-cui"]),
    ("TLP", Form, &["marking-tlp"]),
    ("export control", Form, &["marking-export-control"]),
];

fn rules() -> RuleSet {
    RuleSet::builtin().unwrap_or_else(|errors| panic!("{errors}"))
}

/// Whether the rule's first example is found by the rule with a proof.
fn is_proved(scanner: &Scanner, rule: &Rule, scratch: &mut Scratch) -> bool {
    let mut found = Vec::new();
    scanner.scan(&Chunk::whole(rule.positive[0].as_bytes(), b""), scratch, &mut found);
    found
        .iter()
        .filter(|found| scanner.rules().rules()[found.rule as usize].id == rule.id)
        .any(|found| found.reasons.0.iter().any(|reason| matches!(reason.evidence, Evidence::Proof(_))))
}

#[test]
fn every_info_type_has_its_rules_and_every_proof_is_made() {
    let scanner = Scanner::new(Arc::new(rules()));
    let mut scratch = Scratch::new();
    let mut failures = Vec::new();
    for (name, told, ids) in CATALOGUE {
        for id in *ids {
            match scanner.rules().get(id) {
                None => failures.push(format!("{name}: there is no rule {id}")),
                Some(rule) if *told == Proved && !is_proved(&scanner, rule, &mut scratch) => {
                    failures.push(format!("{name}: {id} proves nothing in {:?}", rule.positive[0]));
                }
                Some(_) => {}
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_catalogue_is_broad() {
    let rules = rules();
    let others = rules.rules().iter().filter(|rule| rule.category != Category::Secret).count();
    assert!(others >= INFO_TYPES_MIN, "{others} rules besides secrets");
    assert!(CATALOGUE.len() >= INFO_TYPES_MIN, "{} entries", CATALOGUE.len());
}
