"""Identifiers of the Americas."""

from stdnum.mx import rfc as mx_rfc

from identifier import (
    CONSONANTS,
    Identifier,
    birth,
    cut,
    digits,
    letters,
)


def curp(random):
    states = "AS BC BS CC CL CM CS CH DF DG GT GR HG JC MC MN MS NT NL OC PL QT QR SP SL SR TC TS TL VZ YN ZS".split()
    name = letters(random, 1, CONSONANTS) + letters(random, 1, "AEIOU") + letters(random, 2, CONSONANTS)
    return (
        name
        + birth(random, last=1999)
        + random.choice("HM")
        + random.choice(states)
        + letters(random, 3, CONSONANTS)
        + digits(random, 2)
    )


def rfc(random):
    name = letters(random, 1, CONSONANTS) + letters(random, 1, "AEIOU") + letters(random, 2, CONSONANTS)
    if random.random() < 0.3:
        name = letters(random, 3, CONSONANTS)
    return name + birth(random) + letters(random, 2) + random.choice("0123456789A")


def identifiers():
    """Labels first in the local language, then in English."""
    d = digits
    return [
        Identifier(
            "us.itin",
            "us.itin",
            "en",
            ["ITIN", "individual taxpayer identification number", "taxpayer ID"],
            ["itin", "taxpayer_id", "ITIN"],
            lambda r: "9" + d(r, 8),
            str,
            lambda v: cut(v, 3, 2, 4, by="-"),
            lambda v: cut(v, 3, 2, 4, by="-"),
        ),
        Identifier(
            "us.ein",
            "us.ein",
            "en",
            ["EIN", "employer identification number", "federal tax ID"],
            ["ein", "employer_id_number", "fein", "federal_tax_id"],
            lambda r: d(r, 9),
            lambda v: cut(v, 2, 7, by="-"),
        ),
        Identifier(
            "us.rtn",
            "us.rtn",
            "en",
            ["routing number", "ABA routing number", "bank routing number"],
            ["routing_number", "aba", "aba_number", "routingNumber"],
            lambda r: f"{r.choice([*range(1, 13), *range(21, 33)]):02}" + d(r, 7),
        ),
        Identifier(
            "ca.sin",
            "ca.sin",
            "en",
            ["SIN", "social insurance number", "numéro d'assurance sociale"],
            ["sin", "social_insurance_number", "nas"],
            lambda r: r.choice("1234567") + d(r, 8),
            str,
            lambda v: cut(v, 3, 3, 3),
            lambda v: cut(v, 3, 3, 3, by="-"),
        ),
        Identifier(
            "ca.bc_phn",
            "ca.bc_phn",
            "en",
            ["PHN", "personal health number", "BC Services Card number", "MSP number"],
            ["phn", "personal_health_number", "bc_phn"],
            lambda r: "9" + d(r, 9),
            str,
            lambda v: cut(v, 4, 3, 3),
        ),
        Identifier(
            "ca.bn",
            "ca.bn",
            "en",
            ["business number", "BN", "CRA business number", "GST/HST number"],
            ["business_number", "bn", "gst_number"],
            lambda r: r.choice("1278") + d(r, 8) + r.choice(["", "RT0001", "RP0001", "RC0002"]),
            str,
        ),
        Identifier(
            "mx.curp",
            "mx.curp",
            "es",
            ["CURP", "clave única de registro de población"],
            ["curp", "CURP", "clave_curp"],
            curp,
        ),
        Identifier(
            "mx.rfc",
            "mx.rfc",
            "es",
            ["RFC", "registro federal de contribuyentes", "R.F.C."],
            ["rfc", "rfc_cliente", "RFC"],
            rfc,
            check=lambda v: mx_rfc.is_valid(v, validate_check_digits=True),
        ),
        Identifier(
            "br.cpf",
            "br.cpf",
            "pt",
            ["CPF", "número do CPF", "cadastro de pessoa física"],
            ["cpf", "nr_cpf", "cpf_cliente"],
            lambda r: d(r, 11),
            str,
            lambda v: cut(v, 3, 3, 3, by=".")[:11] + "-" + v[9:],
            lambda v: cut(v, 3, 3, 3, by=".")[:11] + "-" + v[9:],
        ),
        Identifier(
            "br.cnpj",
            "br.cnpj",
            "pt",
            ["CNPJ", "número do CNPJ", "inscrição no CNPJ"],
            ["cnpj", "nr_cnpj", "cnpj_empresa"],
            lambda r: d(r, 8) + "000" + r.choice("1112") + d(r, 2),
            str,
            lambda v: f"{v[:2]}.{v[2:5]}.{v[5:8]}/{v[8:12]}-{v[12:]}",
            lambda v: f"{v[:2]}.{v[2:5]}.{v[5:8]}/{v[8:12]}-{v[12:]}",
        ),
        Identifier(
            "ar.cuit",
            "ar.cuit",
            "es",
            ["CUIT", "CUIL", "número de CUIT", "clave de identificación tributaria"],
            ["cuit", "cuil", "nro_cuit"],
            lambda r: r.choice(["20", "23", "27", "30", "33"]) + d(r, 9),
            str,
            lambda v: cut(v, 2, 8, 1, by="-"),
            lambda v: cut(v, 2, 8, 1, by="-"),
        ),
        Identifier(
            "ar.dni",
            "ar.dni",
            "es",
            ["DNI", "documento nacional de identidad", "número de documento"],
            ["dni", "nro_documento", "dni_titular"],
            lambda r: str(r.randint(10, 45)) + d(r, 6),
            str,
            lambda v: cut(v, 2, 3, 3, by="."),
        ),
        Identifier(
            "ar.cbu",
            "ar.cbu",
            "es",
            ["CBU", "clave bancaria uniforme", "número de CBU"],
            ["cbu", "cbu_cuenta", "nro_cbu"],
            lambda r: "0" + d(r, 21),
        ),
        Identifier(
            "cl.rut",
            "cl.rut",
            "es",
            ["RUT", "RUN", "rol único tributario", "cédula de identidad"],
            ["rut", "rut_cliente", "run"],
            lambda r: str(r.randint(5_000_000, 26_000_000)) + r.choice("0123456789K"),
            lambda v: v[:-1] + "-" + v[-1],
            lambda v: f"{int(v[:-1]):,}".replace(",", ".") + "-" + v[-1],
        ),
        Identifier(
            "co.nit",
            "co.nit",
            "es",
            ["NIT", "número de identificación tributaria"],
            ["nit", "nit_empresa", "nro_nit"],
            lambda r: r.choice("89") + d(r, 9),
            lambda v: v[:-1] + "-" + v[-1],
            lambda v: cut(v[:-1], 3, 3, 3, by=".") + "-" + v[-1],
        ),
        Identifier(
            "pe.ruc",
            "pe.ruc",
            "es",
            ["RUC", "registro único de contribuyentes", "número de RUC"],
            ["ruc", "nro_ruc", "ruc_empresa"],
            lambda r: r.choice(["10", "20"]) + d(r, 9),
        ),
        Identifier(
            "pe.cui",
            "pe.cui",
            "es",
            ["DNI", "código único de identificación", "documento nacional de identidad"],
            ["dni", "cui", "nro_dni"],
            lambda r: d(r, 8) + r.choice("0123456789"),
            lambda v: v[:8] + "-" + v[8],
        ),
        Identifier(
            "uy.rut",
            "uy.rut",
            "es",
            ["RUT", "número de RUT", "registro único tributario"],
            ["rut", "rut_empresa", "nro_rut"],
            lambda r: f"{r.randint(1, 21):02}{d(r, 6)}001{d(r, 1)}",
            str,
            lambda v: cut(v, 2, 6, 3, 1, by="-"),
        ),
        Identifier(
            "ve.rif",
            "ve.rif",
            "es",
            ["RIF", "registro de información fiscal", "número de RIF"],
            ["rif", "nro_rif", "rif_empresa"],
            lambda r: r.choice("VJ") + d(r, 9),
            str,
            lambda v: f"{v[0]}-{v[1:9]}-{v[9]}",
        ),
        Identifier(
            "ec.ci",
            "ec.ci",
            "es",
            ["cédula", "cédula de identidad", "número de cédula", "cédula de ciudadanía"],
            ["cedula", "ci", "nro_cedula"],
            lambda r: f"{r.randint(1, 24):02}{r.choice('012345')}{d(r, 7)}",
            str,
            lambda v: v[:9] + "-" + v[9],
        ),
        Identifier(
            "do.cedula",
            "do.cedula",
            "es",
            ["cédula", "cédula de identidad y electoral", "número de cédula"],
            ["cedula", "cedula_cliente", "nro_cedula"],
            lambda r: r.choice(["001", "031", "402", "224"]) + d(r, 8),
            str,
            lambda v: cut(v, 3, 7, 1, by="-"),
        ),
    ]
