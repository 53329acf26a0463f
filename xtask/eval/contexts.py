"""Texts around values: sentences in many languages, forms, tables, JSON, SQL, XML and log lines.

A writer knows nothing about detection. Its words are those that documents of a country use for a thing, written down
from general knowledge of such documents; what the product looks for is not consulted.
"""

import datetime
import json

from faker import Faker
from faker.config import AVAILABLE_LOCALES

# Stands for the value in a template; never in a text.
VALUE = "\0"

LOCALES = {
    "en": "en_US",
    "fr": "fr_FR",
    "de": "de_DE",
    "es": "es_ES",
    "pt": "pt_BR",
    "it": "it_IT",
    "nl": "nl_NL",
    "pl": "pl_PL",
    "sv": "sv_SE",
    "no": "no_NO",
    "da": "da_DK",
    "fi": "fi_FI",
    "cs": "cs_CZ",
    "sk": "sk_SK",
    "hu": "hu_HU",
    "ro": "ro_RO",
    "bg": "bg_BG",
    "el": "el_GR",
    "hr": "hr_HR",
    "sl": "sl_SI",
    "et": "et_EE",
    "lv": "lv_LV",
    "lt": "lt_LT",
    "is": "is_IS",
    "tr": "tr_TR",
    "ru": "ru_RU",
    "uk": "uk_UA",
    "zh": "zh_CN",
    "ja": "ja_JP",
    "ko": "ko_KR",
    "th": "th_TH",
    "id": "id_ID",
    "ms": "ms_MY",
    "vi": "vi_VN",
    "he": "he_IL",
}

