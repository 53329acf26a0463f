"""Payment cards, IBANs, US social security numbers, mail addresses, telephone numbers and IP addresses.

Cards are checked by the Luhn module, IBANs and SSNs by theirs of python-stdnum, telephone numbers by phonenumbers, IP
addresses by Python's own module.
"""

import ipaddress
import re

import phonenumbers
from phonenumbers import PhoneNumberFormat, PhoneNumberType
from stdnum import iban, luhn, numdb
from stdnum.us import ssn

from contexts import Kind
from identifier import LETTERS, cut, digits, letters

# Of each brand the first digits and the lengths, with the groups in which it is printed.
BRANDS = [
    ("Visa", ["4"], [16, 16, 16, 19, 13], None),
    ("Mastercard", [str(n) for n in range(51, 56)], [16], None),
    ("Mastercard 2-series", [str(n) for n in range(2221, 2721, 7)], [16], None),
    ("American Express", ["34", "37"], [15], (4, 6, 5)),
    ("Discover", ["6011", "644", "649", "65"], [16, 16, 19], None),
    ("Diners Club", ["300", "305", "36", "38"], [14], (4, 6, 4)),
    ("JCB", [str(n) for n in range(3528, 3590)], [16], None),
    ("UnionPay", ["62"], [16, 19], None),
    ("Maestro", ["5018", "5020", "5038", "6304", "6759", "6761", "6763"], [12, 13, 16, 18, 19], None),
]
CARDS_PER_BRAND = 50

CARD_NAMES = {
    "en": ["card number", "credit card", "credit card number", "debit card", "card"],
    "fr": ["numéro de carte", "carte bancaire", "numéro de carte bancaire"],
    "de": ["Kreditkartennummer", "Kreditkarte", "Kartennummer"],
    "es": ["número de tarjeta", "tarjeta de crédito", "tarjeta"],
    "pt": ["número do cartão", "cartão de crédito"],
    "it": ["numero di carta", "carta di credito"],
    "nl": ["creditcardnummer", "kaartnummer"],
    "pl": ["numer karty", "karta kredytowa"],
    "sv": ["kortnummer", "kreditkort"],
    "tr": ["kart numarası", "kredi kartı"],
    "ru": ["номер карты", "банковская карта"],
    "zh": ["信用卡号", "银行卡号"],
    "ja": ["カード番号", "クレジットカード番号"],
}
CARD_SENTENCES = [
    "I paid with {v} at the counter yesterday.",
    "Please charge {v}, expiry 09/27, for the two nights.",
    "My card {v} was declined twice today, what is wrong with it?",
    "Hello, I lost {v} on the train and want to have it blocked.",
    "The refund went back to {v} and should arrive by Friday.",
]
CARD_KEYS = ["card_number", "cardNumber", "cc_number", "credit_card", "card_no", "pan", "ccnum"]

IBAN_NAMES = {
    "en": ["IBAN", "bank account", "account (IBAN)"],
    "fr": ["IBAN", "compte bancaire", "RIB"],
    "de": ["IBAN", "Bankverbindung", "Kontoverbindung"],
    "es": ["IBAN", "cuenta bancaria"],
    "it": ["IBAN", "coordinate bancarie"],
    "nl": ["IBAN", "rekeningnummer"],
    "pl": ["IBAN", "numer konta", "rachunek bankowy"],
    "sv": ["IBAN", "kontonummer"],
    "tr": ["IBAN", "hesap numarası"],
    "pt": ["IBAN", "conta bancária"],
}
IBAN_SENTENCES = [
    "Please transfer the amount to {v} by the end of the month.",
    "Bitte überweisen Sie den Betrag auf {v} innerhalb von 14 Tagen.",
    "Merci d'effectuer le virement sur le compte {v}.",
    "The standing order from {v} was cancelled.",
    "Haga la transferencia a {v} antes del viernes.",
]
IBAN_KEYS = ["iban", "account_iban", "bank_account", "IBAN", "creditor_iban", "ibanNumber"]
IBANS_PER_COUNTRY = 6

SSNS = 300
SSN_NAMES = ["SSN", "social security number", "Social Security No.", "social", "SSN#"]
SSN_KEYS = ["ssn", "social_security_number", "SSN", "employee_ssn", "socialSecurityNumber"]

MAILS = 400
MAIL_NAMES = ["e-mail", "email address", "email", "E-Mail-Adresse", "adresse e-mail", "correo electrónico", "contact"]
MAIL_KEYS = ["email", "email_address", "mail", "contact_email", "user_email", "emailAddress"]
MAIL_SENTENCES = [
    "Write to {v} if anything is missing.",
    "{name} <{v}> wrote on Monday that the parcel never came.",
    "My address is {v}, please add me to the list.",
    "From: {name} <{v}>\nSubject: Invoice\n\nHello,\n",
    '<a href="mailto:{v}">write to us</a>',
    "cc {v}; the others know already.",
    "Bitte antworten Sie an {v}.",
    "Vous pouvez me joindre à {v} en semaine.",
]
TOPS = [
    "com",
    "org",
    "net",
    "de",
    "fr",
    "co.uk",
    "io",
    "com.br",
    "it",
    "es",
    "nl",
    "pl",
    "jp",
    "info",
    "museum",
    "cloud",
]

