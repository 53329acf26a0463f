//! Which rules find which labelled type. The names of labels are those of the sets: the usual ones of personal data in
//! capitals, and national identifiers after the module of the independent validator that checks them.
//!
//! A rule is some type's own at most once, so that a wrong finding counts against one type only.

/// A type of labels.
#[derive(Debug)]
pub struct Type {
    pub name: &'static str,
    /// The rules that find it: ids, or their beginnings with `*` at the end. Their findings anywhere else are wrong.
    pub own: &'static [&'static str],
    /// Rules that are right at such a label, and say nothing about the type elsewhere.
    pub also: &'static [&'static str],
    pub group: Group,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    /// The types that the targets are about.
    Headline,
    National,
    Other,
}

impl Type {
    pub fn owns(&self, rule: &str) -> bool {
        self.own.iter().any(|pattern| names(pattern, rule))
    }

    /// Whether a finding of the rule is right at a label of this type.
    pub fn accepts(&self, rule: &str) -> bool {
        self.owns(rule) || self.also.iter().any(|pattern| names(pattern, rule))
    }
}

fn names(pattern: &str, rule: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => rule.starts_with(beginning),
        None => rule == pattern,
    }
}

pub fn of_label(name: &str) -> Option<&'static Type> {
    ALL.iter().find(|kind| kind.name == name)
}

