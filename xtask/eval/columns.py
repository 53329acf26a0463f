"""Columns of tables: of one type, of free text with some in it, and of things that only look like one.

Values of a type are those of the other sets, confirmed by the same independent validators. Names of columns are the
usual ones, some abbreviated, some in the country's language, some that say nothing. There are nulls, repetitions and
dirty values among them.
"""

import base64
import datetime
import hashlib
import itertools
import json
import string

from faker import Faker
from phonenumbers import PhoneNumberFormat, format_number
from stdnum import luhn

import headline
import national
import negatives
from identifier import LETTERS, cut, digits, letters

# Columns of each headline type, of each national identifier and of each other type; rows of each.
HEADLINE = 24
NATIONAL = 3
OTHER = 16
NEGATIVE = 4
ROWS = (40, 400)

NAMELESS = ["col7", "value", "field_3", "data", "c12", "Column1", "attr_4", "Unnamed: 5"]
TEXT_TYPES = ["text", "character varying(255)", "varchar(64)", "nvarchar(128)", "TEXT", ""]
DIRT = ["N/A", "n/a", "unknown", "-", "none", "TBD", "?", "not given", "see notes", "xxx", "0", "deleted", "pending"]

MAIL = ["email", "email_address", "EMAIL", "e_mail", "contactEmail", "usr_mail", "emailaddress", "courriel", "login", "Mail"]
PHONE = ["phone", "phone_number", "mobile", "tel", "contactPhone", "cell_no", "telefon", "fax", "phonenumber", "home_phone"]
CARD = ["card_number", "cc_number", "ccnum", "pan", "creditCard", "card_no", "kreditkarte", "payment_card", "cardnumber"]
IBAN = ["iban", "account_iban", "bank_account", "IBAN", "creditorIban", "kontonummer", "iban_no"]
SSN = ["ssn", "social_security_number", "SSN", "emp_ssn", "socialSecurityNumber", "ss_number"]
ADDRESS = ["ip", "ip_address", "client_ip", "remote_addr", "lastLoginIp", "src_ip", "host"]
STREET = {
    "en_US": ["address", "street_address", "home_address", "addr", "billingAddress", "street"],
    "en_GB": ["address", "street_address", "mailing_address", "addressLine1"],
    "de_DE": ["anschrift", "adresse", "strasse", "lieferadresse"],
    "fr_FR": ["adresse", "adresse_postale", "rue"],
    "it_IT": ["indirizzo", "address"],
    "es_ES": ["domicilio", "direccion", "calle"],
}
FIRST = {
    "en_US": ["first_name", "firstName", "given_name", "fname"],
    "de_DE": ["vorname"],
    "fr_FR": ["prénom"],
    "nl_NL": ["voornaam"],
}
LAST = {
    "en_US": ["last_name", "lastName", "surname", "family_name"],
    "de_DE": ["nachname"],
    "es_ES": ["apellidos"],
    "it_IT": ["cognome"],
    "pl_PL": ["nazwisko"],
}
FULL = {
    "en_US": ["full_name", "customer_name", "name", "contactName", "patient_name", "cardholder_name"],
    "de_DE": ["name", "full_name"],
    "fr_FR": ["customer_name", "nom"],
    "es_ES": ["nombre", "full_name"],
}
BIRTH = ["dob", "date_of_birth", "birthdate", "birth_date", "DateOfBirth", "geburtsdatum", "birthday", "fecha_de_nacimiento"]
PASSWORD = ["password", "passwd", "user_password", "pwd", "dbPassword", "login_pass", "PASSWORD"]
API_KEY = ["api_key", "apiKey", "access_token", "client_secret", "secret_key", "auth_token", "api_token"]
POSTCODE = ["zip", "zip_code", "postal_code", "postcode", "plz", "ZIP"]