# `{label}` is what the thing is called, `{name}` a person. Written so that the label needs no article or ending.
SENTENCES = {
    "en": [
        "Please update my {label} to {v} in your records.",
        "Hi {name}, the {label} on file is {v}. Could you confirm that it is right?",
        "{name} gave us {v} as {label} when the account was opened.",
        "We could not process the application because the {label} ({v}) did not match.",
        "The {label} of the applicant is {v}, issued last year.",
        "My {label} is {v} and I moved house in March.",
    ],
    "fr": [
        "Bonjour, mon {label} est le {v}, merci de mettre mon dossier à jour.",
        "Madame, Monsieur, veuillez trouver ci-joint le formulaire de {name} ({label} : {v}).",
        "Le {label} indiqué sur le document est {v}.",
        "Pour toute demande, rappelez votre {label} {v} dans l'objet du courrier.",
    ],
    "de": [
        "Sehr geehrte Damen und Herren, meine {label} lautet {v}.",
        "Bitte geben Sie bei Rückfragen Ihre {label} {v} an.",
        "{name} hat uns als {label} {v} mitgeteilt.",
        "Auf dem Bescheid steht die {label} {v}, das ist falsch.",
    ],
    "es": [
        "Buenos días, mi {label} es {v} y necesito actualizar mis datos.",
        "D. {name}, con {label} {v}, solicita la devolución del importe.",
        "El {label} que figura en el contrato es {v}.",
        "Indique su {label} ({v}) en todas las comunicaciones.",
    ],
    "pt": [
        "Bom dia, o meu {label} é {v}, podem confirmar o cadastro?",
        "{name}, portador do {label} {v}, declara que recebeu o valor.",
        "O {label} informado foi {v}.",
        "Segue o {label} do titular: {v}.",
    ],
    "it": [
        "Buongiorno, il mio {label} è {v}, potete aggiornare la pratica?",
        "Il sottoscritto {name}, {label} {v}, dichiara quanto segue.",
        "Il {label} riportato in fattura è {v}.",
        "Si prega di indicare il {label} {v} nella causale.",
    ],
    "nl": [
        "Goedemiddag, mijn {label} is {v}, kunt u dit aanpassen?",
        "Vermeld bij betaling uw {label} {v}.",
        "Volgens het dossier is het {label} van {name} {v}.",
    ],
    "pl": [
        "Dzień dobry, mój {label} to {v}, proszę o aktualizację danych.",
        "Umowę podpisał(a) {name}, {label} {v}.",
        "W formularzu podano {label} {v}.",
    ],
    "sv": [
        "Hej, mitt {label} är {v} och jag vill ändra mina uppgifter.",
        "Enligt registret har {name} {label} {v}.",
        "Ange {label} {v} vid kontakt med oss.",
    ],
    "no": [
        "Hei, mitt {label} er {v}, kan dere oppdatere dette?",
        "Søknaden gjelder {name}, {label} {v}.",
        "Oppgi {label} {v} når du tar kontakt.",
    ],
    "da": [
        "Hej, mit {label} er {v}, kan I rette det?",
        "Sagen vedrører {name}, {label} {v}.",
        "Oplys venligst {label} {v} ved henvendelse.",
    ],
    "fi": [
        "Hei, minun {label} on {v}, voitteko päivittää tiedot?",
        "Hakija {name}, {label} {v}.",
        "Lomakkeessa ilmoitettu {label} oli {v}.",
    ],
    "cs": [
        "Dobrý den, moje {label} je {v}, prosím o opravu údajů.",
        "Smlouvu uzavřel(a) {name}, {label} {v}.",
        "V žádosti bylo uvedeno {label} {v}.",
    ],
    "sk": [
        "Dobrý deň, moje {label} je {v}, prosím o opravu údajov.",
        "Zmluvu uzavrel(a) {name}, {label} {v}.",
        "V žiadosti bolo uvedené {label} {v}.",
    ],
    "hu": [
        "Tisztelt Ügyfélszolgálat, a {label} {v}, kérem a módosítást.",
        "{name} ügyfelünk által megadott {label}: {v}.",
        "A szerződésben szereplő {label} {v}.",
    ],
    "ro": [
        "Bună ziua, am {label} {v} și doresc actualizarea datelor.",
        "Subsemnatul {name}, {label} {v}, solicit eliberarea adeverinței.",
        "În contract apare {label} {v}.",
    ],
    "bg": [
        "Здравейте, моят {label} е {v}, моля да го актуализирате.",
        "Долуподписаният {name}, {label} {v}, декларирам следното.",
        "В заявлението е посочен {label} {v}.",
    ],
    "el": [
        "Καλημέρα, ο {label} μου είναι {v} και θέλω να ενημερώσω τα στοιχεία μου.",
        "Ο υπογράφων {name}, {label} {v}, δηλώνω τα εξής.",
        "Στην αίτηση αναγράφεται {label} {v}.",
    ],
    "hr": [
        "Dobar dan, moj {label} je {v}, molim ispravak podataka.",
        "Ugovor je sklopljen s osobom {name}, {label} {v}.",
        "U zahtjevu je naveden {label} {v}.",
    ],
    "sl": [
        "Pozdravljeni, moja {label} je {v}, prosim za popravek.",
        "Pogodbo je podpisal(a) {name}, {label} {v}.",
        "Na obrazcu je navedena {label} {v}.",
    ],
    "et": [
        "Tere, minu {label} on {v}, palun uuendage andmeid.",
        "Lepingu sõlmis {name}, {label} {v}.",
        "Taotluses märgitud {label} on {v}.",
    ],
    "lv": [
        "Labdien, mans {label} ir {v}, lūdzu atjauniniet datus.",
        "Līgumu parakstīja {name}, {label} {v}.",
        "Iesniegumā norādīts {label} {v}.",
    ],
    "lt": [
        "Laba diena, mano {label} yra {v}, prašau atnaujinti duomenis.",
        "Sutartį pasirašė {name}, {label} {v}.",
        "Prašyme nurodytas {label} {v}.",
    ],
    "is": [
        "Góðan dag, mín {label} er {v}, vinsamlegast uppfærið skráninguna.",
        "Umsækjandi er {name}, {label} {v}.",
        "Á reikningnum stendur {label} {v}.",
    ],
    "tr": [
        "Merhaba, {label} {v}, bilgilerimi güncelleyebilir misiniz?",
        "Sözleşmeyi imzalayan {name}, {label} {v}.",
        "Formda belirtilen {label}: {v}.",
    ],
    "ru": [
        "Здравствуйте, мой {label} {v}, прошу обновить данные.",
        "Договор заключён с {name}, {label} {v}.",
        "В заявлении указан {label} {v}.",
    ],
    "uk": [
        "Добрий день, мій {label} {v}, прошу оновити дані.",
        "Договір укладено з {name}, {label} {v}.",
        "У заяві зазначено {label} {v}.",
    ],
    "zh": ["您好，我的{label}是{v}，请帮忙更新。", "申请人{name}，{label}：{v}。", "合同上的{label}为 {v} ，请核对。"],
    "ja": [
        "私の{label}は{v}です。登録内容の変更をお願いします。",
        "申請者 {name} 様、{label}：{v}",
        "書類に記載された{label} {v} をご確認ください。",
    ],
    "ko": [
        "제 {label}는 {v}입니다. 정보를 수정해 주세요.",
        "신청인 {name}, {label}: {v}",
        "계약서의 {label} {v} 를 확인해 주세요.",
    ],
    "th": ["{label}ของฉันคือ {v} กรุณาแก้ไขข้อมูล", "ผู้สมัคร {name} {label} {v}", "ตามเอกสาร {label}: {v}"],
    "id": [
        "Selamat siang, {label} saya {v}, mohon diperbarui.",
        "Pemohon atas nama {name} dengan {label} {v}.",
        "Pada formulir tercantum {label}: {v}.",
    ],
    "ms": [
        "Selamat pagi, {label} saya ialah {v}, sila kemas kini rekod.",
        "Pemohon {name}, {label} {v}.",
        "Sila nyatakan {label} {v} dalam surat anda.",
    ],
    "vi": [
        "Xin chào, {label} của tôi là {v}, vui lòng cập nhật.",
        "Người nộp đơn {name}, {label}: {v}.",
        "Trên hợp đồng ghi {label} {v}.",
    ],
    "he": ["שלום, {label} שלי הוא {v}, נא לעדכן.", "המבקש {name}, {label} {v}.", "בטופס מופיע {label}: {v}."],
}