const fn headline(name: &'static str, own: &'static [&'static str]) -> Type {
    Type { name, own, also: &[], group: Group::Headline }
}

const fn other(name: &'static str, own: &'static [&'static str]) -> Type {
    Type { name, own, also: &[], group: Group::Other }
}

const fn national(name: &'static str, own: &'static [&'static str]) -> Type {
    Type { name, own, also: &[], group: Group::National }
}

/// An identifier that is also the national part of a VAT number, or the other way round.
const fn taxed(name: &'static str, own: &'static [&'static str], also: &'static [&'static str]) -> Type {
    Type { name, own, also, group: Group::National }
}

const VAT: &[&str] = &["eu-vat-number"];

pub const ALL: &[Type] = &[
    headline(
        "CREDIT_CARD",
        &["payment-card", "payment-card-spaced", "payment-card-typeset", "payment-card-unseparated"],
    ),
    headline("IBAN_CODE", &["iban", "iban-grouped", "iban-labelled", "iban-typeset"]),
    headline("US_SSN", &["us-social-security-number*"]),
    headline("EMAIL_ADDRESS", &["email-address"]),
    headline("PHONE_NUMBER", &["phone-*"]),
    headline("IP_ADDRESS", &["ipv4-address", "ipv6-address"]),
    other("PERSON", &["person-name-*"]),
    other("STREET_ADDRESS", &["street-address*", "post-office-box"]),
    other("ZIP_CODE", &["postcode*"]),
    other("AGE", &["person-age*"]),
    other("US_DRIVER_LICENSE", &["us-driving-licence"]),
    other("NRP", &["nationality", "religion", "ethnicity", "political-opinion"]),
    other("IMEI", &["imei"]),
    other("MEID", &["meid"]),
    other("IMSI", &["imsi"]),
    other("MAC_ADDRESS", &["mac-address"]),
    other("BIC", &["bank-identifier-code"]),
    other("CRYPTO", &["bitcoin-address"]),
    national("us.itin", &["us-itin"]),
    national("us.ein", &["us-employer-identification-number"]),
    national("us.rtn", &["us-bank-routing-number"]),
    national("ca.sin", &["ca-social-insurance-number"]),
    national("ca.bc_phn", &["ca-health-bc"]),
    national("ca.bn", &["ca-business-number"]),
    national("mx.curp", &["mx-curp"]),
    national("mx.rfc", &["mx-rfc", "mx-rfc-company"]),
    national("br.cpf", &["br-cpf*"]),
    national("br.cnpj", &["br-cnpj*"]),
    national("ar.cuit", &["ar-cuit"]),
    national("ar.dni", &["ar-dni"]),
    national("ar.cbu", &["ar-cbu"]),
    national("cl.rut", &["cl-rut", "cl-rut-undotted"]),
    national("co.nit", &["co-nit"]),
    national("pe.ruc", &["pe-ruc"]),
    national("pe.cui", &["pe-identity"]),
    national("uy.rut", &["uy-rut"]),
    national("ve.rif", &["ve-rif"]),
    national("ec.ci", &["ec-cedula"]),
    national("do.cedula", &["do-cedula"]),
    national("gb.nhs", &["uk-nhs-number"]),
    national("gb.utr", &["uk-unique-taxpayer-reference"]),
    taxed("gb.vat", &["uk-vat"], VAT),
    national("ie.pps", &["ie-pps-number"]),
    national("fr.nir", &["fr-nir*"]),
    national("fr.nif", &["fr-tax-number"]),
    national("fr.siren", &["fr-siren"]),
    national("fr.siret", &["fr-siret"]),
    national("de.idnr", &["de-tax-id"]),
    national("at.vnr", &["at-social-insurance"]),
    national("ch.ssn", &["ch-ahv-number"]),
    national("ch.uid", &["ch-company-uid"]),
    national("be.nn", &["be-national-number"]),
    national("nl.bsn", &["nl-bsn"]),
    taxed("es.dni", &["es-dni-nie"], VAT),
    taxed("es.cif", &["es-cif"], VAT),
    national("es.ccc", &["es-bank-account"]),
    taxed("pt.nif", &["pt-nif"], VAT),
    national("pt.cc", &["pt-citizen-card"]),
    national("it.codicefiscale", &["it-codice-fiscale"]),
    taxed("it.iva", &["it-partita-iva"], VAT),
    national("gr.amka", &["gr-amka"]),
    taxed("gr.vat", &["gr-afm"], VAT),
    taxed("hr.oib", &["hr-oib"], VAT),
    national("si.emso", &["si-emso"]),
    national("bg.egn", &["bg-egn"]),
    national("ro.cnp", &["ro-cnp"]),
    national("cz.rc", &["cz-sk-birth-number"]),
    national("lv.pvn", &["lv-personal-code"]),
    national("is.kennitala", &["is-kennitala"]),
    national("ee.ik, lt.asmens", &["ee-lt-personal-code"]),
    national("pl.pesel", &["pl-pesel"]),
    taxed("pl.nip", &["pl-nip"], VAT),
    national("pl.regon", &["pl-regon"]),
    taxed("hu.anum", &["hu-tax-number"], VAT),
    national("fi.hetu", &["fi-hetu*"]),
    national("se.personnummer", &["se-personnummer"]),
    national("no.fodselsnummer", &["no-fodselsnummer"]),
    national("dk.cpr", &["dk-cpr"]),
    taxed(
        "eu.vat",
        VAT,
        &["es-cif", "es-dni-nie", "gr-afm", "hr-oib", "hu-tax-number", "it-partita-iva", "pl-nip", "pt-nif"],
    ),
    national("ru.inn", &["ru-inn"]),
    national("ua.rntrc", &["ua-tax-number"]),
    national("by.unp", &["by-tax-number"]),
    national("tr.tckimlik", &["tr-tckn"]),
    national("in.aadhaar", &["in-aadhaar"]),
    national("in.pan", &["in-pan"]),
    national("in.gstin", &["in-gstin"]),
    national("in.epic", &["in-voter-id"]),
    national("pk.cnic", &["pk-cnic"]),
    national("cn.ric", &["cn-resident-id"]),
    national("cn.uscc", &["cn-organisation-code"]),
    national("jp.in", &["jp-my-number"]),
    national("kr.rrn", &["kr-resident-registration", "kr-resident-registration-unseparated"]),
    national("kr.brn", &["kr-business-number"]),
    national("th.pin", &["th-national-id"]),
    national("my.nric", &["my-nric"]),
    national("id.nik", &["id-nik"]),
    national("vn.mst", &["vn-tax-number"]),
    national("au.tfn", &["au-tax-file-number"]),
    national("au.abn", &["au-business-number"]),
    national("nz.ird", &["nz-inland-revenue"]),
    national("il.idnr", &["il-identity-number"]),
    national("za.idnr", &["za-identity-number"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use domesday_engine::RuleSet;

    #[test]
    fn every_name_of_a_rule_names_one_and_no_rule_is_owned_twice() {
        let rules = RuleSet::builtin().unwrap();
        for kind in ALL {
            for pattern in kind.own.iter().chain(kind.also) {
                let named = rules.rules().iter().any(|rule| names(pattern, &rule.id));
                assert!(named, "{}: no rule is called {pattern}", kind.name);
            }
        }
        for rule in rules.rules() {
            let owners: Vec<_> =
                ALL.iter().filter(|kind| kind.owns(&rule.id)).map(|kind| kind.name).collect();
            assert!(owners.len() < 2, "{} is owned by {owners:?}", rule.id);
        }
    }

    #[test]
    fn beginnings_and_whole_ids_are_told_apart() {
        let iban = of_label("IBAN_CODE").unwrap();
        assert!(iban.owns("iban-grouped") && !iban.owns("iban-other"));
        let nir = of_label("fr.nir").unwrap();
        assert!(nir.owns("fr-nir-corsica") && !nir.owns("fr-nif"));
        assert!(of_label("pl.nip").unwrap().accepts("eu-vat-number"));
        assert!(!of_label("pl.nip").unwrap().owns("eu-vat-number"));
        assert!(of_label("ORGANIZATION").is_none());
    }
}
