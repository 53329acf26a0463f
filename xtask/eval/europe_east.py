"""Identifiers of northern, southern and eastern Europe, and VAT numbers of the whole union."""

import re

from stdnum.dk import cpr

from identifier import (
    Identifier,
    birth,
    cut,
    digits,
    letters,
)


class HungarianTaxNumber(Identifier):
    """The validator knows the first eight digits; the kind of tax and the county follow them."""

    def core(self, written):
        return written[:8]


# Of each member state: `#` is a digit, `@` a letter.
VAT_NUMBERS = (
    "ATU######## BE0######### BG######### CY1#######@ CZ######## DE######### DK######## EE10####### EL######### "
    "ESB######## FI######## FR########### HR########### HU######## IE#######@ IT########### LT######### LU######## "
    "LV4########## MT######## NL#########B01 PL########## PT5######## RO######## SE##########01 SI######## "
    "SK##########"
).split()


class AnyVat(Identifier):
    """A country first, and then its number: otherwise those with the weakest check would be most."""

    def compact(self, random):
        number = random.choice(VAT_NUMBERS)
        self.draw = lambda random: re.sub("[#@]", lambda place: drawn(random, place[0]), number)
        return super().compact(random)


def drawn(random, place):
    return digits(random, 1) if place == "#" else letters(random, 1)


def danish_with_check_digit(value):
    """Numbers given out since 2007 may have none; those of earlier births have."""
    return cpr.is_valid(value) and cpr.checksum(cpr.compact(value)) == 0