def columns(writer, random):
    """Yields columns as dictionaries."""
    faker = writer.faker("en")
    Faker.seed(random.randrange(1 << 32))
    draw = {
        "EMAIL_ADDRESS": (MAIL, pool(headline.mails(random, faker))),
        "CREDIT_CARD": (CARD, pool(headline.cards(random))),
        "IBAN_CODE": (IBAN, pool(headline.ibans(random))),
        "US_SSN": (SSN, pool(headline.social_security_numbers(random))),
    }
    for name, (headers, values) in draw.items():
        for index in range(HEADLINE):
            header = NAMELESS[index % len(NAMELESS)] if index % 4 == 3 and name != "US_SSN" else headers[index % len(headers)]
            yield column(random, header, values, name)
    yield from phones(random)
    for index in range(HEADLINE):
        header = NAMELESS[index % len(NAMELESS)] if index % 4 == 3 else ADDRESS[index % len(ADDRESS)]
        values = headline.ipv6(random) if index % 3 == 2 else headline.ipv4(random)
        yield column(random, header, pool(values), "IP_ADDRESS", ["inet", "text", ""])
    yield from numbers(random)
    for identifier in national.identifiers():
        for index in range(NATIONAL):
            form = random.choice(identifier.forms)
            values = pool(form(identifier.compact(random)) for _ in range(120))
            header = identifier.keys[index % len(identifier.keys)] if index < 2 else random.choice(identifier.labels)
            yield column(random, header, values, identifier.name)
    yield from persons(random)
    yield from secrets(random)
    yield from free_texts(random, faker)
    yield from look_alikes(random, faker)


def pool(values):
    values = list(values)
    assert values
    return values


def column(random, header, values, expect, types=TEXT_TYPES, clean=False, occurs=(), kind=None):
    """Rows of values with what tables have among them."""
    rows = random.randint(*ROWS)
    chosen = random.sample(values, min(len(values), random.randint(30, 300)))
    nulls, dirt = (0.0, 0.0) if clean else (random.choice([0, 0, 0.1, 0.4]), random.choice([0, 0, 0.02, 0.06]))
    cells = []
    for _ in range(rows):
        draw = random.random()
        if draw < nulls:
            cells.append(None)
        elif draw < nulls + dirt:
            cells.append(random.choice(DIRT + ["", " "]))
        else:
            cells.append(random.choice(chosen))
    return {
        "column": header,
        "type": random.choice(types),
        "values": cells,
        "expect": expect,
        "occurs": list(occurs),
        "kind": kind,
    }


def phones(random):
    regions = list(headline.REGIONS)
    for index in range(HEADLINE + HEADLINE):
        region, language = regions[index % len(regions)]
        numbers = [headline.one_phone(random, region) for _ in range(120)]
        if index % 4 == 3:
            # Without a name only those with their country's code are told.
            form = random.choice([PhoneNumberFormat.E164, PhoneNumberFormat.INTERNATIONAL])
            yield column(random, NAMELESS[index % 8], [format_number(n, form) for n in numbers], "PHONE_NUMBER")
            continue
        form = random.choice([0, 1, 3, None])
        written = [headline.written_phone(random, n, random.randint(0, 3) if form is None else form) for n in numbers]
        names = PHONE if index % 2 else [name.rstrip(".") for name in headline.PHONE_NAMES[language]]
        yield column(random, random.choice(names), written, "PHONE_NUMBER")


def numbers(random):
    """Identifiers that are kept as whole numbers."""
    visa = ["4" + digits(random, 14) for _ in range(200)]
    visa = [body + luhn.calc_check_digit(body) for body in visa]
    ssn = [value.replace("-", "").replace(" ", "") for value in headline.social_security_numbers(random)]
    ssn = [value for value in ssn if value[0] != "0"]
    for header in ["card_number", "ccnum", "pan"]:
        yield column(random, header, visa, "CREDIT_CARD", ["bigint", "numeric(19,0)"], clean=True)
    for header in ["ssn", "social_security_number"]:
        yield column(random, header, ssn, "US_SSN", ["integer", "int", "bigint"], clean=True)


