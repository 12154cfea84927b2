#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Summarise coverage per folder: lines and branches that the tests reached.

usage: coverage.py SUMMARY.json     (of gcovr --json-summary)
"""
import collections
import json
import pathlib
import sys

KEYS = ("line_covered", "line_total", "branch_covered", "branch_total")


def folder(name):
    """src/transport/shm/ring.c -> src/transport"""
    return "/".join(pathlib.PurePath(name).parts[:-1][:2])


def sums(files):
    table = collections.defaultdict(collections.Counter)
    for file in files:
        counts = {key: file[key] for key in KEYS}
        table[folder(file["filename"])].update(counts)
        table["all"].update(counts)
    return table


def percent(part, whole):
    return f"{100 * part / whole:5.1f} %" if whole else "      -"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    table = sums(json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))["files"])
    print(f"{'folder':20} {'lines':>16} {'branches':>16}")
    for name in sorted(table, key=lambda n: (n == "all", n)):
        t = table[name]
        print(f"{name:20} {percent(t['line_covered'], t['line_total'])} of {t['line_total']:5} "
              f"{percent(t['branch_covered'], t['branch_total'])} of {t['branch_total']:5}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
