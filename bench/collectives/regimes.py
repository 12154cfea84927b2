# SPDX-License-Identifier: Apache-2.0
"""How far apart the cores were: one regime, or near and far where a run saw both. Times compare within a regime only.

A measurement is {"us", "exchange_ns", "mixed"} as measure.h has them; `configs` is a row's entry of Rounds.times.
"""
import math
import statistics

import peers

ALIKE = 2  # distances within such a factor are one regime
HOPELESS = 1.5  # a peer that took longer than so many times the best one's is not measured again at this row in this regime
HOPELESS_ELSEWHERE = 10  # nor in the other one


def border(values):
    """The distance between near and far, in the middle of the widest gap. None: they are alike."""
    values = sorted(values)
    if not values or values[-1] <= ALIKE * values[0]:
        return None
    _, low, high = max((high / low, low, high) for low, high in zip(values, values[1:]))
    return math.sqrt(low * high)


def has_distance(m):
    return bool(m["exchange_ns"]) and not m["mixed"]


class Regimes:
    """The regimes of a run, from all its measurements."""

    def __init__(self, measurements):
        self.all = list(measurements)
        self.border = border([m["exchange_ns"] for m in self.all if has_distance(m)])
        self.names = ["near", "far"] if self.border else ["alike"]

    def of(self, m):
        """None: it belongs to none."""
        if not self.border:
            return "alike"
        return self.names[m["exchange_ns"] > self.border] if has_distance(m) else None

    def within(self, measurements, regime):
        return [m for m in measurements if self.of(m) == regime]

    def hopeless(self, configs, regime):
        """peer -> why: it cannot become the best in this regime. Peers are not in the same order in both."""
        found = {}
        for name in self.names:
            within = {c: self.within(t["us"], name) for c, t in configs.items() if not peers.is_kolo(c)}
            took = {c: min(m["us"] for m in some) for c, some in within.items() if some}
            bar = (HOPELESS if name == regime else HOPELESS_ELSEWHERE) * min(took.values(), default=0)
            found.update({c: f"{us / min(took.values()):.1f} times the best peer" for c, us in took.items() if us > bar})
        return found

    def wanted(self, configs, key, failed, regime):
        """The configs that a ratio in this regime needs: Kolo, and the peers that may be the best. None if one of both is missing."""
        out = {*failed, *self.hopeless(configs, regime)}
        there = [c for c, t in configs.items() if t[key] and c not in out]
        return there if len({peers.is_kolo(c) for c in there}) == 2 else []

    def missing(self, configs, key, failed, regime):
        """The wanted configs that were not measured in this regime."""
        return [c for c in self.wanted(configs, key, failed, regime) if not self.within(configs[c][key], regime)]

    def comparable(self, configs, key, failed):
        return any(not self.missing(configs, key, failed, regime) for regime in self.names)

    def best_for(self, configs, key, failed):
        """The regime with the most of Kolo's modes beside all peers that are wanted; else with most of Kolo, then of these peers."""
        def merit(regime):
            missing = self.missing(configs, key, failed, regime)
            there = [c for c in self.wanted(configs, key, failed, regime) if c not in missing]
            modes = sum(map(peers.is_kolo, there))
            complete = all(map(peers.is_kolo, missing))
            return modes * complete, modes, len(there), sum(len(self.within(t[key], regime)) for t in configs.values())
        return max(self.names, key=merit)

    def facts(self):
        """For each regime its distance and its share of all measurements, for collectives.json."""
        found = {}
        for name in self.names:
            ns = [m["exchange_ns"] for m in self.within(self.all, name) if has_distance(m)]
            if ns:
                found[name] = {"ns": statistics.median(ns), "share": len(ns) / len(self.all)}
        return found


def text(facts):
    """One line; of two regimes also their shares. `facts` may come from a run that knew nothing of them."""
    if not facts:
        return "cores: distance not known"
    if len(facts) == 1:
        return f"cores: {next(iter(facts.values()))['ns']:.0f} ns apart"
    near, far = facts["near"], facts["far"]
    line = f"cores: {near['ns']:.0f} ns apart in {100 * near['share']:.0f} % of measurements, {far['ns']:.0f} ns in {100 * far['share']:.0f} %"
    rest = 1 - near["share"] - far["share"]
    return line + (f", changing or not known in {100 * rest:.0f} %" if rest >= 0.005 else "")
