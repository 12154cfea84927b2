#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A guard without clocks: how many instructions operations take, counted by callgrind.

Two ranks in one thread (tests/instructions.c), so that no thread waits and counts hardly differ from run to run: the least of some windows counts.
tests/data/instructions.json has the counts per operation, of both ranks together, by kind of build and compiler, as they were when they were
last accepted. More than a tenth above that fails; builds, and cases of a build, that are not listed are skipped. KOLO_RENEW=1 writes the counts of this build, to be
looked at before it is kept.
"""
import glob
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import unittest

import tool

BUILD = os.environ["KOLO_BUILD"]
KEPT = "tests/data/instructions.json"
ALLOWED = 1.10
CASES = {  # name: function, bytes, operations in a window, how
    "8 B": ("all_reduce", 8, 100, "alone"),
    "8 B in a group": ("all_reduce", 8, 100, "group"),
    "256 KiB in a group": ("all_reduce", 256 << 10, 4, "group"),  # more may go past the caches, which depends on these
    "broadcast of 8 B": ("broadcast", 8, 100, "alone"),
    "send and receive 8 B": ("send_and_receive", 8, 100, "group"),
}


def build_name():
    """"Release gcc 12"."""
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as file:
        cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.M))
    compiler = cache["CMAKE_C_COMPILER"]
    version = subprocess.run([compiler, "--version"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    name = "clang" if "clang" in version else "gcc"
    return f"{cache['CMAKE_BUILD_TYPE']} {name} {re.search(r'([0-9]+)[.][0-9]+[.][0-9]+', version).group(1)}"


def count(function, size, operations, how):
    """Instructions of one operation."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--separate-threads=yes", "--toggle-collect=window", "--dump-after=window",
                   "--callgrind-out-file=" + os.path.join(folder, "out"), os.path.join(BUILD, "bin", "instructions"), function, str(size), str(operations), how]
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=tool.HANG_S, env=clean, check=False)
        if p.returncode:
            raise AssertionError(f"{command}: exit {p.returncode}: {p.stdout[-2000:]}")
        totals = {}
        for name in glob.glob(os.path.join(folder, "out.*-01")):
            with open(name, encoding="utf-8") as file:
                part, total = re.search(r"^part: (\d+)", text := file.read(), re.M), re.search(r"^totals: (\d+)", text, re.M)
            if part and total:
                totals[int(part.group(1))] = int(total.group(1))
    windows = [t for part, t in sorted(totals.items()) if t][1:]  # the first warms up
    return min(windows) // operations


def kept():
    with open(KEPT, encoding="utf-8") as file:
        return json.load(file)


def keep(build, counts):
    everything = kept() if os.path.exists(KEPT) else {}
    everything[build] = counts
    with open(KEPT, "w", encoding="utf-8") as file:
        file.write(json.dumps(everything, indent=2, sort_keys=True) + "\n")


class Instructions(unittest.TestCase):
    def setUp(self):
        if platform.machine() != "x86_64":
            self.skipTest("instructions are kept for x86_64")
        if not shutil.which("valgrind"):
            self.skipTest("no valgrind")

    def test_operations_take_no_more_than_they_did(self):
        build, renew = build_name(), os.environ.get("KOLO_RENEW")
        if not renew and build not in kept():
            self.skipTest(f"no counts are kept for {build}")
        if renew:
            return keep(build, {name: count(*case) for name, case in CASES.items()})
        before = kept()[build]
        self.assertLessEqual(set(before), set(CASES), f"cases kept in {KEPT}; KOLO_RENEW=1 writes them anew")
        for name, case in CASES.items():
            with self.subTest(name):
                if name not in before:
                    self.skipTest(f"no count is kept for {build}, {name}")
                self.assertLessEqual(count(*case), before[name] * ALLOWED, f"instructions, {name}: {before[name]} are kept in {KEPT}")


if __name__ == "__main__":
    tool.main()
