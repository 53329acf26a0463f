"""Identifiers of devices and banks, the same everywhere."""

from identifier import Identifier, cut, digits, letters


def imsi(random):
    """Of some operators."""
    operator = random.choice(["310260", "310410", "26201", "20801", "23415", "22288", "44010", "46000"])
    return operator + digits(random, 15 - len(operator))


def identifiers():
    """Labels first in the local language, then in English."""
    d = digits
    return [
        Identifier(
            "IMEI",
            "imei",
            "en",
            ["IMEI", "IMEI number", "device IMEI"],
            ["imei", "device_imei", "imei1"],
            lambda r: "35" + d(r, 13),
            str,
            str,
            lambda v: cut(v, 2, 6, 6, 1, by="-"),
        ),
        Identifier(
            "IMSI",
            "imsi",
            "en",
            ["IMSI", "subscriber IMSI", "IMSI number"],
            ["imsi", "subscriber_imsi", "sim_imsi"],
            imsi,
        ),
        Identifier(
            "MAC_ADDRESS",
            "mac",
            "en",
            ["MAC address", "MAC", "hardware address"],
            ["mac", "mac_address", "hwaddr"],
            lambda r: ":".join(letters(r, 2, "0123456789abcdef") for _ in range(6)),
            str,
            str.upper,
            lambda v: v.replace(":", "-"),
        ),
        Identifier(
            "BIC",
            "bic",
            "en",
            ["BIC", "SWIFT code", "BIC/SWIFT"],
            ["bic", "swift", "swift_code"],
            lambda r: letters(r, 4)
            + r.choice(["DE", "FR", "GB", "US", "CH", "IT", "ES", "NL"])
            + letters(r, 2, "ABCDEFGHJKLMNPQRSTUVWXYZ23456789")
            + r.choice(["", "", "XXX"]),
        ),
    ]