# Region, language, what a number is called, what a column is called.
REGIONS = [
    ("US", "en"),
    ("US", "en"),
    ("CA", "en"),
    ("GB", "en"),
    ("IE", "en"),
    ("AU", "en"),
    ("NZ", "en"),
    ("IN", "en"),
    ("ZA", "en"),
    ("SG", "en"),
    ("FR", "fr"),
    ("BE", "nl"),
    ("CH", "de"),
    ("DE", "de"),
    ("AT", "de"),
    ("ES", "es"),
    ("MX", "es"),
    ("AR", "es"),
    ("CL", "es"),
    ("CO", "es"),
    ("PE", "es"),
    ("PT", "pt"),
    ("BR", "pt"),
    ("IT", "it"),
    ("NL", "nl"),
    ("PL", "pl"),
    ("SE", "sv"),
    ("NO", "no"),
    ("DK", "da"),
    ("FI", "fi"),
    ("CZ", "cs"),
    ("SK", "sk"),
    ("HU", "hu"),
    ("RO", "ro"),
    ("BG", "bg"),
    ("GR", "el"),
    ("HR", "hr"),
    ("TR", "tr"),
    ("RU", "ru"),
    ("UA", "uk"),
    ("CN", "zh"),
    ("JP", "ja"),
    ("KR", "ko"),
    ("TH", "th"),
    ("ID", "id"),
    ("MY", "ms"),
    ("VN", "vi"),
    ("IL", "he"),
]
PHONES_PER_REGION = 16
PHONE_NAMES = {
    "en": ["phone", "phone number", "mobile", "tel", "cell phone", "contact number"],
    "fr": ["téléphone", "numéro de téléphone", "tél.", "portable"],
    "de": ["Telefonnummer", "Telefon", "Handynummer", "Tel."],
    "es": ["teléfono", "número de teléfono", "celular", "móvil"],
    "pt": ["telefone", "telemóvel", "celular", "número de telefone"],
    "it": ["telefono", "numero di telefono", "cellulare", "tel."],
    "nl": ["telefoonnummer", "telefoon", "mobiel", "tel."],
    "pl": ["telefon", "numer telefonu", "tel.", "kom."],
    "sv": ["telefonnummer", "telefon", "mobil"],
    "no": ["telefonnummer", "telefon", "mobil", "tlf."],
    "da": ["telefonnummer", "telefon", "mobil", "tlf."],
    "fi": ["puhelinnumero", "puhelin", "puh.", "matkapuhelin"],
    "cs": ["telefon", "telefonní číslo", "tel.", "mobil"],
    "sk": ["telefón", "telefónne číslo", "tel.", "mobil"],
    "hu": ["telefonszám", "telefon", "tel.", "mobil"],
    "ro": ["telefon", "număr de telefon", "tel.", "mobil"],
    "bg": ["телефон", "телефонен номер", "тел.", "мобилен"],
    "el": ["τηλέφωνο", "αριθμός τηλεφώνου", "τηλ.", "κινητό"],
    "hr": ["telefon", "broj telefona", "tel.", "mobitel"],
    "tr": ["telefon", "telefon numarası", "cep telefonu", "tel."],
    "ru": ["телефон", "номер телефона", "тел.", "мобильный"],
    "uk": ["телефон", "номер телефону", "тел.", "мобільний"],
    "zh": ["电话", "手机号", "联系电话", "手机号码"],
    "ja": ["電話番号", "電話", "携帯番号", "TEL"],
    "ko": ["전화번호", "휴대폰", "연락처", "전화"],
    "th": ["โทรศัพท์", "เบอร์โทร", "โทร.", "มือถือ"],
    "id": ["telepon", "nomor telepon", "no. HP", "telp."],
    "ms": ["telefon", "nombor telefon", "no. tel.", "telefon bimbit"],
    "vi": ["điện thoại", "số điện thoại", "ĐT", "di động"],
    "he": ["טלפון", "מספר טלפון", "נייד", "טל'"],
}
PHONE_KEYS = ["phone", "phone_number", "mobile", "telephone", "tel", "contact_phone", "phoneNumber", "cell"]
PHONE_SENTENCES = {
    "en": ["Call me at {v} after five.", "You can reach {name} on {v}.", "If nobody answers, text {v} instead."],
    "fr": ["Appelez-moi au {v} après 17 h.", "Vous pouvez joindre {name} au {v}."],
    "de": ["Rufen Sie mich bitte unter {v} an.", "{name} ist unter {v} erreichbar."],
    "es": ["Llámame al {v} después de las cinco.", "Puede contactar con {name} en el {v}."],
    "pt": ["Ligue para {v} depois das cinco.", "Pode contactar {name} pelo {v}."],
    "it": ["Mi chiami al {v} dopo le cinque.", "Può contattare {name} al {v}."],
    "nl": ["Bel mij op {v} na vijf uur.", "{name} is bereikbaar op {v}."],
    "pl": ["Proszę dzwonić pod {v} po piątej.", "{name} odbiera pod numerem {v}."],
}

