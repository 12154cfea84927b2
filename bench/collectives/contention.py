# SPDX-License-Identifier: Apache-2.0
"""Summary of times measured beside busy programs: median, mean and 99th percentile of blocks, each beside the best peer's."""
import json
import os
import statistics

import peers
import report

KEYS = {"us": "median", "mean": "mean", "p99": "99th percentile"}


def middle(measured):
    """The medians over rounds of each figure."""
    return {key: statistics.median(m[key] for m in measured) for key in KEYS} if measured else None


def make_rows(times):
    rows = []
    for (op, np, size), configs in sorted(times.items()):
        took = {c: middle(t["us"]) for c, t in configs.items() if t["us"]}
        best = {key: min(((t[key], c) for c, t in took.items() if not peers.is_kolo(c)), default=None) for key in KEYS}
        ratios = {c: {key: best[key][0] / t[key] for key in KEYS if best[key]} for c, t in took.items() if peers.is_kolo(c)}
        rows.append({"op": op, "np": np, "size": size, "took": took, "best": best, "ratio": ratios})
    return rows


def figures(took):
    return "/".join(report.figure(took[key]) for key in KEYS) if took else "-"


def table(rows, configs):
    """Lines: median/mean/p99 in us of each configuration; of the peers the best in each figure."""
    lines = [f"{'operation':<15}{'np':>3} {'size':>8} {'best peer':>24} " + "".join(f" {c + ' (ratios)':>44}" for c in configs)]
    for row in rows:
        best = "/".join(report.figure(row["best"][key] and row["best"][key][0]) for key in KEYS)
        line = f"{row['op']:<15}{row['np']:>3} {report.size_text(row['size']):>8} {best:>24} "
        for c in configs:
            ratios = "/".join(report.figure(v) for v in row["ratio"].get(c, {}).values())
            line += f" {figures(row['took'].get(c)) + ' (' + ratios + ')':>44}"
        lines.append(line)
    return lines


def summary(rows, configs):
    lines = []
    for c in configs:
        for key, name in KEYS.items():
            values = sorted(((row["ratio"][c][key], row) for row in rows if key in row["ratio"].get(c, {})), key=lambda v: v[0])
            if not values:
                continue
            worst = values[0][1]
            lines.append(f"{c:<14} {name:<16} {sum(v >= 1 for v, _ in values)} of {len(values)} rows ahead, under 0.5: {sum(v < 0.5 for v, _ in values)}, "
                         f"median {statistics.median(v for v, _ in values):.2f}, worst {values[0][0]:.2f} "
                         f"({worst['op']}, {worst['np']} ranks, {report.size_text(worst['size'])})")
    return lines


def finish(r, facts, busy, configs, out):
    """Prints the table, keeps all in contention.json below `out`; the exit status."""
    rows = make_rows(r.times)
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "contention.json"), "w") as file:
        json.dump({**facts, "busy": {"session": busy[0], "loops": busy[1]}, "rows": rows}, file, indent=1)
    print(f"# {facts['machine']}; {facts['minutes']} minutes; beside {busy[1]} busy loops, session: {busy[0]}; us: median/mean/99th percentile of blocks")
    print("\n".join(table(rows, configs)))
    for problem in facts["problems"]:
        print("# " + problem)
    print("\n".join(summary(rows, configs)))
    return 1 if any(p.startswith("kolo") for p in r.problems) else 0
