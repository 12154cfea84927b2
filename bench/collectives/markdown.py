#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables for docs/performance.md, from what runs of the benchmark left.

usage: markdown.py RUN.json [RUN.json ...]     times of the first run, ratios of all
"""
import json
import sys

import bars
import report

MODE = "kolo"


def found(run, op, np, size):
    row = report.find(run["rows"], op, np, size)
    return row if row and row["kolo"].get(MODE, {}).get("us") and row["peer"] else None


def cells(runs, op, np, size):
    """Kolo's time, that of the best peer, and the ratio in each run."""
    rows = [found(run, op, np, size) for run in runs]
    if not rows[0]:
        return ["-", "-", "-"]
    values = [r["kolo"][MODE]["ratio"] for r in rows if r]
    text = ", ".join(report.figure(v) for v in values)
    return [report.figure(rows[0]["kolo"][MODE]["us"]), f"{report.figure(rows[0]['peer']['us'])} {rows[0]['peer']['name']}",
            text if min(values) >= 1 else f"**{text}**"]


def operation(runs, op):
    nps = sorted({r["np"] for r in runs[0]["rows"]})
    sizes = sorted({r["size"] for r in runs[0]["rows"]})
    lines = [f"### {op}", "", "| size |" + "".join(f" {np} ranks: Kolo us | best peer us | ratio |" for np in nps),
             "|---:|" + "---:|---|---:|" * len(nps)]
    for size in sizes:
        line = [c for np in nps for c in cells(runs, op, np, size)]
        lines.append(f"| {report.size_text(size)} | " + " | ".join(line) + " |")
    return lines + [""]


def summaries(runs):
    lines = []
    for i, run in enumerate(runs):
        lines += [f"Run {i + 1}: {run['machine']}, {run['date']}, {run['minutes']:.0f} minutes.", "", "```"]
        lines += report.summary(run["rows"]) + (bars.text(run["alone"]) if run["alone"] else []) + ["```", ""]
    return lines


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    runs = []
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            runs.append(json.load(file))
    lines = summaries(runs)
    for op in dict.fromkeys(r["op"] for r in runs[0]["rows"]):
        lines += operation(runs, op)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
