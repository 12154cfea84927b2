#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables for docs/performance-tables.md, from the results of the benchmark's runs.

usage: markdown.py RUN.json [RUN.json ...]     times of the first run, ratios of all
"""
import json
import sys

import bars
import regimes
import report

MODE = "kolo-inline"


def found(run, op, np, size):
    row = report.find(run["rows"], op, np, size)
    return row if row and row["kolo"].get(MODE, {}).get("us") and row["peer"] else None


def cells(runs, op, np, size):
    """Kolo's time, the best peer's, and the ratio in each run."""
    rows = [found(run, op, np, size) for run in runs]
    if not rows[0]:
        return ["-", "-", "-"]
    values = [r["kolo"][MODE]["ratio"] for r in rows if r]
    text = ", ".join(report.ratio_text(r, MODE).replace("*", "\\*") + ("†" if r.get("cores") == "far" else "") for r in rows if r)
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
        lines += [f"Run {i + 1}: {run['machine']}, {run['date']}, {run['minutes']:.0f} minutes{cores(run)}.", "", "```"]
        lines += report.summary(run["rows"]) + (bars.text(run["alone"]) if run["alone"] else []) + ["```", ""]
    return lines


def cores(run):
    return f", {regimes.text(run['cores'])}" if run.get("cores") else ""


def legend(runs):
    marked = [r for run in runs for r in run["rows"] if r["kolo"].get(MODE)]
    lines = ["†: measured while the cores were far apart; elsewhere they were near."] if any(r.get("cores") == "far" for r in marked) else []
    if any(report.is_apart(r, MODE) for r in marked):
        lines += ["\\*: Kolo and the peers that may be the best were not all measured with cores equally far apart."]
    return lines + [""] if lines else []


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    runs = []
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            runs.append(json.load(file))
    lines = summaries(runs) + legend(runs)
    for op in dict.fromkeys(r["op"] for r in runs[0]["rows"]):
        lines += operation(runs, op)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
