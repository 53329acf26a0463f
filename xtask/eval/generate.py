"""Prints generated texts, one JSON object a line: `values` with labelled spans, or `negatives` with nothing in them;
or `columns` of tables.

Run by `cargo xtask eval` in a virtual environment with what requirements.txt names. The same seed and versions give
the same texts. docs/evaluation.md says what is measured with them.
"""

import argparse
import json
import random
import sys

import columns
import headline
import national
import negatives
from contexts import Writer

# Values of each national identifier.
VALUES = 200


def values(writer, rng):
    for name, text, spans, path in headline.texts(writer, rng):
        yield labelled(name, text, spans, path)
    for identifier in national.identifiers():
        drawn = [identifier.value(rng) for _ in range(VALUES)]
        for text, spans, path in writer.write(identifier, drawn):
            yield labelled(identifier.name, text, spans, path)


def labelled(name, text, spans, path):
    spans = [{"type": name, "start": start, "end": end, "value": text[start:end]} for start, end in spans]
    return {"text": text, "spans": spans, "path": path}


def nothing(writer, rng):
    for kind, text, path in negatives.texts(writer, rng):
        yield {"kind": kind, "text": text, "path": path}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["values", "negatives", "columns"])
    parser.add_argument("--seed", type=int, required=True)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    # A name would be something.
    lines = {
        "values": lambda: values(Writer(rng), rng),
        "negatives": lambda: nothing(Writer(rng, has_names=False), rng),
        "columns": lambda: columns.columns(Writer(rng), rng),
    }[arguments.what]()
    for line in lines:
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
