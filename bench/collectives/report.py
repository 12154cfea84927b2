# SPDX-License-Identifier: Apache-2.0
"""Report of the times: rows with the best peer of each, a table, and a summary."""
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


def pick(known, configs, key, failed, regime):
    """config -> its times within the regime; for a wanted config that was only measured in the other one, its times there."""
    wanted = known.wanted(configs, key, failed, regime)
    some = {c: known.within(t[key], regime) or (t[key] if c in wanted or peers.is_kolo(c) else []) for c, t in configs.items()}
    return {c: [m["us"] for m in measured] for c, measured in some.items() if measured}


def best(took):
    """(us, name) of the best peer, or None."""
    medians = [(statistics.median(us), c) for c, us in took.items() if not peers.is_kolo(c)]
    return min(medians) if medians else None


def compare(row, configs, known, failed, key):
    """Fills in the results of times with inputs as they are ("us"), or fresh ones ("fresh")."""
    prefix = "" if key == "us" else "fresh_"
    regime = known.best_for(configs, key, failed)
    took = pick(known, configs, key, failed, regime)
    found = best(took)
    missing = known.missing(configs, key, failed, regime)
    row[prefix + "peer"] = {"us": found[0], "name": found[1], "spread": spread(took[found[1]])} if found else None
    row[prefix + "cores"] = regime
    for config, us in took.items():
        one = row["kolo" if peers.is_kolo(config) else "peers"][config]
        one[prefix + "us"], one[prefix + "spread"] = statistics.median(us), spread(us)
        if found and peers.is_kolo(config):
            one[prefix + "ratio"] = found[0] / one[prefix + "us"]
            one[prefix + "apart"] = config in missing or any(not peers.is_kolo(c) for c in missing)


def make_rows(times, failed, known):
    """A dictionary for each (op, np, size), in that order."""
    rows = []
    for (op, np, size), configs in sorted(times.items()):
        row, lost = {"op": op, "np": np, "size": size, "kolo": {}, "peers": {}}, failed.get((op, np, size), {})
        for config, t in sorted(configs.items()):
            row["kolo" if peers.is_kolo(config) else "peers"][config] = {
                "us": None, "spread": None, "rounds": [m["us"] for m in t["us"]], "exchange_ns": [m["exchange_ns"] for m in t["us"]]}
        compare(row, configs, known, lost, "us")
        compare(row, configs, known, lost, "fresh")
        row["dropped"] = {**known.hopeless(configs, row["cores"]), **lost}
        rows.append(row)
    return rows


def ratios(rows, config, key="ratio"):
    return [(r["kolo"][config][key], r) for r in rows if key in r["kolo"].get(config, {})]


def is_apart(row, config, key="ratio"):
    """Whether times of different regimes were compared."""
    return row["kolo"][config].get(key.replace("ratio", "apart"), False)


def is_any_apart(row):
    return any(is_apart(row, config, key) for config in row["kolo"] for key in ("ratio", "fresh_ratio"))


def figure(value):
    return "-" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def ratio_text(row, config, key="ratio"):
    one = row["kolo"].get(config, {})
    return figure(one.get(key)) + ("*" if one and is_apart(row, config, key) else "")


def cores_text(row):
    """Of fresh inputs behind a slash, where it is another regime."""
    other = row["fresh_cores"] if row["fresh_peer"] and row["fresh_cores"] != row["cores"] else ""
    return f"{row['cores']}{'/' if other else ''}{other}"


def table(rows, configs, regimes_seen):
    """Lines, worst rows first, by the times of the first config."""
    first, *others = configs
    two = len(regimes_seen) > 1
    lines = [f"{'operation':<15}{'np':>3} {'size':>8} {first + ' us':>12} {'peer us':>10} {'ratio':>6} {'spread':>11} {'fresh':>6}  "
             f"{'cores    ' if two else ''}{'best peer':<16}" + "".join(f" {c.removeprefix('kolo-') + ' us (ratio)':>22}" for c in others)]
    for row in sorted(rows, key=lambda r: r["kolo"].get(first, {}).get("ratio", 0)):
        mine, peer = row["kolo"].get(first, {}), row["peer"]
        spreads = f"{100 * (mine.get('spread') or 0):.0f}%/{100 * (peer['spread'] if peer else 0):.0f}%"
        line = (f"{row['op']:<15}{row['np']:>3} {size_text(row['size']):>8} {figure(mine.get('us')):>12} {figure(peer and peer['us']):>10} "
                f"{ratio_text(row, first):>6} {spreads:>11} {ratio_text(row, first, 'fresh_ratio'):>6}  "
                f"{format(cores_text(row), '<9') if two else ''}{peer['name'] if peer else '-':<16}")
        for other in others:
            line += f" {figure(row['kolo'].get(other, {}).get('us')) + ' (' + ratio_text(row, other) + ')':>22}"
        lines.append(line)
    return lines


def line_of(label, rows, config, key="ratio"):
    pairs = ratios(rows, config, key)
    alike = [p for p in pairs if not is_apart(p[1], config, key)]
    apart = [v for v, r in pairs if is_apart(r, config, key)]
    rest = f"; * {sum(v >= 1 for v in apart)} of {len(apart)} ahead" if apart else ""
    if not alike:
        return f"{label:<44} {'not measured' if not apart else 'not measured within one regime'}{rest}"
    values = sorted(v for v, _ in alike)
    worst = min(alike, key=lambda p: p[0])[1]
    ahead = sum(v >= 1 for v in values)
    return (f"{label:<44} {ahead} of {len(values)} rows ahead, median {statistics.median(values):.2f}, worst {values[0]:.2f} "
            f"({worst['op']}, {worst['np']} ranks, {size_text(worst['size'])}){rest}")


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
                share, mark = 1 / one["ratio"], "*" if is_apart(row, config) else ""
                lines.append(f"   {np} ranks, {config:<12} {share:5.2f}{mark} of {row['peer']['name']} (wanted: {bar}) {'' if share <= bar else 'MISSED'}")
    return lines


def summary(rows):
    large = [r for r in rows if r["size"] >= 64 << 10]
    lines = [line_of(f"1. processes, {c}", rows, c) for c in ("kolo-inline", "kolo-sync", "kolo")]
    lines += [line_of(f"   processes, {c}", rows, c) for c in ("kolo-staged", "kolo-copied") if ratios(rows, c)]
    lines += [line_of("   fresh inputs, kolo", rows, "kolo", "fresh_ratio")]
    lines += [line_of(f"2. from 64 KiB, {c}", large, c) for c in ("kolo-alloc", "kolo-register", "kolo-alloc-inline") if ratios(large, c)]
    lines += [line_of("   threads of one process", rows, "kolo-threads")]
    apart = sum(map(is_any_apart, rows))
    if apart:
        lines += [f"*  {apart} of {len(rows)} rows: Kolo and the peers that may be the best were not all measured with cores equally far apart"]
    return lines + ["3. latency of all_reduce, 8 B:"] + latency(rows)
