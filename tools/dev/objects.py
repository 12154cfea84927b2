# SPDX-License-Identifier: Apache-2.0
"""objects.py - the symbols that a build's object files define and use, for checks of a whole program.

Sources are named by their path from the root ("src/topo/topo.c"). Only those that are part of Kolo count: tests and
benchmarks are users, and are told apart by `is_product`.
"""
import collections
import json
import pathlib
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRODUCT = ("src/", "tools/kolo/")
COMPAT = ("compat/",)
COMPAT_TESTS = ("compat/cuda/tests/",)
ASIDE = {"tools/kolo/faulty_library.c"}  # makes the tool err on purpose, for its tests

Symbols = collections.namedtuple("Symbols", "defines uses")  # sets of names with external linkage


def is_product(source):
    return source.startswith(PRODUCT) and not source.endswith("_test.c") and source not in ASIDE


def is_compat(source):
    """Is it part of the stand-ins for other libraries, products of their own?"""
    return source.startswith(COMPAT) and not source.startswith(COMPAT_TESTS) and not source.endswith("_test.c")


def compiled(build):
    """{source: object file} of a build tree; sources that are compiled several times, once."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    found = {}
    for entry in commands:
        file = pathlib.Path(entry["file"])
        if not file.is_relative_to(ROOT) or file.is_relative_to(build):
            continue  # generated
        words = shlex.split(entry["command"])
        found.setdefault(str(file.relative_to(ROOT)), pathlib.Path(entry["directory"], words[words.index("-o") + 1]))
    return found


def parse(text):
    """{object file: Symbols} from the output of `nm -A -P`."""
    found = collections.defaultdict(lambda: Symbols(set(), set()))
    for line in text.splitlines():
        file, symbol = line.rsplit(": ", 1)
        name, kind = symbol.split()[:2]
        if kind in "Uw":
            found[file].uses.add(name)
        elif kind.isupper():
            found[file].defines.add(name)
    return found


def read(build):
    """{source: Symbols} of everything in a build tree. SystemExit when it has not been built."""
    build = build.resolve()
    if not (build / "compile_commands.json").exists():
        raise SystemExit(f"{build} is no build tree; ./dev build release makes one")
    objects = compiled(build)
    missing = [source for source, file in objects.items() if not file.exists()]
    if missing:
        raise SystemExit(f"{missing[0]} has not been compiled in {build}; ./dev build release does")
    nm = ["nm", "-A", "-P", "-g", *map(str, objects.values())]
    symbols = parse(subprocess.run(nm, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return {source: symbols[str(file)] for source, file in objects.items()}
