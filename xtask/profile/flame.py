"""Draws what `perf script` prints as a flame graph: every box is a function, as wide as its share of all samples,
standing on its caller.

    perf record -e cpu-clock -F 999 --call-graph dwarf,16384 -o perf.data -- domesday scan <path> --state <new> --quiet
    perf script -i perf.data | python3 xtask/profile/flame.py "<title>" > docs/flamegraph.svg
"""

import html
import re
import sys

WIDTH = 1200
ROW = 17
LETTER = 6.6
# A narrower box, in pixels, is not drawn.
LEAST = 3.0
# Threads are told apart by what they do, not by their number.
NUMBER = re.compile(r"[-:/0-9]+$")


class Node:
    def __init__(self):
        self.samples = 0
        self.callees = {}


def short(symbol):
    """A function's name without its generic parts, its hash and most of its path."""
    symbol = re.sub(r"\+0x[0-9a-f]+.*$", "", symbol)
    symbol = re.sub(r"::h[0-9a-f]{16}$", "", symbol)
    while (bare := re.sub(r"<[^<>]*>", "", symbol)) != symbol:
        symbol = bare
    parts = [part for part in symbol.split("::") if part and part != "{{closure}}"]
    return "::".join(parts[-2:]) or symbol


def read(lines):
    root = Node()
    stack, thread = [], None
    for line in lines:
        line = line.rstrip("\n")
        if not line:
            if thread is not None:
                add(root, [thread] + stack[::-1])
            stack, thread = [], None
        elif not line[0].isspace():
            thread = NUMBER.sub("", line.split()[0])
        else:
            symbol = line.split(None, 1)[1].rsplit(" (", 1)[0]
            name = short(symbol)
            # Closures and wrappers of one function are one box.
            if name != "[unknown]" and (not stack or stack[-1] != name):
                stack.append(name)
    if thread is not None:
        add(root, [thread] + stack[::-1])
    return root


def add(node, stack):
    node.samples += 1
    for name in stack:
        node = node.callees.setdefault(name, Node())
        node.samples += 1


def depth(node, scale):
    below = [depth(callee, scale) for callee in node.callees.values() if callee.samples * scale >= LEAST]
    return 1 + max(below, default=0)


def draw(name, node, left, level, height, scale, total):
    width = node.samples * scale
    if width < LEAST:
        return
    top = height - (level + 1) * ROW
    shade = sum(map(ord, name)) % 50
    share = 100 * node.samples / total
    print(f'<g><title>{html.escape(name)}, {share:.1f} %</title>')
    print(f'<rect x="{left:.1f}" y="{top}" width="{max(width - 0.5, 0.3):.1f}" height="{ROW - 1}" '
          f'fill="rgb({220 - shade // 3},{120 + 2 * shade},{60 + shade})"/>')
    room = int((width - 4) / LETTER)
    if room >= 3:
        text = name if len(name) <= room else name[:room - 1] + "…"
        print(f'<text x="{left + 3:.1f}" y="{top + 12}">{html.escape(text)}</text>')
    print('</g>')
    for callee, below in sorted(node.callees.items()):
        draw(callee, below, left, level + 1, height, scale, total)
        left += below.samples * scale


def main():
    root = read(sys.stdin)
    if not root.samples:
        sys.exit("no samples: pipe the output of `perf script` into this")
    title = sys.argv[1] if len(sys.argv) > 1 else "all samples"
    scale = WIDTH / root.samples
    height = (depth(root, scale) + 1) * ROW
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
          f'font-family="monospace" font-size="11">')
    print(f'<rect width="{WIDTH}" height="{height}" fill="white"/>')
    draw(title, root, 0.0, 0, height, scale, root.samples)
    print("</svg>")


main()
