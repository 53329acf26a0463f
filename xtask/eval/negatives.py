"""Texts that have nothing in them, and look as if they had."""

import base64
import hashlib
import re

import national
from contexts import Kind
from identifier import LETTERS, digits, letters
from stdnum import ean, iban, isbn, luhn

# Texts of each kind, and of each identifier whose check digit is broken.
TEXTS = 150
BROKEN = 4

HEX = "0123456789abcdef"
BASE64 = LETTERS + LETTERS.lower() + "0123456789+/"
WORDS = (
    "account amount buffer client color count data delay device driver entry error event field file flag group handle "
    "height index item key label layer length limit list map mode name node offset page path point port queue range "
    "record result rule scale session size state status step table target time token total type unit update user value "
    "version width window"
).split()

# What stands for something random in a template, such as `<hex:8>` or `<upto:255>`.
PLACE = re.compile(r"<(\w+)(?::(\d+))?>")


def drawn(random, what, size):
    """What a place of a template becomes; none for what only looks like one, such as an element of XML."""
    if what in hashlib.algorithms_guaranteed:
        return hashlib.new(what, random.randbytes(12)).hexdigest()
    made = {
        "word": lambda: random.choice(WORDS),
        "WORD": lambda: random.choice(WORDS).upper(),
        "var": lambda: random.choice(LETTERS.lower()),
        "digits": lambda: digits(random, size),
        "upto": lambda: str(random.randint(0, size)),
        "hex": lambda: letters(random, size, HEX),
        "HEX": lambda: letters(random, size, HEX.upper()),
        "base": lambda: letters(random, size, BASE64),
        "base64": lambda: base64.b64encode(random.randbytes(size)).decode(),
        "png": lambda: base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + random.randbytes(size)).decode(),
        "uuid": lambda: uuid(random),
        "UUID": lambda: uuid(random).upper(),
        "epoch": lambda: str(random.randint(1_000_000_000, 1_800_000_000)),
        "float": lambda: f"{random.uniform(-180, 180):.{random.randint(3, 15)}f}",
        "degrees": lambda: f"{random.uniform(-80, 80):.6f}",
        "version": lambda: f"{random.randint(0, 20)}.{random.randint(0, 30)}.{random.randint(0, 40)}",
        "year": lambda: str(random.randint(2018, 2025)),
        "tracking": lambda: letters(random, size, "0123456789" + LETTERS),
        "LETTERS": lambda: letters(random, size),
        "isbn": lambda: with_check_digit("978" + digits(random, 9)),
        "ISBN": lambda: isbn.format(with_check_digit("978" + digits(random, 9))),
        "ean": lambda: with_check_digit("40" + digits(random, 10)),
    }.get(what)
    return made and made()


def fill(random, template):
    return PLACE.sub(lambda place: drawn(random, place[1], int(place[2] or 0)) or place[0], template)


def uuid(random):
    raw = letters(random, 32, HEX)
    return f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-{random.choice('89ab')}{raw[17:20]}-{raw[20:]}"


def with_check_digit(twelve):
    number = twelve + ean.calc_check_digit(twelve)
    assert ean.is_valid(number)
    return number


