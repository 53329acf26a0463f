"""National identifiers: random values of the public format, each confirmed by its module of python-stdnum.

A row says how digits and letters are drawn; whatever the validator refuses is drawn again. So the check digits are
always the validator's, and nothing of it is repeated here.
"""

import importlib

from contexts import Kind

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
CONSONANTS = "BCDFGHJKLMNPQRSTVWXYZ"
# Drawings before a row is taken for wrong.
DRAWINGS_MAX = 2_000_000
# Digits that are changed before a value is taken for one without a check digit.
BREAKINGS_MAX = 20


def digits(random, count):
    return "".join(random.choice("0123456789") for _ in range(count))


def letters(random, count, of=LETTERS):
    return "".join(random.choice(of) for _ in range(count))


def birth(random, form="{y:02}{m:02}{d:02}", first=1945, last=2004, **shift):
    """A date of birth; `shift` adds to its parts, as some countries do for women or for a century."""
    year, month, day = random.randint(first, last), random.randint(1, 12), random.randint(1, 28)
    parts = {"yyyy": year, "y": year % 100, "m": month + shift.get("m", 0), "d": day + shift.get("d", 0)}
    return form.format(**parts)


def cut(value, *lengths, by=" "):
    """The value in groups."""
    groups, at = [], 0
    for length in lengths:
        groups.append(value[at : at + length])
        at += length
    return by.join(groups + ([value[at:]] if at < len(value) else []))


class Identifier(Kind):
    """`draw` gives candidates, `forms` the ways a value is written."""

    def __init__(self, name, module, language, labels, keys, draw, *forms, check=None):
        super().__init__(name, language, labels, keys, abroad=True)
        self.module = importlib.import_module("stdnum." + module)
        self.draw, self.forms = draw, forms or (str,)
        self.check = check or self.module.is_valid

    def compact(self, random):
        for _ in range(DRAWINGS_MAX):
            value = self.draw(random)
            if self.check(value):
                return value
        raise SystemExit(f"{self.name}: nothing that was drawn is valid")

    def value(self, random):
        written = random.choice(self.forms)(self.compact(random))
        assert self.check(self.core(written)), (self.name, written)
        return written

    def core(self, written):
        """What the validator is asked about."""
        return written

    def broken(self, random):
        """A value of the same form that the validator refuses, by one digit; none where it has no check digit."""
        form = random.choice(self.forms)
        for _ in range(BREAKINGS_MAX):
            value = self.compact(random)
            places = [i for i, c in enumerate(value) if c.isdigit()][-4:]
            if not places:
                return None
            at = random.choice(places)
            value = value[:at] + random.choice("0123456789") + value[at + 1 :]
            if not self.module.is_valid(value):
                return form(value)
        return None
