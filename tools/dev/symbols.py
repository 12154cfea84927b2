#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that each library exports exactly the functions that its public headers declare, and its reviewed list names.

usage: symbols.py LIBRARY...   compare the prototypes of the library's headers, its list and `nm -D LIBRARY`; exit 1 if they differ
       symbols.py --write      write the lists from the headers (then review the difference)

The name of the file says which library it is: libkolo.so (symbols.txt, src/api) or libkoloplan.so (symbols_plan.txt, src/koloplan).
Every nccl* function needs its pnccl* twin, and every function but those a definition that grep and ctags find: its name,
spelled out, in the first line. libkolo.so must have nothing of the planner: no symbol of a function that src/plan, src/logs,
src/answer or src/koloplan define.
kolo* have a symbol version, nccl* and pnccl* none (cmake/kolo.map).
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
Library = collections.namedtuple("Library", "headers prefixes list folder")
LIBRARIES = {
    "libkolo.so": Library(("nccl.h", "nccl_device.h", "kolo.h"), ("nccl", "pnccl", "kolo"), "symbols.txt", "api"),
    "libkoloplan.so": Library(("koloplan.h",), ("koloplan",), "symbols_plan.txt", "koloplan"),
}
COMMENT = "# The functions that {} exports; `tools/dev/symbols.py --write` writes them from the public headers.\n"
PLANNER = ("plan", "logs", "answer", "koloplan")
DEFINITION = re.compile(r"^(?:ncclResult_t|koloReason_t|ncclTeam_t|int|void|const char \*)\s*((?:nccl|kolo)\w*)\(|^GETTER\((\w+)", re.M)
INLINE = re.compile(r"^static inline .*?^\}", re.M | re.S)
GLOBAL = re.compile(r"^(?!static)[a-z][\w *]*?\b(kl_\w+|koloplan\w+)\(", re.M)
PROTOTYPE = re.compile(r"\b((?:p?nccl|kolo)\w*)\s*\(")


def output(*command, text=None):
    return subprocess.run(command, input=text, check=True, stdout=subprocess.PIPE, text=True).stdout


def declared(library):
    text = "".join(f'#include "{ROOT / "include" / h}"\n' for h in library.headers)
    names = PROTOTYPE.findall(INLINE.sub("", output("cc", "-E", "-P", "-x", "c", "-", text=text)))
    if library.prefixes == ("koloplan",):
        return {n for n in names if n.startswith("koloplan")}  # its header includes nccl.h
    return set(names)


def listed(library):
    lines = (ROOT / "tools/dev" / library.list).read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def exported(library):
    """{name: version, or "" for none}, without the versions themselves, which are absolute symbols."""
    lines = filter(None, map(str.split, output("nm", "-D", "--defined-only", library).splitlines()))
    return dict((name.split("@")[0], name.rpartition("@")[2] if "@" in name else "") for _, kind, name in lines if kind != "A")


def planner(library):
    """Functions of the planner's folders that a library has, exported or not. Empty for one without a symbol table."""
    has = {line.split()[-1] for line in output("nm", "--defined-only", library).splitlines() if line}
    for folder in PLANNER:
        for file in sorted((ROOT / "src" / folder).glob("*.c")):
            if not file.stem.endswith("_test"):
                yield from (f"{n}: of src/{folder}, and in {library}" for n in GLOBAL.findall(file.read_text(encoding="utf-8")) if n in has)


def defined(library):
    return [name for file in sorted((ROOT / "src" / library.folder).glob("*.c")) for name in map("".join, DEFINITION.findall(file.read_text(encoding="utf-8")))]


def differences(want, want_name, got, got_name):
    yield from (f"{name}: in {want_name}, not in {got_name}" for name in sorted(want - got))
    yield from (f"{name}: in {got_name}, not in {want_name}" for name in sorted(got - want))


def problems(headers, reviewed, library, spelled):
    """Sentences that say how the three sets of names differ, and which are not spelled once where they are defined."""
    yield from differences(headers, "the headers", reviewed, "the list")
    yield from differences(reviewed, "the list", library, "the library")
    for name in sorted(headers):
        if name.startswith("nccl") and "p" + name not in headers:
            yield f"{name}: has no twin p{name}"
        if not name.startswith("pnccl") and spelled.count(name) != 1:
            yield f"{name}: has {spelled.count(name)} definitions in its folder of src/ that grep finds, not one"


def write():
    for name, library in LIBRARIES.items():
        text = "# SPDX-License-Identifier: Apache-2.0\n" + COMMENT.format(name) + "".join(n + "\n" for n in sorted(declared(library)))
        (ROOT / "tools/dev" / library.list).write_text(text, encoding="utf-8")


def versions(library):
    """Sentences about names whose version is not as cmake/kolo.map has it."""
    for name, version in sorted(library.items()):
        if bool(version) != name.startswith("kolo"):
            yield f"{name}: has version {version}, and programs for other libraries ask for none" if version else f"{name}: has no version"


def main():
    if sys.argv[1:] == ["--write"]:
        write()
        return 0
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    bad = 0
    for path in map(pathlib.Path, sys.argv[1:]):
        if not path.exists():
            sys.exit(f"symbols.py: no library {path}; it has not been built")
        library = LIBRARIES[path.name]
        names = exported(path)
        found = list(problems(declared(library), listed(library), set(names), defined(library))) + list(versions(names))
        if path.name == "libkolo.so":
            found += planner(path)
        bad += len(found)
        print("\n".join(found) if found else f"{path.name}: {len(listed(library))} symbols, as declared and as listed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
