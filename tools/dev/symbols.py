#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that the library exports exactly the functions of the public headers and of the reviewed list.

usage: symbols.py LIBRARY      compare the prototypes of include/*.h, symbols.txt and `nm -D LIBRARY`; exit 1 if they differ
       symbols.py --write      write symbols.txt from the headers (then review the difference)

Every nccl* function needs its pnccl* twin, and every function but those a definition in src/api that grep and ctags find:
its name, spelled out, in the first line.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "tools/dev/symbols.txt"
COMMENT = "# The functions that libkolo.so exports; `tools/dev/symbols.py --write` writes them from the public headers.\n"
DEFINITION = re.compile(r"^(?:ncclResult_t|koloReason_t|ncclTeam_t|int|void|const char \*)\s*((?:nccl|kolo)\w*)\(|^GETTER\((\w+)", re.M)
INLINE = re.compile(r"^static inline .*?^\}", re.M | re.S)
PROTOTYPE = re.compile(r"\b((?:p?nccl|kolo)\w*)\s*\(")


def output(*command, text=None):
    return subprocess.run(command, input=text, check=True, stdout=subprocess.PIPE, text=True).stdout


def declared():
    headers = sorted((ROOT / "include").glob("*.h"))
    text = "".join(f'#include "{h}"\n' for h in headers)
    return set(PROTOTYPE.findall(INLINE.sub("", output("cc", "-E", "-P", "-x", "c", "-", text=text))))


def listed():
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def exported(library):
    return {line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines() if line}


def defined():
    return [name for file in sorted((ROOT / "src/api").glob("*.c")) for name in map("".join, DEFINITION.findall(file.read_text(encoding="utf-8")))]


def differences(want, want_name, got, got_name):
    yield from (f"{name}: in {want_name}, not in {got_name}" for name in sorted(want - got))
    yield from (f"{name}: in {got_name}, not in {want_name}" for name in sorted(got - want))


def problems(headers, reviewed, library, spelled):
    """Sentences that say how the three sets of names differ, and which are not spelled once where they are defined."""
    yield from differences(headers, "include/*.h", reviewed, "symbols.txt")
    yield from differences(reviewed, "symbols.txt", library, "the library")
    for name in sorted(headers):
        if name.startswith("nccl") and "p" + name not in headers:
            yield f"{name}: has no twin p{name}"
        if not name.startswith("pnccl") and spelled.count(name) != 1:
            yield f"{name}: has {spelled.count(name)} definitions in src/api that grep finds, not one"


def main():
    if sys.argv[1:] == ["--write"]:
        text = "# SPDX-License-Identifier: Apache-2.0\n" + COMMENT + "".join(n + "\n" for n in sorted(declared()))
        LIST.write_text(text, encoding="utf-8")
        return 0
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    if not pathlib.Path(sys.argv[1]).exists():
        sys.exit(f"symbols.py: no library {sys.argv[1]}; it has not been built")
    found = list(problems(declared(), listed(), exported(sys.argv[1]), defined()))
    print("\n".join(found) if found else f"{len(listed())} symbols, as declared and as listed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