class Kind:
    """A type of values and what documents call it."""

    def __init__(self, name, language, labels, keys, sentences=(), abroad=False):
        self.name = name
        self.language = language
        # As prose has it, in the local language and in English.
        self.labels = labels
        # As columns, fields and settings have it.
        self.keys = keys
        # Sentences that name the thing by themselves, instead of those of the language.
        self.sentences = sentences
        # Whether English texts call it by the same names.
        self.abroad = abroad


class Writer:
    """Puts values into texts. The same generator and values give the same texts."""

    def __init__(self, random, has_names=True):
        self.random = random
        self.has_names = has_names
        self.fakers = {}

    def faker(self, language):
        if language not in self.fakers:
            locale = LOCALES[language]
            self.fakers[language] = Faker(locale if locale in AVAILABLE_LOCALES else "en_US")
            self.fakers[language].seed_instance(self.random.randrange(1 << 32))
        return self.fakers[language]

    def name(self, kind):
        return self.faker(kind.language).name() if self.has_names else f"customer {self.random.randrange(1, 5_000)}"

    def date(self):
        """Of fixed years, so that the texts do not depend on the day they are made."""
        return self.faker("en").date_between(datetime.date(2016, 1, 1), datetime.date(2024, 12, 31))

    def write(self, kind, values):
        """Yields (text, path, spans) until every value has been written once."""
        values = list(values)
        while values:
            writer, share = self.random.choices(WRITERS, [weight for _, _, weight in WRITERS])[0][:2]
            now = [values.pop() for _ in range(min(share, len(values)))]
            template, path = writer(self, kind, len(now))
            yield place(template, now) + (path,)

    def sentence(self, kind, _count):
        label = self.random.choice(kind.labels)
        language = "en" if kind.abroad and self.random.random() < 0.25 else kind.language
        templates = kind.sentences or SENTENCES[language]
        template = self.random.choice(templates)
        return template.format(label=label, name=self.name(kind), v=VALUE), ""

    def form(self, kind, _count):
        label = self.random.choice(kind.labels)
        label = label[0].upper() + label[1:]
        name = self.name(kind)
        date = self.date()
        return (
            self.random.choice(
                [
                    f"{label}: {VALUE}",
                    f"Name: {name}\n{label}: {VALUE}\nDate: {date}\n",
                    f"{name}\n{label}\t{VALUE}\n",
                    f"* {label} = {VALUE}\n* Status: approved\n",
                    f"| {label} | {VALUE} |\n",
                ]
            ),
            "",
        )

    def setting(self, kind, _count):
        key = self.random.choice(kind.keys)
        return self.random.choice(
            [
                (f"{key}: {VALUE}\n", "record.yaml"),
                (f"{key}={VALUE}\n", "import.properties"),
                (f'customer:\n  name: {self.name(kind)}\n  {key}: "{VALUE}"\n  active: true\n', "customer.yaml"),
            ]
        )

    def table(self, kind, count):
        key = self.random.choice(kind.keys)
        separator = self.random.choice([",", ",", ";", "\t"])
        rows = [["id", "name", key, "city", "since"]]
        for _ in range(count):
            number, name = str(self.random.randrange(1, 5_000)), self.name(kind).replace(",", "")
            city = self.faker("en").city()
            rows.append([number, name, VALUE, city, str(self.date())])
        return "".join(separator.join(row) + "\n" for row in rows), "export/customers.csv"

    def object(self, kind, _count):
        key = self.random.choice(kind.keys)
        fields = {"id": self.random.randrange(1, 5_000), "name": self.name(kind), key: VALUE, "active": True}
        indent = self.random.choice([None, 2])
        text = json.dumps(fields, ensure_ascii=False, indent=indent)
        return text.replace("\\u0000", VALUE), "data/customers.json"

    def insert(self, kind, count):
        key = self.random.choice(kind.keys)
        rows = []
        for _ in range(count):
            name = self.name(kind).replace("'", "''")
            rows.append(f"({self.random.randrange(1, 5_000)}, '{name}', '{VALUE}', '{self.faker('en').city()}')")
        return f"INSERT INTO customers (id, name, {key}, city) VALUES\n  " + ",\n  ".join(rows) + ";\n", "dump.sql"

    def element(self, kind, _count):
        key = self.random.choice(kind.keys)
        return (
            self.random.choice(
                [
                    f"<customer><name>{self.name(kind)}</name><{key}>{VALUE}</{key}></customer>",
                    f'<input type="text" name="{key}" value="{VALUE}">',
                    f'<record name="{self.name(kind)}" {key}="{VALUE}"/>',
                ]
            ),
            "feed.xml",
        )

    def log(self, kind, _count):
        key = self.random.choice(kind.keys)
        hour, minute, second = self.random.randrange(24), self.random.randrange(60), self.random.randrange(60)
        time = f"{self.date()}T{hour:02}:{minute:02}:{second:02}"
        return (
            self.random.choice(
                [
                    f"{time} INFO  request handled {key}={VALUE} status=200\n",
                    f"{time} WARN validation: {key} '{VALUE}' already exists\n",
                ]
            ),
            "service.log",
        )


# Each with how many values it takes at once, and its share of the texts.
WRITERS = [
    (Writer.sentence, 1, 40),
    (Writer.form, 1, 18),
    (Writer.setting, 1, 7),
    (Writer.table, 3, 8),
    (Writer.object, 1, 10),
    (Writer.insert, 2, 6),
    (Writer.element, 1, 6),
    (Writer.log, 1, 5),
]


def place(template, values):
    """The text with its values in their places, and where they are, in characters."""
    first, *rest = template.split(VALUE)
    text, spans = first, []
    for value, after in zip(values, rest, strict=True):
        spans.append((len(text), len(text) + len(value)))
        text += value + after
    return text, spans
