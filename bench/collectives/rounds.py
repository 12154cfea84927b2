# SPDX-License-Identifier: Apache-2.0
"""Rounds of measurements in turns: who starts changes from round to round, and who cannot be the best is let go."""
import json
import os
import signal
import subprocess
import sys
import time

import peers

HOPELESS = 1.5  # a peer that took longer than so many times the best one's is not measured again at this row
SLICES = [8 << 10, 2 << 20, 1 << 60]  # sizes of one start of a program, so that all get a row within seconds
TRIAL_S = 15  # for a start of who spins with more ranks than cores: each piece of a message may take a time slice
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
    """Its lines, and what was wrong: "" or a sentence."""
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


class Rounds:
    def __init__(self, bench, scratch, ms, out=sys.stderr):
        self.bench, self.scratch, self.ms, self.out = bench, scratch, ms, out
        self.times = {}  # (op, np, size) -> config -> "us" or "fresh" -> [microseconds, one for each round]
        self.dropped = {}  # (op, np, size) -> config -> why
        self.problems = []
        self.rows = []
        self.foreign = []  # shares of the machine that others took, one for each start

    def cell(self, row, config):
        return self.times.setdefault(row, {}).setdefault(config, {"us": [], "fresh": []})

    def start(self, config, np, rows, fresh):
        """One program measures these rows, all of `np` ranks."""
        words = ["--name", config, "--ms", str(self.ms), *(["--fresh"] if fresh else [])]
        spins = peers.spins(config, np)
        limit = TRIAL_S + 2e-3 * self.ms * len(rows) if spins else 60 + 3 * len(rows)
        names = [f"{op}:{size}" for op, _, size in rows]
        command = self.bench.command(config, np, self.scratch) + words + names
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
                self.dropped.setdefault(row, {})[config] = "wrong results"
                continue
            self.cell(row, config)["fresh" if fresh else "us"].append(r["us"])
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
            self.dropped.setdefault(row, {})[config] = wrong

    def drop_hopeless(self):
        for row, configs in self.times.items():
            took = {c: min(t["us"]) for c, t in configs.items() if t["us"] and not peers.is_kolo(c)}
            for config, us in took.items():
                if us > HOPELESS * min(took.values()):
                    self.dropped.setdefault(row, {}).setdefault(config, f"{us / min(took.values()):.1f} times the best peer")

    def run_round(self, number, rows, configs, fresh=False):
        turn = number % len(configs)
        for np in sorted({r[1] for r in rows}):
            for low, high in zip([0, *SLICES], SLICES):
                part = [r for r in rows if r[1] == np and low < r[2] <= high]
                for config in configs[turn:] + configs[:turn]:
                    mine = [r for r in part if config not in self.dropped.get(r, {})]
                    if mine:
                        self.start(config, np, mine, fresh)

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
            self.drop_hopeless()
            longest = time.monotonic() - began if number < 2 else max(longest, time.monotonic() - began)
        if fresh:
            print("# round of fresh inputs", file=self.out)
            self.run_round(0, rows, configs, True)
