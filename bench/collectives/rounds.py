# SPDX-License-Identifier: Apache-2.0
"""Rounds of measurements in turns: the first config changes from round to round; configs that cannot be the best are dropped."""
import collections
import json
import os
import signal
import subprocess
import sys
import time

import peers
import regimes

SLICES = [8 << 10, 2 << 20, 1 << 60]  # sizes of one start of a program, so that all get a row within seconds
FURTHER = 3  # how often a slice is tried again for rows that were not measured with cores equally far apart
TRIAL_S = 15  # for a start of configs that spin with more ranks than cores: each piece of a message may take a time slice
NO_END = "no end within"
TRIAL_ENDED = "it spins with more ranks than cores"


def cpu_busy():
    """Seconds that the machine's CPUs worked so far."""
    with open("/proc/stat") as file:
        t = [int(x) for x in file.readline().split()[1:9]]
    return (sum(t) - t[3] - t[4]) / os.sysconf("SC_CLK_TCK")


def end_program(child):
    """Its output. A launcher ends its ranks itself if asked to; they may be in groups of their own."""
    os.killpg(child.pid, signal.SIGTERM)
    try:
        return child.communicate(timeout=5)[0]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return child.communicate()[0]


def run_program(command, limit, env):
    """Its lines, and the error: "" or a sentence."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=env,
                             start_new_session=True)
    wrong = ""
    try:
        out, err = child.communicate(timeout=limit)
        if child.returncode:
            wrong = f"exit status {child.returncode}: {err.strip().splitlines()[-1] if err.strip() else 'no message'}"
    except subprocess.TimeoutExpired:
        out = end_program(child)
        wrong = f"{NO_END} {limit:.0f} s"
    return [json.loads(line) for line in out.splitlines() if line.startswith("{") and line.endswith("}")], wrong


def slices(rows):
    """(number of ranks, largest size, rows), the smallest first."""
    for np in sorted({r[1] for r in rows}):
        for low, high in zip([0, *SLICES], SLICES):
            yield np, high, [r for r in rows if r[1] == np and low < r[2] <= high]


class Rounds:
    def __init__(self, bench, scratch, ms, out=sys.stderr, busy=None):
        """`busy`: (session, loops) that every program is measured beside (busy.sh), None: alone."""
        self.bench, self.scratch, self.ms, self.out, self.busy = bench, scratch, ms, out, busy
        self.times = {}  # (op, np, size) -> config -> "us" or "fresh" -> [measurement (regimes.py), one for each round or try]
        self.failed = {}  # (op, np, size) -> config -> why: not measured again
        self.problems = []
        self.rows = []
        self.latest = None  # measurement
        self.tries = collections.Counter()  # (np, largest size of a slice, fresh): how often that was tried again
        self.foreign = []  # shares of the machine that others took, one for each start

    def cell(self, row, config):
        return self.times.setdefault(row, {}).setdefault(config, {"us": [], "fresh": []})

    def start(self, config, np, rows, fresh):
        """One program measures these rows, if there are any, all of `np` ranks."""
        if not rows:
            return
        words = ["--name", config, "--ms", str(self.ms), *(["--fresh"] if fresh else [])]
        spins = peers.spins(config, np)
        limit = TRIAL_S + 2e-3 * self.ms * len(rows) if spins else 60 + 3 * len(rows)
        names = [f"{op}:{size}" for op, _, size in rows]
        command = peers.beside(self.busy, self.bench.command(config, np, self.scratch) + words + names)
        busy, began, own = cpu_busy(), time.monotonic(), os.times()
        results, wrong = run_program(command, limit, peers.environment(config))
        if spins and wrong.startswith(NO_END):
            wrong = f"{TRIAL_ENDED}, {wrong}: left out there and at larger sizes"
        wall, then = time.monotonic() - began, os.times()
        mine = then.children_user + then.children_system - own.children_user - own.children_system
        self.foreign.append(max(0.0, (cpu_busy() - busy - mine) / (wall * os.cpu_count())))
        for r in results:
            row = (r["op"], r["np"], r["size"])
            if r["wrong"]:
                wrong = f"{row}: {r['wrong']:.0f} wrong elements"
                self.failed.setdefault(row, {})[config] = "wrong results"
                continue
            self.latest = {key: r[key] for key in ("us", "mean", "p99", "exchange_ns", "mixed")}
            self.cell(row, config)["fresh" if fresh else "us"].append(self.latest)
        if wrong:
            self.problems.append(f"{config}, {np} ranks: {wrong}")
            print(f"# {self.problems[-1]}", file=self.out)
            self.give_up(config, np, rows, {(r["op"], r["np"], r["size"]) for r in results}, wrong)

    def give_up(self, config, np, rows, seen, wrong):
        """A peer is not measured again in rows without a result, nor in larger sizes where it had only a trial."""
        if peers.is_kolo(config):
            return
        lost = [r for r in rows if r not in seen]
        if wrong.startswith(TRIAL_ENDED):
            largest = max(size for _, _, size in rows)
            lost += [r for r in self.rows if r[1] == np and r[2] > largest]
        for row in lost:
            self.failed.setdefault(row, {})[config] = wrong

    def regimes(self):
        return regimes.Regimes(m for configs in self.times.values() for cell in configs.values() for key in cell for m in cell[key])

    def now(self, known):
        """The regime of the last measurement."""
        return known.of(self.latest) if self.latest else None

    def worth_it(self, config, part):
        """Rows where the peer may be the best in the regime of now. Beside busy programs one measurement says too little to let it go."""
        if self.busy:
            return [r for r in part if config not in self.failed.get(r, {})]
        known = self.regimes()
        now = self.now(known)
        return [r for r in part if config not in self.failed.get(r, {}) and config not in known.hopeless(self.times.get(r, {}), now)]

    def try_again(self, np, part, configs, fresh):
        """Measure rows again that lack one common regime: the configs without the current one. False: there are none."""
        key, known = "fresh" if fresh else "us", self.regimes()

        def place(row):
            return self.times.get(row, {}), key, self.failed.get(row, {})
        left = [r for r in part if not known.comparable(*place(r))]
        for config in configs:
            now = self.now(known) or known.names[0]
            self.start(config, np, [r for r in left if config in known.missing(*place(r), now)], fresh)
        return bool(left)

    def settle(self, np, high, part, configs, fresh):
        while not self.busy and self.tries[np, high, fresh] < FURTHER and self.try_again(np, part, configs, fresh):
            self.tries[np, high, fresh] += 1

    def run_round(self, number, rows, configs, fresh=False):
        turn = number % len(configs)
        order = configs[turn:] + configs[:turn]
        for np, high, part in slices(rows):
            for config in order:
                if self.busy and peers.spins(config, np):
                    continue
                self.start(config, np, self.worth_it(config, part), fresh)
            self.settle(np, high, part, order, fresh)

    def run(self, count, rows, configs, minutes, fresh):
        """As many rounds of `count` as are thought to fit into the time, one at least; then one of fresh inputs if asked for."""
        end, longest = time.monotonic() + 60 * minutes, 0
        self.rows = rows
        for number in range(count):
            began = time.monotonic()
            if number and began + longest * (2 if fresh else 1) > end:
                self.problems.append(f"{number} of {count} rounds: the others would not end within {minutes:g} minutes")
                break
            print(f"# round {number + 1} of {count}", file=self.out)
            self.run_round(number, rows, configs)
            longest = time.monotonic() - began if number < 2 else max(longest, time.monotonic() - began)
        if fresh:
            print("# round of fresh inputs", file=self.out)
            self.run_round(0, rows, configs, True)
        for np, high, part in slices(rows):  # rows that seemed alike before the second regime was met
            for kind in [False, True] if fresh else [False]:
                self.settle(np, high, part, configs, kind)
