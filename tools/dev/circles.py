#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that no files of src/, tools/kolo/ and compat/ need each other in a circle.

usage: circles.py BUILD      look at the objects of a build tree; one line per circle, exit 1 if there is one

A *file* is a .c together with the .h of its name. File A needs file B when

  - A.c calls a function or uses a variable that B.c defines (read from the object files), or
  - A.h can't be read without B.h: it includes it, or a header without a .c that does.

Includes of A.c do not count: an interface may be implemented by several files, and plug-ins know the table that
lists them. A circle is printed as its files, and the names that each needs of the next:

    topo/topo.c -> topo/builder.c -> topo/topo.c (kl_builder_finish; kl_topo_free)

Each arrow that is part of a circle shows in the shortest one through it. Files that are one concept may need each other: ONE_CONCEPT.
"""
import collections
import pathlib
import re
import sys

import objects

ONE_CONCEPT = [
    # A team of ranks on GPUs, and its ranks in other processes.
    {"src/coll/gpu/team_life.c", "src/coll/gpu/far.c"},
    # A stream wakes the executor, and the executor runs streams.
    {"src/device/host/stream.c", "src/device/host/executor.c"},
    # The log has parameters, and problems of parameters are logged.
    {"src/base/log.c", "src/base/log_config.c", "src/base/param.c", "src/base/param_report.c"},
    # Threads of a block wait at barriers and in warps, which these end; and a thread that ends readies others there.
    {"compat/cuda/engine/block.c", "compat/cuda/engine/barrier.c", "compat/cuda/engine/warp.c"},
    # Graphs have nodes, nodes have work, and work may be graphs.
    {"compat/cuda/runtime/graph.c", "compat/cuda/runtime/node.c", "compat/cuda/runtime/work.c"},
    # The function that looks in the table of all functions is in it.
    {"compat/cuda/driver/entry_point.c", "compat/cuda/driver/entry_points.c"},
]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def includes(root, header):
    """The project's headers that a header includes, as paths from the root."""
    for name in INCLUDE.findall((root / header).read_text(encoding="utf-8")):
        for place in (f"src/{name}", name):
            if (root / place).is_file():
                yield place
                break


def headers_needed(root, source):
    """The files with headers that a file's header can't be read without, each with its include line."""
    todo, seen = [source[:-2] + ".h"], set()
    while todo:
        header = todo.pop()
        if header in seen or not (root / header).is_file():
            continue
        seen.add(header)
        for other in includes(root, header):
            if (root / (other[:-2] + ".c")).is_file():
                yield other[:-2] + ".c", f"#include in {header.split('/')[-1]}"
            else:
                todo.append(other)


def homes(symbols, files):
    """{name: the file that defines it}."""
    return {name: source for source in files for name in symbols[source].defines}


def arrows(root, symbols):
    """{file: {file that it needs: [names in it]}}. Libraries of compat/ use Kolo, and have names of their own that may be the same."""
    kolo = sorted(filter(objects.is_product, symbols))
    compat = sorted(filter(objects.is_compat, symbols))
    home = {True: homes(symbols, kolo + compat), False: homes(symbols, kolo)}
    needs = {source: collections.defaultdict(list) for source in kolo + compat}
    for source in needs:
        known = home[objects.is_compat(source)]
        for name in sorted(symbols[source].uses):
            if known.get(name, source) != source:
                needs[source][known[name]].append(name)
        for other, why in headers_needed(root, source):
            if other != source and other in needs:
                needs[source][other].append(why)
    return needs


def shortest(needs, start, end):
    """The shortest way from start to end as a list of files, or None."""
    came, todo = {start: None}, collections.deque([start])
    while todo and end not in came:
        here = todo.popleft()
        for there in needs[here]:
            if there not in came:
                came[there] = here
                todo.append(there)
    if end not in came:
        return None
    way = [end]
    while came[way[-1]]:
        way.append(came[way[-1]])
    return way[::-1]


def circles(needs):
    """Each circle as a list of files, beginning with the first by name, short ones first."""
    found = set()
    for here in needs:
        for there in needs[here]:
            way = shortest(needs, there, here)
            if way:
                first = way.index(min(way))
                found.add(tuple(way[first:] + way[:first]))
    return sorted(found, key=lambda c: (len(c), c))


def faults(needs, one_concept):
    """The circles that should not be, as sentences."""
    for circle in circles(needs):
        if any(set(circle) <= concept for concept in one_concept):
            continue
        steps = list(zip(circle, circle[1:] + circle[:1]))
        names = [file.removeprefix("src/") for file in circle + circle[:1]]
        yield " -> ".join(names) + " (" + "; ".join(", ".join(needs[a][b]) for a, b in steps) + ")"


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    needs = arrows(objects.ROOT, objects.read(pathlib.Path(sys.argv[1])))
    found = list(faults(needs, ONE_CONCEPT))
    print("\n".join(found) if found else f"{len(needs)} files, no circles but those that are one concept")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
