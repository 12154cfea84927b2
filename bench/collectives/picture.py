# SPDX-License-Identifier: Apache-2.0
"""The ratios as SVG: the best peer's time over Kolo's against the size, a panel for each operation and number of ranks."""
import html
import math

import peers
import report

WIDTH, HEIGHT, LEFT, TOP = 270, 190, 62, 96
PLOT_W, PLOT_H = WIDTH - 44, HEIGHT - 64
SHOWN = ["kolo-inline", "kolo"]  # modes, each with a colour and a mark of its own
COLOURS = ["#2b59c3", "#c1440e", "#0b6e4f", "#8a4fbf", "#b58900"]
LOW, HIGH = -2, 5  # powers of two of the ratio


def x_of(size, sizes):
    return 8 + (PLOT_W - 16) * (sizes.index(size) / max(1, len(sizes) - 1))


def y_of(ratio):
    power = min(HIGH, max(LOW, math.log2(ratio)))
    return PLOT_H * (HIGH - power) / (HIGH - LOW)


def mark(number, x, y, colour):
    if number % 2:
        return f'<rect x="{x - 2.4:.1f}" y="{y - 2.4:.1f}" width="4.8" height="4.8" fill="{colour}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>'


def axes(sizes):
    out = [f'<rect width="{PLOT_W}" height="{PLOT_H}" class="frame"/>']
    for power in range(LOW, HIGH + 1):
        y = y_of(2.0**power)
        out.append(f'<line x1="0" x2="{PLOT_W}" y1="{y:.1f}" y2="{y:.1f}" class="{"one" if not power else "grid"}"/>')
        out.append(f'<text x="-5" y="{y + 3:.1f}" class="tick" text-anchor="end">{2.0**power:g}</text>')
    for size in sizes[:: max(1, (len(sizes) + 3) // 4)]:
        x = x_of(size, sizes)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{PLOT_H}" y2="{PLOT_H + 3}" class="stroke"/>')
        out.append(f'<text x="{x:.1f}" y="{PLOT_H + 13}" class="tick" text-anchor="middle">{report.size_text(size)}</text>')
    out.append(f'<text x="{PLOT_W / 2:.0f}" y="{PLOT_H + 26}" class="axis" text-anchor="middle">bytes of the operation</text>')
    out.append(f'<text transform="translate(-34 {PLOT_H / 2:.0f}) rotate(-90)" class="axis" text-anchor="middle">best peer / Kolo</text>')
    return out


def panel(title, rows, configs, sizes):
    out = [f'<text x="0" y="-8" class="title">{html.escape(title)}</text>', *axes(sizes)]
    for number, (config, colour) in enumerate(zip(configs, COLOURS)):
        points = [(x_of(r["size"], sizes), y_of(v)) for v, r in report.ratios(rows, config)]
        if points:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.4"/>')
            out += [mark(number, x, y, colour) for x, y in points]
    return out


def legend(configs):
    """A line for each mode: texts of any length do not meet."""
    out = []
    for number, (config, colour) in enumerate(zip(configs, COLOURS)):
        y = 50 + 16 * number
        text = f"{config}: {peers.KOLO_TEXT.get(config, config)}"
        out += [mark(number, 16, y - 4, colour), f'<text x="26" y="{y}" style="fill:{colour}">{html.escape(text)}</text>']
    return out


def draw(rows, configs, machine):
    ops = list(dict.fromkeys(r["op"] for r in rows))
    nps = sorted({r["np"] for r in rows})
    sizes = sorted({r["size"] for r in rows})
    top = TOP + 16 * max(0, len(configs) - 2)
    width, height = LEFT + WIDTH * len(nps), top + HEIGHT * len(ops)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
           "<style>text{font:11px sans-serif;fill:#222}.title{font-weight:bold}.tick{font-size:9px;fill:#555}.axis{font-size:9.5px;fill:#333}"
           ".frame{fill:#fff;stroke:#999}.grid{stroke:#e4e4e4}.one{stroke:#222;stroke-dasharray:4 2}.stroke{stroke:#999}</style>",
           f'<rect width="{width}" height="{height}" fill="#fafafa"/>',
           "<text x=\"10\" y=\"16\" class=\"title\">Time of the best peer over Kolo's: above 1 Kolo is faster</text>",
           f'<text x="10" y="32">{html.escape(machine)}</text>', *legend(configs)]
    for line, op in enumerate(ops):
        for column, np in enumerate(nps):
            some = [r for r in rows if r["op"] == op and r["np"] == np]
            out.append(f'<g transform="translate({LEFT + WIDTH * column},{top + HEIGHT * line})">')
            out += panel(f"{op}, {np} ranks", some, configs, sizes)
            out.append("</g>")
    return "\n".join(out + ["</svg>\n"])
