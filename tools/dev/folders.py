#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the includes between folders: a folder of src/ includes only folders before it in ORDER.

usage: folders.py [-v] [SRC]

Prints one line per include that points the wrong way, with -v also the arrows that exist, and exits 1 if there is one.
Besides the order: sub-folders of one folder don't include each other (plug-ins), or are in an order of their own (rooms); nothing includes tools/ or tests/;
public headers are named include/x.h; topology and graphs stay free of sockets, devices and communicators, so that they
can be computed offline. Unit tests (*_test.c, test_*.h) may include anything.
"""
import collections
import pathlib
import re
import sys

ORDER = ["base", "os", "event", "bootstrap", "device", "net", "topo", "graph", "proxy", "transport", "plan", "logs", "answer",
         "channel", "coll", "rma", "tagged", "comm", "api", "koloplan"]
# Rooms of a folder: each includes only those before it. Files of the folder itself may include any, and be included by any.
ROOMS = {"coll": ["schedule", "select", "pipeline", "shm", "zcopy", "algorithms", "engine", "gpu"], "comm": ["diagnosis", "queue", "setup"],
         "net": ["socket", "verbs", "plugin", "collnet"]}  # connections of every net begin over sockets
PURE = {"topo": {"event", "bootstrap", "device", "net"}, "graph": {"event", "bootstrap", "device", "net"}}
TESTS = (("tests", "kolo_test.h"), ("tests", "holdings.h"), ("tests", "hang.h"))
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def plugin(parts):
    """The sub-folder a file of a folder stands in, or None."""
    return parts[1] if len(parts) > 2 else None


def fault(here, there):
    """Why a file `here` may not include `there` (both as parts of a path below src/), or None."""
    if there[0] == "include" and len(there) == 2:
        return None
    if len(there) < 2 or there[0] not in ORDER:
        return "names no folder of src/, nor include/"
    if there[0] in PURE.get(here[0], ()):
        return f"{here[0]}/ is pure: no sockets, devices or communicators"
    if ORDER.index(there[0]) > ORDER.index(here[0]):
        return f"points upward: {here[0]} comes before {there[0]}"
    if there[0] == here[0] and here[0] in ROOMS and plugin(here) and plugin(there):
        rooms = ROOMS[here[0]]
        if plugin(here) not in rooms or plugin(there) not in rooms:
            return f"{here[0]}/ has the rooms {', '.join(rooms)}"
        behind = rooms.index(plugin(there)) > rooms.index(plugin(here))
        return f"points upward: in {here[0]}/, {plugin(here)} comes before {plugin(there)}" if behind else None
    if there[0] == here[0] and plugin(here) and plugin(there) and plugin(here) != plugin(there):
        return f"{here[0]}/{plugin(here)} and {there[0]}/{plugin(there)} are plug-ins and don't know each other"
    return None


def check(src):
    """All faults below src as sentences, and the arrows {(from, to): number of includes}."""
    faults, arrows = [], collections.Counter()
    for file in sorted(p for p in src.rglob("*") if p.suffix in (".c", ".h", ".cu", ".cuh")):
        here = file.relative_to(src).parts
        if file.stem.endswith("_test") or file.stem.startswith("test_"):
            continue
        if here[0] not in ORDER:
            faults.append(f"{file}: {here[0]}/ is not in the order of folders (tools/dev/folders.py)")
            continue
        text = file.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            there = tuple(match.group(1).split("/"))
            why = fault(here, there)
            if there in TESTS:
                break  # shared by tests only
            if why:
                line = text.count("\n", 0, match.start()) + 1
                faults.append(f'{file}:{line}: "{match.group(1)}" {why}')
            elif there[0] not in (here[0], "include"):
                arrows[here[0], there[0]] += 1
    return faults, arrows


def main():
    args = [a for a in sys.argv[1:] if a != "-v"]
    src = pathlib.Path(args[0]) if args else pathlib.Path(__file__).resolve().parents[2] / "src"
    if not src.is_dir():
        sys.exit(f"folders.py: no folder {src}")
    faults, arrows = check(src)
    if "-v" in sys.argv[1:]:
        for (here, there), count in sorted(arrows.items(), key=lambda a: [ORDER.index(f) for f in a[0]]):
            print(f"{here:10} -> {there:10} {count} include(s)")
    print("\n".join(faults) if faults else "every include points the right way")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
