"""Identifiers of Asia, Africa and the Pacific."""

from identifier import LETTERS, Identifier, birth, cut, digits, letters

# Counties and cities of the People's Republic, and of Indonesia, that have long existed.
CHINESE_PLACES = (
    "110101 110108 120101 310101 310115 320102 330102 330106 " "350102 370102 420106 440104 440305 500103 510104 610102"
).split()
INDONESIAN_PLACES = "317101 317301 317405 327301 327304 337401 347101 357801 357803 517102 127101 737101".split()


def korean_business_number(random):
    """The validator leaves the check digit to others: the sum of the weighted digits, and the tens of the last."""
    nine = [int(digit) for digit in f"{random.randint(101, 699)}{random.randint(1, 89):02}{random.randint(1, 9999):04}"]
    weights = [1, 3, 7, 1, 3, 7, 1, 3, 5]
    total = sum(digit * weight for digit, weight in zip(nine, weights, strict=True)) + nine[8] * 5 // 10
    return "".join(map(str, nine)) + str(-total % 10)


def identifiers():
    """Labels first in the local language, then in English."""
    d = digits
    return [
        Identifier(
            "in.aadhaar",
            "in_.aadhaar",
            "en",
            ["Aadhaar number", "Aadhaar", "Aadhaar card no.", "UIDAI number"],
            ["aadhaar", "aadhaar_number", "aadhaar_no"],
            lambda r: r.choice("23456789") + d(r, 11),
            str,
            lambda v: cut(v, 4, 4, 4),
            lambda v: cut(v, 4, 4, 4),
        ),
        Identifier(
            "in.pan",
            "in_.pan",
            "en",
            ["PAN", "PAN card number", "permanent account number"],
            ["pan", "pan_number", "pan_no"],
            lambda r: letters(r, 3) + r.choice("PPPCFH") + letters(r, 1) + d(r, 4) + letters(r, 1),
        ),
        Identifier(
            "in.gstin",
            "in_.gstin",
            "en",
            ["GSTIN", "GST number", "GST registration number"],
            ["gstin", "gst_no", "gst_number"],
            lambda r: f"{r.randint(1, 37):02}"
            + letters(r, 3)
            + r.choice("PCF")
            + letters(r, 1)
            + d(r, 4)
            + letters(r, 1)
            + "1Z"
            + letters(r, 1, "0123456789" + LETTERS),
        ),
        Identifier(
            "in.epic",
            "in_.epic",
            "en",
            ["EPIC number", "voter ID", "voter ID card number", "elector photo identity card"],
            ["epic", "voter_id", "epic_no"],
            lambda r: letters(r, 3) + d(r, 7),
        ),
        Identifier(
            "pk.cnic",
            "pk.cnic",
            "en",
            ["CNIC", "CNIC number", "national identity card number"],
            ["cnic", "cnic_no", "nic"],
            lambda r: r.choice("1234567") + d(r, 12),
            lambda v: cut(v, 5, 7, 1, by="-"),
            lambda v: cut(v, 5, 7, 1, by="-"),
            str,
        ),
        Identifier(
            "cn.ric",
            "cn.ric",
            "zh",
            ["身份证号", "身份证号码", "公民身份号码", "ID card number"],
            ["id_card", "idcard", "id_card_no", "身份证号"],
            lambda r: r.choice(CHINESE_PLACES) + birth(r, "{yyyy}{m:02}{d:02}") + d(r, 3) + r.choice("0123456789X"),
        ),
        Identifier(
            "cn.uscc",
            "cn.uscc",
            "zh",
            ["统一社会信用代码", "社会信用代码", "unified social credit code"],
            ["uscc", "credit_code", "统一社会信用代码"],
            lambda r: "91"
            + r.choice(CHINESE_PLACES)
            + letters(r, 1, "0123456789MA")
            + letters(r, 8, "0123456789ABCDEFGHJKLMNPQRTUWXY")
            + letters(r, 1, "0123456789ABCDEFGHJKLMNPQRTUWXY"),
        ),
        Identifier(
            "jp.in",
            "jp.in_",
            "ja",
            ["マイナンバー", "個人番号", "My Number"],
            ["my_number", "individual_number", "マイナンバー"],
            lambda r: d(r, 12),
            str,
            lambda v: cut(v, 4, 4, 4),
            lambda v: cut(v, 4, 4, 4, by="-"),
        ),
        Identifier(
            "kr.rrn",
            "kr.rrn",
            "ko",
            ["주민등록번호", "주민번호", "resident registration number"],
            ["rrn", "jumin_no", "주민등록번호"],
            lambda r: birth(r, last=1999) + r.choice("12") + d(r, 6),
            lambda v: v[:6] + "-" + v[6:],
            lambda v: v[:6] + "-" + v[6:],
            str,
        ),
        Identifier(
            "kr.brn",
            "kr.brn",
            "ko",
            ["사업자등록번호", "사업자번호", "business registration number"],
            ["brn", "business_no", "사업자등록번호"],
            korean_business_number,
            lambda v: cut(v, 3, 2, 5, by="-"),
            lambda v: cut(v, 3, 2, 5, by="-"),
            str,
        ),
        Identifier(
            "th.pin",
            "th.pin",
            "th",
            ["เลขประจำตัวประชาชน", "เลขบัตรประชาชน", "national ID number"],
            ["national_id", "citizen_id", "เลขบัตรประชาชน"],
            lambda r: r.choice("123458") + d(r, 12),
            str,
            lambda v: cut(v, 1, 4, 5, 2, 1, by="-"),
        ),
        Identifier(
            "my.nric",
            "my.nric",
            "ms",
            ["nombor kad pengenalan", "no. kad pengenalan", "MyKad number", "IC number"],
            ["nric", "no_kp", "mykad", "ic_no"],
            lambda r: birth(r, last=1999) + f"{r.randint(1, 16):02}" + d(r, 4),
            str,
            lambda v: cut(v, 6, 2, 4, by="-"),
            lambda v: cut(v, 6, 2, 4, by="-"),
        ),
        Identifier(
            "id.nik",
            "id.nik",
            "id",
            ["NIK", "nomor induk kependudukan", "nomor KTP"],
            ["nik", "no_ktp", "NIK"],
            lambda r: r.choice(INDONESIAN_PLACES)
            + birth(r, "{d:02}{m:02}{y:02}", last=1999, d=r.choice([0, 40]))
            + "000"
            + r.choice("123456789"),
        ),
        Identifier(
            "vn.mst",
            "vn.mst",
            "vi",
            ["mã số thuế", "MST", "tax code"],
            ["ma_so_thue", "mst", "tax_code"],
            lambda r: "0" + r.choice("123") + d(r, 8),
            str,
            str,
            lambda v: v + "-001",
        ),
        Identifier(
            "au.tfn",
            "au.tfn",
            "en",
            ["TFN", "tax file number"],
            ["tfn", "tax_file_number", "taxFileNumber"],
            lambda r: r.choice("123456789") + d(r, 8),
            str,
            lambda v: cut(v, 3, 3, 3),
            lambda v: cut(v, 3, 3, 3),
        ),
        Identifier(
            "au.abn",
            "au.abn",
            "en",
            ["ABN", "Australian business number"],
            ["abn", "abn_number", "business_number"],
            lambda r: r.choice("123456789") + d(r, 10),
            str,
            lambda v: cut(v, 2, 3, 3, 3),
            lambda v: cut(v, 2, 3, 3, 3),
        ),
        Identifier(
            "nz.ird",
            "nz.ird",
            "en",
            ["IRD number", "IRD no.", "tax number (IRD)"],
            ["ird", "ird_number", "ird_no"],
            lambda r: r.choice(["4", "5", "6", "7", "8", "9", "10", "11", "12", "13"]) + d(r, 7),
            str,
            lambda v: cut(v.rjust(9), 3, 3, 3, by="-").strip(),
        ),
        Identifier(
            "il.idnr",
            "il.idnr",
            "he",
            ["תעודת זהות", "ת.ז.", "מספר זהות", "Teudat Zehut"],
            ["teudat_zehut", "tz", "id_number", "מספר_זהות"],
            lambda r: r.choice("0233") + d(r, 8),
            str,
        ),
        Identifier(
            "za.idnr",
            "za.idnr",
            "en",
            ["ID number", "South African ID number", "RSA ID", "identity number"],
            ["id_number", "sa_id", "rsa_id_number"],
            lambda r: birth(r, last=1999) + d(r, 4) + "08" + d(r, 1),
            str,
            lambda v: cut(v, 6, 4, 2, 1),
        ),
    ]
