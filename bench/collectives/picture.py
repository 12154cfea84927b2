# SPDX-License-Identifier: Apache-2.0
"""The ratios as SVG: best peer / Kolo over the size, a panel for each operation and number of ranks."""
import html
import math

import report

WIDTH, HEIGHT, LEFT, TOP = 230, 150, 44, 58
COLOURS = ["#0b6e4f", "#c1440e", "#2b59c3", "#8a4fbf", "#b58900", "#586e75"]
LOW, HIGH = -2, 5  # powers of two of the ratio


def x_of(size, sizes):
    return 8 + (WIDTH - 36) * (sizes.index(size) / max(1, len(sizes) - 1))


def y_of(ratio):
    power = min(HIGH, max(LOW, math.log2(ratio)))
    return (HEIGHT - 40) * (HIGH - power) / (HIGH - LOW)


def panel(title, rows, configs, sizes):
    bottom = HEIGHT - 40
    out = [f'<text x="0" y="-8" class="title">{html.escape(title)}</text>',
           f'<rect width="{WIDTH - 20}" height="{bottom}" class="frame"/>']
    for power in range(LOW, HIGH + 1):
        y = y_of(2.0**power)
        out.append(f'<line x1="0" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" class="{"one" if not power else "grid"}"/>')
        out.append(f'<text x="-4" y="{y + 3:.1f}" class="tick" text-anchor="end">{2.0**power:g}</text>')
    for size in sizes[:: max(1, len(sizes) // 4)]:
        out.append(f'<text x="{x_of(size, sizes):.1f}" y="{bottom + 12}" class="tick" text-anchor="middle">{report.size_text(size)}</text>')
    for config, colour in zip(configs, COLOURS):
        points = [(x_of(r["size"], sizes), y_of(v)) for v, r in report.ratios(rows, config)]
        if points:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>' for x, y in points]
    return out


def draw(rows, configs, caption):
    ops = list(dict.fromkeys(r["op"] for r in rows))
    nps = sorted({r["np"] for r in rows})
    sizes = sorted({r["size"] for r in rows})
    width, height = LEFT + WIDTH * len(nps), TOP + HEIGHT * len(ops)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
           "<style>text{font:11px sans-serif;fill:#222}.title{font-weight:bold}.tick{font-size:9px;fill:#555}"
           ".frame{fill:#fff;stroke:#999}.grid{stroke:#e4e4e4}.one{stroke:#222;stroke-dasharray:4 2}</style>",
           f'<rect width="{width}" height="{height}" fill="#fafafa"/>',
           f'<text x="10" y="16" class="title">{html.escape(caption)}</text>']
    for i, (config, colour) in enumerate(zip(configs, COLOURS)):
        out.append(f'<text x="{10 + 130 * i}" y="34" style="fill:{colour}">{html.escape(config)}</text>')
    for line, op in enumerate(ops):
        for column, np in enumerate(nps):
            some = [r for r in rows if r["op"] == op and r["np"] == np]
            out.append(f'<g transform="translate({LEFT + WIDTH * column},{TOP + HEIGHT * line})">')
            out += panel(f"{op}, {np} ranks", some, configs, sizes)
            out.append("</g>")
    return "\n".join(out + ["</svg>\n"])