def identifiers():
    """Labels first in the local language, then in English."""
    d = digits
    return [
        Identifier(
            "gr.amka",
            "gr.amka",
            "el",
            ["ΑΜΚΑ", "AMKA", "αριθμός μητρώου κοινωνικής ασφάλισης"],
            ["amka", "ΑΜΚΑ", "amka_number"],
            lambda r: birth(r, "{d:02}{m:02}{y:02}") + d(r, 5),
        ),
        Identifier(
            "gr.vat",
            "gr.vat",
            "el",
            ["ΑΦΜ", "Α.Φ.Μ.", "AFM", "αριθμός φορολογικού μητρώου"],
            ["afm", "ΑΦΜ", "afm_pelati"],
            lambda r: r.choice("01") + d(r, 8),
        ),
        Identifier(
            "hr.oib",
            "hr.oib",
            "hr",
            ["OIB", "osobni identifikacijski broj"],
            ["oib", "oib_klijenta", "OIB"],
            lambda r: d(r, 11),
        ),
        Identifier(
            "si.emso",
            "si.emso",
            "sl",
            ["EMŠO", "enotna matična številka občana", "EMSO"],
            ["emso", "emšo", "EMSO"],
            lambda r: birth(r, "{d:02}{m:02}9{y:02}", last=1999) + "50" + d(r, 4),
        ),
        Identifier(
            "bg.egn",
            "bg.egn",
            "bg",
            ["ЕГН", "EGN", "единен граждански номер"],
            ["egn", "ЕГН", "egn_klient"],
            lambda r: (birth(r, last=1999) if r.random() < 0.8 else birth(r, first=2000, last=2006, m=40)) + d(r, 4),
        ),
        Identifier(
            "ro.cnp",
            "ro.cnp",
            "ro",
            ["CNP", "cod numeric personal", "C.N.P."],
            ["cnp", "cod_numeric_personal", "CNP"],
            lambda r: r.choice("12") + birth(r, last=1999) + f"{r.randint(1, 40):02}" + d(r, 4),
        ),
        Identifier(
            "cz.rc",
            "cz.rc",
            "cs",
            ["rodné číslo", "r. č.", "RČ", "birth number"],
            ["rodne_cislo", "rc", "birth_number"],
            lambda r: birth(r, first=1955, m=r.choice([0, 50])) + d(r, 4),
            str,
            lambda v: v[:6] + "/" + v[6:],
            lambda v: v[:6] + "/" + v[6:],
        ),
        Identifier(
            "cz.rc",
            "sk.rc",
            "sk",
            ["rodné číslo", "r. č.", "rodné č."],
            ["rodne_cislo", "rc", "rodneCislo"],
            lambda r: birth(r, first=1955, m=r.choice([0, 50])) + d(r, 4),
            str,
            lambda v: v[:6] + "/" + v[6:],
            lambda v: v[:6] + "/" + v[6:],
        ),
        Identifier(
            "lv.pvn",
            "lv.pvn",
            "lv",
            ["personas kods", "personas kodu", "personal code"],
            ["personas_kods", "pk", "personal_code"],
            lambda r: birth(r, "{d:02}{m:02}{y:02}", last=1999) + "1" + d(r, 4),
            str,
            lambda v: v[:6] + "-" + v[6:],
            lambda v: v[:6] + "-" + v[6:],
        ),
        Identifier(
            "is.kennitala",
            "is_.kennitala",
            "is",
            ["kennitala", "kt.", "kennitölu"],
            ["kennitala", "kt", "kennitala_greidanda"],
            lambda r: birth(r, "{d:02}{m:02}{y:02}", last=1999) + d(r, 3) + "9",
            str,
            lambda v: v[:6] + "-" + v[6:],
            lambda v: v[:6] + "-" + v[6:],
        ),
        Identifier(
            "ee.ik, lt.asmens",
            "ee.ik",
            "et",
            ["isikukood", "isikukoodi", "personal identification code"],
            ["isikukood", "ik", "personal_code"],
            lambda r: r.choice("34") + birth(r, last=1999) + d(r, 4),
        ),
        Identifier(
            "ee.ik, lt.asmens",
            "lt.asmens",
            "lt",
            ["asmens kodas", "a. k.", "personal code"],
            ["asmens_kodas", "asmensKodas", "ak"],
            lambda r: r.choice("34") + birth(r, last=1999) + d(r, 4),
        ),
        Identifier(
            "pl.pesel",
            "pl.pesel",
            "pl",
            ["PESEL", "numer PESEL", "nr PESEL"],
            ["pesel", "nr_pesel", "PESEL"],
            lambda r: (birth(r, last=1999) if r.random() < 0.8 else birth(r, first=2000, last=2006, m=20)) + d(r, 5),
        ),
        Identifier(
            "pl.nip",
            "pl.nip",
            "pl",
            ["NIP", "numer NIP", "nr NIP"],
            ["nip", "nr_nip", "nip_nabywcy"],
            lambda r: r.choice("56789") + d(r, 9),
            str,
            lambda v: cut(v, 3, 3, 2, 2, by="-"),
            lambda v: cut(v, 3, 2, 2, 3, by="-"),
        ),
        Identifier(
            "pl.regon",
            "pl.regon",
            "pl",
            ["REGON", "numer REGON", "nr REGON"],
            ["regon", "nr_regon", "REGON"],
            lambda r: d(r, 9),
        ),
        HungarianTaxNumber(
            "hu.anum",
            "hu.anum",
            "hu",
            ["adószám", "adószáma", "cég adószáma"],
            ["adoszam", "adószám", "tax_number"],
            lambda r: r.choice("12") + d(r, 7),
            lambda v: v + "-2-41",
            lambda v: v + "-1-13",
            lambda v: v + "-2-08",
        ),
        Identifier(
            "fi.hetu",
            "fi.hetu",
            "fi",
            ["henkilötunnus", "hetu", "henkilötunnukseni"],
            ["hetu", "henkilotunnus", "HETU"],
            lambda r: (
                birth(r, "{d:02}{m:02}{y:02}-", last=1999)
                if r.random() < 0.8
                else birth(r, "{d:02}{m:02}{y:02}A", first=2000, last=2006)
            )
            + f"{r.randint(2, 899):03}"
            + letters(r, 1, "0123456789ABCDEFHJKLMNPRSTUVWXY"),
        ),
        Identifier(
            "se.personnummer",
            "se.personnummer",
            "sv",
            ["personnummer", "pers.nr", "personnr"],
            ["personnummer", "pnr", "personnr"],
            lambda r: birth(r, "{yyyy}{m:02}{d:02}-", last=1999) + d(r, 4),
            str,
            lambda v: v[2:],
            lambda v: v.replace("-", ""),
        ),
        Identifier(
            "no.fodselsnummer",
            "no.fodselsnummer",
            "no",
            ["fødselsnummer", "personnummer", "fnr"],
            ["fodselsnummer", "fnr", "fødselsnummer"],
            lambda r: birth(r, "{d:02}{m:02}{y:02}", last=1999) + d(r, 5),
            str,
            lambda v: cut(v, 6, 5),
        ),
        Identifier(
            "dk.cpr",
            "dk.cpr",
            "da",
            ["CPR-nummer", "cpr-nr.", "personnummer", "CPR"],
            ["cpr", "cpr_nr", "cprnummer"],
            lambda r: birth(r, "{d:02}{m:02}{y:02}", last=1999) + r.choice("0123") + d(r, 3),
            lambda v: v[:6] + "-" + v[6:],
            str,
            check=danish_with_check_digit,
        ),
        AnyVat(
            "eu.vat",
            "eu.vat",
            "en",
            ["VAT number", "VAT ID", "USt-IdNr.", "numéro de TVA", "BTW-nummer"],
            ["vat_number", "vat_id", "vatin"],
            None,
            str,
            str,
            lambda v: v[:2] + " " + v[2:],
        ),
        Identifier(
            "ru.inn",
            "ru.inn",
            "ru",
            ["ИНН", "INN", "идентификационный номер налогоплательщика"],
            ["inn", "ИНН", "inn_klienta"],
            lambda r: f"{r.randint(1, 79):02}" + d(r, r.choice([8, 10])),
        ),
        Identifier(
            "ua.rntrc",
            "ua.rntrc",
            "uk",
            ["РНОКПП", "ІПН", "ідентифікаційний код", "індивідуальний податковий номер"],
            ["rnokpp", "ipn", "РНОКПП"],
            lambda r: str(r.randint(16_000, 38_000)) + d(r, 5),
        ),
        Identifier(
            "by.unp",
            "by.unp",
            "ru",
            ["УНП", "UNP", "учётный номер плательщика"],
            ["unp", "УНП", "unp_klienta"],
            lambda r: r.choice("123456") + d(r, 8),
        ),
        Identifier(
            "tr.tckimlik",
            "tr.tckimlik",
            "tr",
            ["TC kimlik numarası", "T.C. Kimlik No", "TCKN", "kimlik numaram"],
            ["tckn", "tc_kimlik_no", "tcKimlikNo"],
            lambda r: r.choice("123456789") + d(r, 10),
        ),
    ]