IPS = 300
IP_NAMES = ["IP address", "IP", "client IP", "remote address", "source address"]
IP_KEYS = ["ip", "ip_address", "client_ip", "remote_addr", "src_ip", "ipAddress"]
IP_SENTENCES = [
    "The last login came from {v} at night.",
    "We blocked {v} after forty failed attempts.",
    "Failed password for root from {v} port 52144 ssh2",
    '{v} - - [12/Mar/2024:06:25:24 +0000] "GET /index.html HTTP/1.1" 200 5316',
    "The server {v} does not answer any more.",
    "Connection from {v} closed by remote host.",
]


def cards(random):
    """Each brand as often, bare, with spaces or with hyphens."""
    for _, heads, lengths, groups in BRANDS:
        for index in range(CARDS_PER_BRAND):
            length = lengths[index % len(lengths)]
            head = random.choice(heads)
            body = head + digits(random, length - 1 - len(head))
            number = body + luhn.calc_check_digit(body)
            assert luhn.is_valid(number) and len(number) == length, number
            # Twelve, thirteen and eighteen digits are not printed in groups.
            printed = groups or {16: (4, 4, 4, 4), 19: (4, 4, 4, 4, 3)}.get(length, (length,))
            yield cut(number, *printed, by=random.choice(["", "", " ", "-"]))


def card_kinds():
    for language, names in CARD_NAMES.items():
        yield Kind("CREDIT_CARD", language, names, CARD_KEYS)
    yield Kind("CREDIT_CARD", "en", CARD_NAMES["en"], CARD_KEYS, CARD_SENTENCES)


