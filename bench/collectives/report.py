# SPDX-License-Identifier: Apache-2.0
"""What the times say: rows with the best peer of each, a table, and a summary."""
import statistics

import peers


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def spread(values):
    """Of the rounds, as a share of their median."""
    return (max(values) - min(values)) / statistics.median(values) if len(values) > 1 else 0.0


def best(configs, key):
    """(us, name) of the best peer, or None."""
    took = [(statistics.median(t[key]), c) for c, t in configs.items() if t[key] and not peers.is_kolo(c)]
    return min(took) if took else None


def make_rows(times, dropped):
    """A dictionary for each (op, np, size), in that order."""
    rows = []
    for (op, np, size), configs in sorted(times.items()):
        row = {"op": op, "np": np, "size": size, "kolo": {}, "peers": {}, "dropped": dropped.get((op, np, size), {})}
        for key, label in (("us", "peer"), ("fresh", "fresh_peer")):
            found = best(configs, key)
            row[label] = {"us": found[0], "name": found[1], "spread": spread(configs[found[1]][key])} if found else None
        for config, t in sorted(configs.items()):
            one = {"us": statistics.median(t["us"]) if t["us"] else None, "spread": spread(t["us"]) if t["us"] else None, "rounds": t["us"]}
            if t["fresh"]:
                one["fresh_us"] = statistics.median(t["fresh"])
            if peers.is_kolo(config):
                if row["peer"] and one["us"]:
                    one["ratio"] = row["peer"]["us"] / one["us"]
                if row["fresh_peer"] and t["fresh"]:
                    one["fresh_ratio"] = row["fresh_peer"]["us"] / one["fresh_us"]
                row["kolo"][config] = one
            else:
                row["peers"][config] = one
        rows.append(row)
    return rows


def ratios(rows, config, key="ratio"):
    return [(r["kolo"][config][key], r) for r in rows if key in r["kolo"].get(config, {})]


def figure(value):
    return "-" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def table(rows, configs):
    """Lines, worst rows first: those of the first of the configs count."""
    first, *others = configs
    lines = [f"{'operation':<15}{'np':>3} {'size':>8} {first + ' us':>12} {'peer us':>10} {'ratio':>6} {'spread':>11} {'fresh':>6}  "
             f"{'best peer':<16}" + "".join(f" {c.removeprefix('kolo-') + ' us (ratio)':>22}" for c in others)]
    for row in sorted(rows, key=lambda r: r["kolo"].get(first, {}).get("ratio", 0)):
        mine, peer = row["kolo"].get(first, {}), row["peer"]
        spreads = f"{100 * (mine.get('spread') or 0):.0f}%/{100 * (peer['spread'] if peer else 0):.0f}%"
        line = (f"{row['op']:<15}{row['np']:>3} {size_text(row['size']):>8} {figure(mine.get('us')):>12} {figure(peer and peer['us']):>10} "
                f"{figure(mine.get('ratio')):>6} {spreads:>11} {figure(mine.get('fresh_ratio')):>6}  {peer['name'] if peer else '-':<16}")
        for other in others:
            one = row["kolo"].get(other, {})
            line += f" {figure(one.get('us')) + ' (' + figure(one.get('ratio')) + ')':>22}"
        lines.append(line)
    return lines


def line_of(label, pairs):
    if not pairs:
        return f"{label:<44} not measured"
    values = sorted(v for v, _ in pairs)
    worst = min(pairs, key=lambda p: p[0])[1]
    ahead = sum(v >= 1 for v in values)
    return (f"{label:<44} {ahead} of {len(values)} rows ahead, median {statistics.median(values):.2f}, worst {values[0]:.2f} "
            f"({worst['op']}, {worst['np']} ranks, {size_text(worst['size'])})")


def find(rows, op, np, size):
    return next((r for r in rows if (r["op"], r["np"], r["size"]) == (op, np, size)), None)


def latency(rows):
    """Kolo's time as a share of the best peer's: the smaller, the better."""
    lines = []
    for np, configs, bar in ((2, ["kolo-inline"], 0.8), (2, ["kolo-sync"], 1.0), (4, ["kolo", "kolo-sync", "kolo-inline"], 0.9),
                             (8, ["kolo", "kolo-sync", "kolo-inline"], 0.9)):
        row = find(rows, "all_reduce", np, 8)
        for config in configs:
            one = row and row["kolo"].get(config, {})
            if one and "ratio" in one:
                share = 1 / one["ratio"]
                lines.append(f"   {np} ranks, {config:<12} {share:5.2f} of {row['peer']['name']} (wanted: {bar}) {'' if share <= bar else 'MISSED'}")
    return lines


def summary(rows):
    large = [r for r in rows if r["size"] >= 64 << 10]
    lines = [line_of(f"1. processes, {c}", ratios(rows, c)) for c in ("kolo", "kolo-sync", "kolo-inline")]
    lines += [line_of(f"   processes, {c}", ratios(rows, c)) for c in ("kolo-staged", "kolo-copied") if ratios(rows, c)]
    lines += [line_of("   fresh inputs, kolo", ratios(rows, "kolo", "fresh_ratio"))]
    lines += [line_of(f"2. from 64 KiB, {c}", ratios(large, c)) for c in ("kolo-alloc", "kolo-register", "kolo-alloc-inline")
              if ratios(large, c)]
    lines += [line_of("   threads of one process", ratios(rows, "kolo-threads"))]
    return lines + ["3. latency of all_reduce, 8 B:"] + latency(rows)