# By kind: templates and the files they would be in.
TEMPLATES = {
    "epoch": [
        ('{"created_at": <epoch>, "updated_at": <epoch>}', "events.json"),
        ('{"ts":<epoch><digits:3>,"level":"info","msg":"<word> done"}', "app.log"),
        ("<epoch>.<digits:6> <word> <word> took <upto:900> ms", "trace.log"),
        ("INSERT INTO jobs VALUES (<upto:9999>, <epoch>, <epoch>, 'done');", "dump.sql"),
        ("at <epoch><digits:9> ns the <word> was full", ""),
    ],
    "GUID": [
        ('{"id": "<uuid>", "parent": "<uuid>"}', "tree.json"),
        ('[assembly: Guid("<UUID>")]', "AssemblyInfo.cs"),
        ("request_id=<uuid> status=200 duration=<upto:900>ms", "access.log"),
        ("UUID=<uuid> /home ext4 defaults 0 2", "fstab"),
        ("The correlation id is <uuid>.", ""),
        ("{<UUID>} = {<UUID>}", "solution.sln"),
    ],
    "hash, commit": [
        ("md5: <md5>", "release.txt"),
        ("sha256: <sha256>", "release.txt"),
        ("SHA512 (<word>.iso) = <sha512>", "CHECKSUM"),
        ("SHA384: <sha384>", "release.txt"),
        ("commit <sha1>\nAuthor: A U Thor\n\n    Fix the <word>\n", ""),
        ("Merged in <hex:10>, reverted in <hex:12>.", ""),
        ("FROM debian@sha256:<sha256>", "Dockerfile"),
        ('"etag": "<md5>"', "cache.json"),
        ("index <hex:7>..<hex:7> 100644", "change.patch"),
    ],
    "checksum file": [
        ("<md5>  <word>-<version>.tar.gz\n" * 6, "MD5SUMS"),
        ("<sha256>  <word>-<version>.tar.gz\n" * 6, "SHA256SUMS"),
        ("<sha512>  <word>-<version>.tar.gz\n" * 6, "SHA512SUMS"),
    ],
    "lock file": [
        (
            '    "node_modules/<word>-<word>": {\n      "version": "<version>",\n'
            '      "integrity": "sha512-<base64:64>",\n      "license": "MIT"\n    },',
            "package-lock.json",
        ),
        ('<word>@^<version>:\n  version "<version>"\n  integrity sha512-<base64:64>\n', "yarn.lock"),
        ('[[package]]\nname = "<word>"\nversion = "<version>"\nchecksum = "<sha256>"\n', "Cargo.lock"),
        ("github.com/<word>/<word> v<version> h1:<base64:32>\n", "go.sum"),
        ("<word>==<version> \\\n    --hash=sha256:<sha256>\n", "requirements.txt"),
        ('"hashes": [\n    "sha256:<sha256>"\n],\n"version": "==<version>"\n', "Pipfile.lock"),
    ],
    "version, build": [
        ("Version <version> fixes the <word>.", ""),
        ("<word> <upto:9>.<upto:9>.<upto:9999>.<upto:99999>", "about.txt"),
        ("Chrome/<upto:120>.0.<upto:6000>.<upto:200> Safari/537.<upto:40>", "access.log"),
        ('AssemblyVersion("<upto:9>.<upto:9>.<upto:9>.<upto:9>")', "AssemblyInfo.cs"),
        ("build <year>1<digits:1>0<digits:1>.<upto:40> succeeded", "ci.log"),
        ("Build number: <digits:6>", ""),
        ("Build number: <digits:9>", ""),
        ("linux-image-<version>-<upto:40>-amd64 (<version>-<upto:3>)", ""),
        ("firmware v<upto:9>.<digits:2>.<digits:3>.<digits:4>", ""),
        ("OID 1.3.6.1.4.1.<upto:60000>.<upto:9>.<upto:9>.<upto:9>", "device.mib"),
        ("see section <upto:9>.<upto:9>.<upto:9>.<upto:9> of the specification", ""),
    ],
    "float, coordinate": [
        ("static const double table[] = { <float>, <float>, <float>, <float> };", "table.c"),
        ("<float>,<float>,<float>\n<float>,<float>,<float>\n", "series.csv"),
        ("loss=<float> acc=0.<digits:14> lr=<upto:9>.<digits:3>e-05", "train.log"),
        ("vertex <float> <float> <float>", "mesh.stl"),
        ('<path d="M<float> <float>L<float> <float>C<float>,<float> <float>,<float> <float>,<float>Z"/>', "icon.svg"),
        ("assert_close(area, <float>, 1e-9)", "geometry_test.py"),
        ("matrix(0.<digits:8>, 0, 0, 0.<digits:8>, <float>, <float>)", "style.css"),
        ("let lat = <degrees>; let lon = <degrees>;\n", "map.rs"),
    ],
    "colour, hex constant": [
        ("body { color: #<hex:6>; background: #<hex:6>; border: 1px solid #<hex:6> }", "style.css"),
        ('palette = ["#<hex:6>", "#<hex:6>", "#<hex:6>", "#<hex:6>"]', "plot.py"),
        ('<color name="<word>">#<HEX:8></color>', "colors.xml"),
        ("0x<hex:8>, 0x<hex:8>, 0x<hex:8>, 0x<hex:8>", "data.h"),
    ],
    "base64 image": [
        ("background: url(data:image/png;base64,<png:300>);", "style.css"),
        ('<img src="data:image/png;base64,<png:700>" alt="<word>">', "page.html"),
        ("Content-Type: image/png\nContent-Transfer-Encoding: base64\n\n" + "<base64:57>\n" * 9, "message.eml"),
        ('{"icon": "<png:400>", "name": "<word>"}', "icons.json"),
    ],
    "ISBN, EAN": [
        ("ISBN <ISBN>", ""),
        ("ISBN-13: <isbn>, second edition", "catalogue.txt"),
        ("EAN;<ean>;<word>;<upto:99>,90", "articles.csv"),
        ('{"gtin": "<ean>", "name": "<word>", "stock": <upto:900>}', "articles.json"),
        ("<book><isbn13><isbn></isbn13></book>", "books.xml"),
        ("Barcode <ean> scanned twice", ""),
    ],
    "source code": [
        (
            "static const struct <word>_ops <word>_<word> = {\n"
            "\t.<word> = <word>_<word>,\n\t.flags = 0x<hex:8>,\n};\n",
            "driver.c",
        ),
        ("#define <WORD>_MAGIC 0x<hex:16>ULL\n#define <WORD>_MAX <digits:10>\n", "limits.h"),
        (
            "def <word>_password(self, password):\n    if not password:\n"
            "        raise ValueError('password is required')\n    return self.<word>.check(password)\n",
            "auth.py",
        ),
        (
            "const token = await this.<word>Service.getToken(user.<word>Id);\n"
            "if (!token) throw new Error('no token');\n",
            "service.ts",
        ),
        ("password = os.environ[\"<WORD>_PASSWORD\"]\napi_key = config.get('<word>', 'api_key')\n", "settings.py"),
        (
            'String secret = System.getenv("<WORD>_SECRET");\n'
            'private static final String TOKEN_HEADER = "X-<word>-Token";\n',
            "Config.java",
        ),
        (
            "spring.datasource.password=${<WORD>_PASSWORD}\n<word>.token={{ vault_<word>_token }}\n",
            "application.properties",
        ),
        (
            "  password: {{ .Values.<word>.password }}\n  secretKeyRef:\n    name: <word>-secret\n    key: password\n",
            "deployment.yaml",
        ),
        (
            'variable "<word>_password" {\n  type      = string\n  sensitive = true\n}\n'
            "password = var.<word>_password\n",
            "main.tf",
        ),
        ("    mov     eax, 0x<hex:8>\n    cmp     edx, <digits:9>\n    jne     .L<upto:99>\n", "start.s"),
        ("expect(format(<digits:10>)).toBe('<digits:1>,<digits:3>,<digits:3>,<digits:3>');\n", "format.test.js"),
        ("[<digits:5>.<digits:6>] <word> <word>: irq <upto:90> mem 0x<hex:12>-0x<hex:12>\n", "dmesg.log"),
        ('<input type="password" name="password" placeholder="Enter your password">', "login.html"),
        ("<T> Result<T> <word>(List<T> in, Map<String, T> <word>);\n", "Util.java"),
    ],
}

