"""Identifiers of western Europe."""

from stdnum.fr import nif

from identifier import CONSONANTS, Identifier, birth, cut, digits, letters


def german_tax_id(random):
    """Of the first ten digits one occurs twice or three times, and all others once at most."""
    some = random.sample("0123456789", 9)
    ten = some + [random.choice(some)] if random.random() < 0.5 else some[:8] + [some[0]] * 2
    random.shuffle(ten)
    return "".join(ten) + digits(random, 1)


def nir(random):
    place = random.choice([f"{random.randint(1, 95):02}", "2A", "2B", "99"])
    commune, order, key = random.randint(1, 899), random.randint(1, 999), random.randint(1, 97)
    return f"{random.choice('12')}{birth(random, '{y:02}{m:02}')}{place}{commune:03}{order:03}{key:02}"


def french_tax_number(random):

    number = random.choice("0123") + digits(random, 9)
    return number + nif.calc_check_digits(number)


def codice_fiscale(random):
    name = letters(random, 6, CONSONANTS)
    day = random.randint(1, 28) + random.choice([0, 40])
    month = random.choice("ABCDEHLMPRST")
    place = letters(random, 1, "ABCDEFGHIL") + digits(random, 3)
    return f"{name}{digits(random, 2)}{month}{day:02}{place}{letters(random, 1)}"