def persons(random):
    for names, draw in [(FIRST, "first_name"), (LAST, "last_name"), (FULL, "name")]:
        choices = [(locale, header) for locale, headers in names.items() for header in headers]
        for index in range(OTHER):
            locale, header = choices[index % len(choices)]
            faker = faker_of(random, locale)
            make = getattr(faker, draw)
            if draw == "name":
                make = lambda: f"{faker.first_name()} {faker.last_name()}"
            yield column(random, header, [make() for _ in range(200)], "PERSON")
    choices = [(locale, header) for locale, headers in STREET.items() for header in headers]
    for index in range(OTHER + 8):
        locale, header = choices[index % len(choices)]
        faker = faker_of(random, locale)
        make = faker.address if index % 3 == 2 else faker.street_address
        yield column(random, header, [make().replace("\n", ", ") for _ in range(200)], "STREET_ADDRESS")
    forms = ["%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y-%m-%d 00:00:00"]
    for index in range(OTHER):
        form = forms[index % len(forms)]
        days = [datetime.date(1940, 1, 1) + datetime.timedelta(random.randrange(24_000)) for _ in range(200)]
        types = ["date", "timestamp without time zone", "datetime"] if form.startswith("%Y") else TEXT_TYPES
        yield column(random, BIRTH[index % len(BIRTH)], [day.strftime(form) for day in days], "DATE_OF_BIRTH", types)
    for index in range(OTHER // 2):
        faker = faker_of(random, ["en_US", "en_GB", "de_DE", "fr_FR"][index % 4])
        header = POSTCODE[index % len(POSTCODE)]
        yield column(random, header, [faker.postcode() for _ in range(200)], "ZIP_CODE")
    macs = [":".join(letters(random, 2, negatives.HEX) for _ in range(6)) for _ in range(200)]
    for header in ["mac", "mac_address", "device_mac", "col9"]:
        yield column(random, header, macs, "MAC_ADDRESS", ["macaddr", "text", ""])


def faker_of(random, locale):
    faker = Faker(locale)
    faker.seed_instance(random.randrange(1 << 32))
    return faker


def secrets(random):
    faker = faker_of(random, "en_US")
    alphabet = string.ascii_letters + string.digits
    for index in range(OTHER):
        chosen = [
            lambda: faker.password(length=random.randint(8, 16)).replace('"', "x").replace("'", "y").replace("\\", "z"),
            lambda: random.choice(["sun", "river", "Tiger", "maple", "Falcon", "orange"]) + digits(random, 3) + random.choice("!#._"),
        ][index % 2]
        yield column(random, PASSWORD[index % len(PASSWORD)], [chosen() for _ in range(200)], "PASSWORD")
    for index in range(OTHER):
        size, of = [(32, negatives.HEX), (40, alphabet), (64, negatives.HEX), (24, alphabet)][index % 4]
        values = [letters(random, size, of) for _ in range(200)]
        yield column(random, API_KEY[index % len(API_KEY)], values, "API_KEY")
    for header in ["jwt", "token", "session", "id_token", "col3", "value"]:
        yield column(random, header, [jwt(random) for _ in range(80)], "JWT")
    aws = ["AKIA" + letters(random, 16, LETTERS + "234567") for _ in range(80)]
    for header in ["aws_access_key_id", "access_key", "key_id", "col5"]:
        yield column(random, header, aws, "API_KEY")


def jwt(random):
    part = lambda fields: base64.urlsafe_b64encode(json.dumps(fields).encode()).rstrip(b"=").decode()
    claims = {"sub": digits(random, 10), "iat": random.randint(1_500_000_000, 1_700_000_000), "org": letters(random, 6)}
    signature = base64.urlsafe_b64encode(random.randbytes(32)).rstrip(b"=").decode()
    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{signature}"


SENTENCES = [
    "Customer asked for a refund of the second order.",
    "Parcel was left with the neighbour on the third floor.",
    "Wants to change the delivery date to next week, please call back.",
    "The device does not start since the last update was installed.",
    "Complained about the waiting time on the hotline yesterday.",
    "Invoice was sent twice, the second one is cancelled.",
    "No further action needed, ticket can be closed.",
]


def free_texts(random, faker):
    mails = pool(headline.mails(random, faker))
    cards = [card for card in headline.cards(random) if " " in card]
    phones = [format_number(headline.one_phone(random, "GB"), PhoneNumberFormat.INTERNATIONAL) for _ in range(50)]
    for header in ["notes", "comment", "description", "remarks", "body", "message"]:
        plain = [f"{random.choice(SENTENCES)} {random.choice(SENTENCES)} Ref {digits(random, 4)}" for _ in range(200)]
        with_mail = [f"{random.choice(SENTENCES)} Write to {random.choice(mails)} for details." for _ in range(60)]
        with_phone = [f"{random.choice(SENTENCES)} Call back on {random.choice(phones)} after five." for _ in range(60)]
        one_card = [f"{random.choice(SENTENCES)} Paid by card {random.choice(cards)} at the counter."]
        yield column(random, header, plain, None, clean=True, kind="free text")
        some = plain[:80] + with_mail
        yield whole(random, header, some, ["EMAIL_ADDRESS"])
        yield whole(random, header, plain[:80] + with_phone + with_mail, ["EMAIL_ADDRESS", "PHONE_NUMBER"])
        yield whole(random, header, plain + one_card, ["CREDIT_CARD"])


def whole(random, header, values, occurs):
    """Each value once."""
    values = list(values)
    random.shuffle(values)
    return {"column": header, "type": "text", "values": values, "expect": None, "occurs": occurs, "kind": None}


def look_alikes(random, faker):
    """Columns with nothing to label: name, type, what draws a value."""
    d = lambda count: digits(random, count)
    start = random.randint(10**15, 9 * 10**15)
    counter = itertools.count(4_000_000_000_000_000 + random.randrange(10**12))
    serial = itertools.count(random.randint(100_000_000, 800_000_000))
    broken = lambda head, count: broken_luhn(random, head, count)
    day = lambda: datetime.datetime(2015, 1, 1) + datetime.timedelta(minutes=random.randrange(5_000_000))
    rows = [
        ("order number", ["order_number", "order_id", "value", "reference"], ["text", "bigint"], lambda: "4" + d(15)),
        ("order number in sequence", ["order_no", "id", "col7", "transaction_id"], ["bigint", "text"], lambda: str(next(counter))),
        ("nine digits in sequence", ["id", "customer_id", "account_id", "col2"], ["integer", "text"], lambda: str(next(serial))),
        ("nine random digits", ["ticket", "ref_no", "value", "batch"], ["text", "integer"], lambda: d(9)),
        ("ten random digits", ["order", "isbn10", "code", "value"], ["text"], lambda: d(10)),
        ("eleven random digits", ["barcode", "upc", "data", "serial_no"], ["text"], lambda: d(11)),
        ("thirteen digits", ["ean", "gtin", "barcode", "field_1"], ["text"], lambda: negatives.drawn(random, "ean", 0)),
        ("isbn", ["isbn", "book_isbn", "ISBN13", "value"], ["text"], lambda: negatives.drawn(random, "isbn", 0)),
        ("card with a broken check digit", ["card_number", "ccnum", "pan", "col7"], ["text"], lambda: broken("4", 16)),
        ("card with a broken check digit, grouped", ["card_number", "cc", "credit_card", "x"], ["text"], lambda: cut(broken("5", 16), 4, 4, 4, 4)),
        ("IBAN with a broken check digit", ["iban", "account", "IBAN", "value"], ["text"], lambda: "DE" + d(2) + "37040044" + d(10)),
        ("md5", ["checksum", "md5", "etag", "value"], ["text", "char(32)"], lambda: hashlib.md5(random.randbytes(8)).hexdigest()),
        ("sha1", ["commit_sha", "git_commit", "hash", "data"], ["text"], lambda: hashlib.sha1(random.randbytes(8)).hexdigest()),
        ("sha256", ["file_hash", "sha256", "digest", "fingerprint"], ["text"], lambda: hashlib.sha256(random.randbytes(8)).hexdigest()),
        ("epoch in seconds", ["created", "ts", "updated_at", "value"], ["integer", "text"], lambda: negatives.drawn(random, "epoch", 0)),
        ("epoch in milliseconds", ["created_ms", "timestamp", "event_time", "col4"], ["bigint", "text"], lambda: str(random.randint(1_300_000_000_000, 1_800_000_000_000))),
        ("epoch in microseconds", ["time_us", "ts_micros", "value", "t"], ["bigint", "text"], lambda: str(random.randint(13 * 10**14, 18 * 10**14))),
        ("year", ["year", "birth_year", "model_year", "vintage"], ["integer", "smallint", "text"], lambda: str(random.randint(1930, 2025))),
        ("email_verified", ["email_verified", "is_email_valid", "phone_confirmed", "has_card"], ["boolean", "text", "tinyint(1)"], lambda: random.choice(["t", "f"])),
        ("zip_count", ["zip_count", "card_count", "phone_count", "email_count"], ["integer", "text"], lambda: str(random.randint(0, 99_999))),
        ("uuid", ["id", "uuid", "session_id", "request_guid"], ["uuid", "text", "uniqueidentifier"], lambda: negatives.uuid(random)),
        ("version", ["version", "app_version", "build", "release"], ["text"], lambda: ".".join(str(random.randint(0, 20)) for _ in range(4))),
        ("version of three parts", ["version", "firmware", "sdk", "value"], ["text"], lambda: negatives.drawn(random, "version", 0)),
        ("price", ["price", "amount", "total", "balance"], ["numeric(10,2)", "money", "text"], lambda: f"{random.uniform(1, 90000):.2f}"),
        ("latitude", ["lat", "latitude", "lng", "longitude"], ["double precision", "text", "numeric(9,6)"], lambda: f"{random.uniform(-90, 90):.6f}"),
        ("timestamp", ["created_at", "updated", "last_login", "order_date"], ["timestamp", "text", "datetime"], lambda: day().isoformat(" ")),
        ("date", ["order_date", "due", "shipped_on", "date"], ["date", "text"], lambda: day().strftime("%Y-%m-%d")),
        ("product name", ["name", "product_name", "title", "item"], ["text"], lambda: f"{random.choice(COLOURS)} {random.choice(THINGS)}"),
        ("city", ["city", "town", "place", "location"], ["text"], lambda: random.choice(CITIES)),
        ("country", ["country", "country_code", "nation", "region"], ["text"], lambda: random.choice(["US", "DE", "FR", "GB", "Germany", "France"])),
        ("status", ["status", "payment_status", "card_type", "phone_type"], ["text"], lambda: random.choice(["active", "closed", "visa", "mobile", "home"])),
        ("address of a page", ["url", "link", "website", "image"], ["text"], lambda: f"https://www.{faker.last_name().lower()}-shop.org/p/{d(6)}?ref={letters(random, 6)}"),
        ("file name", ["file", "path", "attachment", "image"], ["text"], lambda: f"/srv/data/{letters(random, 5).lower()}/{d(8)}.png"),
        ("slug", ["slug", "key", "code", "tag"], ["text"], lambda: f"{random.choice(negatives.WORDS)}-{random.choice(negatives.WORDS)}-{d(3)}"),
        ("tracking number", ["tracking_number", "shipment", "awb", "parcel"], ["text"], lambda: "1Z" + letters(random, 16, "0123456789" + LETTERS)),
        ("sku", ["sku", "part_no", "article", "model"], ["text"], lambda: f"{letters(random, 3)}-{d(4)}-{letters(random, 2)}"),
        ("percentage", ["rate", "discount", "score", "ratio"], ["real", "text", "float"], lambda: f"{random.random():.4f}"),
        ("invoice number", ["invoice", "invoice_no", "bill_number", "doc_no"], ["text"], lambda: f"INV-{random.randint(2018, 2025)}-{d(6)}"),
        ("phone extension", ["extension", "ext", "desk_no", "room"], ["text", "integer"], lambda: d(4)),
        ("token count", ["token_count", "tokens", "password_attempts", "secret_version"], ["integer", "text"], lambda: str(random.randint(1, 90_000))),
        ("password changed", ["password_changed_at", "token_expires", "pwd_reset_on", "key_created"], ["timestamp", "text"], lambda: day().isoformat(" ")),
        ("token type", ["token_type", "auth_method", "key_type", "secret_name"], ["text"], lambda: random.choice(["bearer", "basic", "oauth2", "refresh", "saml"])),
        ("colour", ["color", "colour", "hex", "background"], ["text"], lambda: "#" + letters(random, 6, negatives.HEX)),
        ("time of day", ["opens", "start_time", "time", "closes"], ["time", "text"], lambda: f"{random.randint(0, 23):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}"),
        ("user agent", ["user_agent", "agent", "browser", "client"], ["text"], lambda: f"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.{d(2)} Chrome/{d(3)}.0.{d(4)}.{d(3)}"),
        ("big random number", ["nonce", "seed", "random", "value"], ["numeric", "text"], lambda: str(start + random.randrange(10**15))),
    ]
    for kind, headers, types, draw in rows:
        for index in range(NEGATIVE):
            yield column(random, headers[index % len(headers)], [draw() for _ in range(300)], None, types, kind=kind)
    for identifier in national.identifiers():
        values = [identifier.broken(random) for _ in range(120)]
        values = [value for value in values if value]
        if len(values) > 100:
            header = random.choice(identifier.keys)
            yield column(random, header, values, None, clean=True, kind="identifier with a broken check digit")


def broken_luhn(random, head, count):
    body = head + digits(random, count - 1 - len(head))
    right = luhn.calc_check_digit(body)
    return body + random.choice([c for c in string.digits if c != right])


COLOURS = "Red Blue Large Small Classic Oak Steel Garden Winter Modern Cotton Premium Basic Soft Round".split()
THINGS = "Chair Table Lamp Jacket Kettle Notebook Cable Sofa Bottle Helmet Carpet Mirror Drill Ladder Vase".split()
CITIES = "Lyon Hamburg Leeds Porto Turin Gdansk Lund Ghent Zurich Graz Dayton Austin Denver Osaka Perth Nice Bergen".split()