# Pieces of minified code, of which a text has many.
MINIFIED = [
    "function <var>(<var>,<var>){return <var>.<word>(<var>,<digits:5>)}",
    "var <var>=<digits:9>,<var>=[<digits:3>,<digits:10>,<digits:7>,<digits:1>];",
    '<var>.<word>=<var>||"<hex:12>",',
    "!function(<var>){<var>.<word>Key=function(){return <var>.token||<var>.password}}(<var>),",
    '"<base:20>"===<var>.type&&<var>(),',
    't.exports={<word>:"<word>",passwordField:"<word>"};',
]

NUMBERS_OF_BUSINESS = [
    "<digits:6>",
    "<digits:8>",
    "<digits:9>",
    "<digits:10>",
    "<digits:12>",
    "<digits:15>",
    "<digits:18>",
    "INV-<year>-<digits:6>",
    "1Z<tracking:16>",
    "<digits:4> <digits:4> <digits:4> <digits:8>",
    "<LETTERS:2><digits:9><LETTERS:2>",
    "<digits:3>-<digits:7>-<digits:7>",
    "SO<digits:8>",
    "<digits:6>/24",
    "<LETTERS:3>-<digits:5>-<LETTERS:2>",
]


def from_templates(random, templates):
    for _ in range(TEXTS):
        template, path = random.choice(templates)
        yield fill(random, template), path


def minified(random):
    for _ in range(TEXTS // 2):
        yield "".join(fill(random, random.choice(MINIFIED)) for _ in range(30)), "app.min.js"


def numbers_of_business(random, writer):
    kind = Kind(
        "order",
        "en",
        ["order number", "invoice number", "tracking number", "reference", "ticket", "booking", "part number"],
        ["order_id", "invoice_no", "tracking_number", "reference", "sku", "ticket_id", "shipment_id"],
    )
    values = [fill(random, random.choice(NUMBERS_OF_BUSINESS)) for _ in range(TEXTS)]
    for text, _, path in writer.write(kind, values):
        yield text, path


def broken_check_digits(random, writer):
    card = Kind("card", "en", ["card number", "credit card"], ["card_number", "cc_number"])
    cards = [random.choice("345") + digits(random, 15) for _ in range(TEXTS)]
    account = Kind("IBAN", "en", ["IBAN", "bank account"], ["iban", "account"])
    accounts = [random.choice(["DE", "ES"]) + digits(random, 20) for _ in range(TEXTS)]
    broken = [
        (card, [number for number in cards if not luhn.is_valid(number)]),
        (account, [number for number in accounts if not iban.is_valid(number)]),
    ]
    for identifier in national.identifiers():
        values = [identifier.broken(random) for _ in range(BROKEN)]
        broken.append((identifier, [value for value in values if value]))
    for kind, values in broken:
        for text, _, path in writer.write(kind, values):
            yield text, path


def texts(writer, random):
    """Yields (kind, text, path)."""
    kinds = {
        "broken check digit": broken_check_digits(random, writer),
        "order, invoice, tracking": numbers_of_business(random, writer),
        "minified code": minified(random),
    }
    kinds |= {kind: from_templates(random, templates) for kind, templates in TEMPLATES.items()}
    for kind, made in kinds.items():
        for text, path in made:
            yield kind, text, path