def identifiers():
    """Labels first in the local language, then in English."""
    d = digits
    return [
        Identifier(
            "gb.nhs",
            "gb.nhs",
            "en",
            ["NHS number", "NHS no.", "NHS No"],
            ["nhs_number", "nhs_no", "nhsNumber"],
            lambda r: r.choice("4679") + d(r, 9),
            str,
            lambda v: cut(v, 3, 3, 4),
            lambda v: cut(v, 3, 3, 4),
            lambda v: cut(v, 3, 3, 4, by="-"),
        ),
        Identifier(
            "gb.utr",
            "gb.utr",
            "en",
            ["UTR", "unique taxpayer reference", "self assessment UTR"],
            ["utr", "utr_number", "unique_taxpayer_reference"],
            lambda r: d(r, 10),
            str,
            lambda v: cut(v, 5, 5),
        ),
        Identifier(
            "gb.vat",
            "gb.vat",
            "en",
            ["VAT number", "VAT registration number", "VAT Reg No"],
            ["vat_number", "vat_no", "vat_reg"],
            lambda r: "GB" + d(r, 9),
            str,
            lambda v: "GB " + cut(v[2:], 3, 4, 2),
        ),
        Identifier(
            "ie.pps",
            "ie.pps",
            "en",
            ["PPS number", "PPSN", "personal public service number"],
            ["ppsn", "pps_number", "pps"],
            lambda r: d(r, 7) + letters(r, 1) + r.choice(["", "A"]),
        ),
        Identifier(
            "fr.nir",
            "fr.nir",
            "fr",
            ["numéro de sécurité sociale", "n° de sécurité sociale", "NIR", "numéro INSEE"],
            ["nir", "numero_securite_sociale", "num_secu"],
            nir,
            str,
            lambda v: cut(v, 1, 2, 2, 2, 3, 3, 2),
            lambda v: cut(v, 1, 2, 2, 2, 3, 3, 2),
        ),
        Identifier(
            "fr.nif",
            "fr.nif",
            "fr",
            ["numéro fiscal", "n° fiscal", "numéro fiscal de référence", "numéro SPI"],
            ["numero_fiscal", "spi", "num_fiscal"],
            french_tax_number,
            str,
            lambda v: cut(v, 2, 2, 3, 3, 3),
        ),
        Identifier(
            "fr.siren",
            "fr.siren",
            "fr",
            ["SIREN", "numéro SIREN", "n° SIREN"],
            ["siren", "num_siren", "siren_client"],
            lambda r: r.choice("3458") + d(r, 8),
            str,
            lambda v: cut(v, 3, 3, 3),
        ),
        Identifier(
            "fr.siret",
            "fr.siret",
            "fr",
            ["SIRET", "numéro SIRET", "n° SIRET"],
            ["siret", "num_siret", "siret_client"],
            lambda r: r.choice("3458") + d(r, 8) + "000" + d(r, 2),
            str,
            lambda v: cut(v, 3, 3, 3, 5),
        ),
        Identifier(
            "de.idnr",
            "de.idnr",
            "de",
            ["Steueridentifikationsnummer", "Steuer-ID", "IdNr.", "steuerliche Identifikationsnummer"],
            ["steuer_id", "idnr", "steueridentifikationsnummer"],
            german_tax_id,
            str,
            lambda v: cut(v, 2, 3, 3, 3),
        ),
        Identifier(
            "at.vnr",
            "at.vnr",
            "de",
            ["Sozialversicherungsnummer", "SV-Nummer", "SVNR", "Versicherungsnummer"],
            ["svnr", "sv_nummer", "sozialversicherungsnummer"],
            lambda r: r.choice("123456789") + d(r, 3) + birth(r, "{d:02}{m:02}{y:02}"),
            str,
            lambda v: cut(v, 4, 6),
        ),
        Identifier(
            "ch.ssn",
            "ch.ssn",
            "de",
            ["AHV-Nummer", "AHV-Nr.", "numéro AVS", "Sozialversicherungsnummer"],
            ["ahv_nr", "ahvnummer", "numero_avs"],
            lambda r: "756" + d(r, 10),
            str,
            lambda v: cut(v, 3, 4, 4, 2, by="."),
            lambda v: cut(v, 3, 4, 4, 2, by="."),
        ),
        Identifier(
            "ch.uid",
            "ch.uid",
            "de",
            ["UID", "Unternehmens-Identifikationsnummer", "MWST-Nummer", "numéro IDE"],
            ["uid", "uid_nummer", "ide"],
            lambda r: "CHE" + d(r, 9),
            lambda v: f"CHE-{v[3:6]}.{v[6:9]}.{v[9:]}",
            str,
        ),
        Identifier(
            "be.nn",
            "be.nn",
            "nl",
            ["rijksregisternummer", "numéro de registre national", "INSZ", "numéro national"],
            ["rijksregisternummer", "insz", "niss", "national_number"],
            lambda r: birth(r) + d(r, 5),
            str,
            lambda v: f"{v[:2]}.{v[2:4]}.{v[4:6]}-{v[6:9]}.{v[9:]}",
        ),
        Identifier(
            "nl.bsn",
            "nl.bsn",
            "nl",
            ["BSN", "burgerservicenummer", "sofinummer"],
            ["bsn", "burgerservicenummer", "bsn_nummer"],
            lambda r: r.choice("12345678") + d(r, 8),
            str,
            lambda v: cut(v, 4, 2, 3, by="."),
        ),
        Identifier(
            "es.dni",
            "es.nif",
            "es",
            ["DNI", "NIF", "NIE", "documento nacional de identidad"],
            ["dni", "nif", "documento_identidad"],
            lambda r: r.choice(["", "", "X", "Y"]).ljust(1, r.choice("01234567")) + d(r, 7) + letters(r, 1),
            str,
            str,
            lambda v: v[:-1] + "-" + v[-1],
        ),
        Identifier(
            "es.cif",
            "es.cif",
            "es",
            ["CIF", "NIF", "código de identificación fiscal"],
            ["cif", "cif_empresa", "nif_empresa"],
            lambda r: r.choice("ABFGJ") + r.choice(["28", "08", "46", "41", "50"]) + d(r, 6),
            str,
            lambda v: v[0] + "-" + v[1:],
        ),
        Identifier(
            "es.ccc",
            "es.ccc",
            "es",
            ["cuenta corriente", "número de cuenta", "CCC", "código cuenta cliente"],
            ["ccc", "cuenta_bancaria", "numero_cuenta"],
            lambda r: r.choice(["2100", "0049", "0182", "2085"]) + d(r, 16),
            lambda v: cut(v, 4, 4, 2, 10),
            lambda v: cut(v, 4, 4, 2, 10, by="-"),
            str,
        ),
        Identifier(
            "pt.nif",
            "pt.nif",
            "pt",
            ["NIF", "número de contribuinte", "contribuinte n.º"],
            ["nif", "contribuinte", "nif_cliente"],
            lambda r: r.choice("1235") + d(r, 8),
            str,
            lambda v: cut(v, 3, 3, 3),
        ),
        Identifier(
            "pt.cc",
            "pt.cc",
            "pt",
            ["cartão de cidadão", "número do cartão de cidadão", "CC n.º"],
            ["cartao_cidadao", "cc", "num_cc"],
            lambda r: d(r, 9) + letters(r, 2) + d(r, 1),
            lambda v: f"{v[:8]} {v[8]} {v[9:]}",
            str,
        ),
        Identifier(
            "it.codicefiscale",
            "it.codicefiscale",
            "it",
            ["codice fiscale", "C.F.", "cod. fisc."],
            ["codice_fiscale", "cf", "codiceFiscale"],
            codice_fiscale,
        ),
        Identifier(
            "it.iva",
            "it.iva",
            "it",
            ["partita IVA", "P.IVA", "P. IVA"],
            ["partita_iva", "piva", "partitaIva"],
            lambda r: "0" + d(r, 6) + f"{r.randint(1, 100):03}" + d(r, 1),
        ),
    ]