def ibans(random):
    """Of every country that the validator knows, compact and in groups of four, a few in lower case."""
    db = numdb.get("iban")
    countries = [a + b for a in LETTERS for b in LETTERS if db.info(a + b)[0][1]]
    for country in countries:
        structure = dict(db.info(country)[0][1])["bban"]
        for _ in range(IBANS_PER_COUNTRY):
            number = one_iban(random, country, structure)
            yield number if random.random() < 0.5 else cut(number, *[4] * (len(number) // 4))


def one_iban(random, country, structure):
    """Drawn again until the country's own check agrees, where it has one."""
    while True:
        account = "".join(iban_part(random, *part) for part in re.findall(r"(\d+)!?([nac])", structure))
        number = country + iban.calc_check_digits(country + "00" + account) + account
        if iban.is_valid(number):
            return number.lower() if random.random() < 0.04 else number


def iban_part(random, count, kind):
    """So many digits, letters or either; of the last, banks use mostly digits."""
    return letters(random, int(count), {"n": "0123456789", "a": LETTERS, "c": "0123456789" * 3 + LETTERS}[kind])


def iban_kinds():
    for language, names in IBAN_NAMES.items():
        yield Kind("IBAN_CODE", language, names, IBAN_KEYS)
    yield Kind("IBAN_CODE", "en", IBAN_NAMES["en"], IBAN_KEYS, IBAN_SENTENCES)


def social_security_numbers(random):
    found = 0
    while found < SSNS:
        number = digits(random, 9)
        if ssn.is_valid(number):
            found += 1
            yield random.choices([cut(number, 3, 2, 4, by="-"), cut(number, 3, 2, 4), number], [70, 10, 20])[0]


def mails(random, faker):
    """At made-up domains: those reserved for documentation say by themselves that they are no one's."""
    for _ in range(MAILS):
        first, last = faker.first_name().lower(), faker.last_name().lower().replace(" ", "")
        local = random.choice(
            [
                f"{first}.{last}",
                f"{first[0]}{last}",
                f"{first}_{last}{random.randint(1, 99)}",
                f"{last}",
                f"{first}-{last}",
                f"{first}.{last}+{random.choice(['shop', 'news', 'x2'])}",
                f"{first}{random.randint(1950, 2006)}",
                f"{first.capitalize()}{last.capitalize()}",
                f"info-{last}",
                f"{first[0]}.{last}",
            ]
        )
        company = faker.last_name().lower().replace(" ", "").replace("'", "")
        host = random.choice(
            [
                company,
                f"{company}-{random.choice(['group', 'shop', 'ag'])}",
                f"mail.{company}",
                f"{company}{random.randint(2, 99)}",
                random.choice(["gmail", "outlook", "yahoo", "proton"]),
            ]
        )
        address = f"{local}@{host}.{random.choice(TOPS)}".replace("'", "")
        assert address.isascii() and address.count("@") == 1, address
        yield address


def phones(random):
    """Random numbers of each region's plan, as they are written there and abroad."""
    for region, language in REGIONS:
        for index in range(PHONES_PER_REGION):
            number = one_phone(random, region)
            assert phonenumbers.is_valid_number_for_region(number, region)
            yield region, language, written_phone(random, number, index % 4)


def one_phone(random, region):
    kind = random.choice([PhoneNumberType.FIXED_LINE, PhoneNumberType.MOBILE])
    example = phonenumbers.example_number_for_type(region, kind)
    significant = phonenumbers.national_significant_number(example)
    while True:
        kept = random.randint(1, max(1, len(significant) - 6))
        candidate = significant[:kept] + digits(random, len(significant) - kept)
        # With its country code, so that a region's own prefixes for dialling are not looked for in it.
        number = phonenumbers.parse(f"+{example.country_code}{candidate}")
        if phonenumbers.is_valid_number_for_region(number, region):
            return number


def written_phone(random, number, form):
    if form == 0:
        return phonenumbers.format_number(number, PhoneNumberFormat.E164)
    if form == 1:
        international = phonenumbers.format_number(number, PhoneNumberFormat.INTERNATIONAL)
        by = random.choice([" ", " ", "-", "."])
        # A country's own hyphens stay.
        return international.replace(" ", by) if "-" not in international else international
    if form == 2 and number.country_code != 1 and random.random() < 0.3:
        return "00" + phonenumbers.format_number(number, PhoneNumberFormat.INTERNATIONAL)[1:]
    national = phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL)
    if number.country_code == 1:
        bare = national.replace("(", "").replace(") ", "-")
        return random.choice([national, bare, bare.replace("-", "."), "1-" + bare])
    return national


def phone_kind(random, language):
    sentences = PHONE_SENTENCES.get(language, ()) if random.random() < 0.5 else ()
    return Kind("PHONE_NUMBER", language, PHONE_NAMES[language], PHONE_KEYS, sentences)


def ipv4(random):
    for _ in range(IPS):
        address = str(ipaddress.IPv4Address(random.randrange(1 << 24, 224 << 24)))
        if random.random() < 0.2:
            address = random.choice(
                [
                    f"192.168.{random.randint(0, 254)}.{random.randint(2, 254)}",
                    f"10.{random.randint(0, 254)}.{random.randint(0, 254)}.{random.randint(2, 254)}",
                ]
            )
        if ipaddress.ip_address(address).is_loopback or ipaddress.ip_address(address).is_reserved:
            continue
        yield address


def ipv6(random):
    for _ in range(IPS):
        prefix = random.choice([0x2001_0470, 0x2A00_1450, 0x2606_4700, 0x2A02_8108, 0x2400_CB00, 0x2804_014C])
        middle = random.randrange(1 << 32)
        low = random.choice([random.randrange(1 << 64), random.randrange(1 << 16)])
        address = ipaddress.IPv6Address(prefix << 96 | middle << 64 | low)
        yield random.choice([str(address), str(address), address.exploded, str(address).upper()])


def texts(writer, random):
    """Yields (type, text, spans, path)."""

    def write(kinds, values):
        # Several values of one kind at a time, since a table has more than one.
        kinds, values = list(kinds), list(values)
        random.shuffle(values)
        for at in range(0, len(values), 12):
            kind = random.choice(kinds)
            for text, spans, path in writer.write(kind, values[at : at + 12]):
                yield kind.name, text, spans, path

    yield from write(card_kinds(), cards(random))
    yield from write(iban_kinds(), ibans(random))
    yield from write([Kind("US_SSN", "en", SSN_NAMES, SSN_KEYS)], social_security_numbers(random))
    mail = [Kind("EMAIL_ADDRESS", "en", MAIL_NAMES, MAIL_KEYS, MAIL_SENTENCES)]
    yield from write(mail, mails(random, writer.faker("en")))
    by_region = {}
    for region, language, value in phones(random):
        by_region.setdefault((region, language), []).append(value)
    for (_, language), values in by_region.items():
        yield from write([phone_kind(random, language)], values)
    ip = [Kind("IP_ADDRESS", "en", IP_NAMES, IP_KEYS), Kind("IP_ADDRESS", "en", IP_NAMES, IP_KEYS, IP_SENTENCES)]
    yield from write(ip, ipv4(random))
    yield from write(ip, ipv6(random))
