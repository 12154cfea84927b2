#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run clang, and clang-tidy 14, over the compile commands of a build tree, one process per CPU.

usage: clang.py warnings BUILD [PART]   clang's warnings, as errors, for every file
       clang.py tidy BUILD [PART]       clang-tidy with .clang-tidy, for every file but tests; files that were clean and
                                        have not changed since (headers included) are not looked at again

PART restricts to files whose path contains it. Prints the findings; exits 1 if there are any.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLEAN = ROOT / "build/log/tidy-clean"
# The commands may have been made for gcc.
OTHERS = ["-Wno-unknown-warning-option", "-Wno-ignored-optimization-argument", "-Wno-unused-command-line-argument"]
# The analyzer's checks that we ask for look at one function at a time; its deep mode takes ten times as long to find the same.
SHALLOW = ["--extra-arg=-Xclang", "--extra-arg=-analyzer-config", "--extra-arg=-Xclang", "--extra-arg=mode=shallow"]
CLANG = ROOT / "tools/dev/clang.sh"
KEEP = ("-I", "-D", "-W", "-std=", "-isystem", "-f")


@functools.lru_cache(maxsize=None)
def tool(name):
    """Where it is (tools/dev/clang.sh)."""
    return subprocess.run([CLANG, name], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


@functools.lru_cache(maxsize=None)
def resources():
    """clang-tidy of PyPI comes without the headers of a compiler."""
    if tool("clang-tidy").startswith(str(ROOT)):
        folder = subprocess.run([tool("clang"), "-print-resource-dir"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        return [f"--extra-arg=-resource-dir={folder}"]
    return []


def flags(entry):
    """The options of a compile command that any compiler understands."""
    words, kept = shlex.split(entry["command"])[1:], []
    for i, word in enumerate(words):
        if word == "-isystem":
            kept += [word, words[i + 1]]
        elif word.startswith(KEEP) and word != "-Werror":
            kept.append(word)
    return kept


def run(command, entry):
    done = subprocess.run(command, cwd=entry["directory"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


def warnings(entry, _build):
    rc, out, err = run([tool("clang"), *flags(entry), *OTHERS, "-Werror", "-fsyntax-only", entry["file"]], entry)
    return rc, out + err


def tidy(entry, build):
    if entry["file"].endswith("_test.c"):
        return 0, ""
    rc, text, err = run([tool("clang"), *flags(entry), "-E", "-C", entry["file"]], entry)
    if rc:
        return rc, err
    key = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + text.encode()).hexdigest()
    if (CLEAN / key).exists():
        return 0, ""
    if resources() and re.search(r'^# \d+ "[^"]*intrin\.h"', text, re.MULTILINE):
        return 0, f"skipped {entry['file']}: intrinsics of a compiler newer than clang-tidy\n"
    rc, out, err = run([tool("clang-tidy"), "--quiet", *resources(), *("--extra-arg=" + o for o in OTHERS), *SHALLOW, "-p", str(build), entry["file"]], entry)
    if rc == 0:
        (CLEAN / key).touch()
    return rc, out + (err if rc and not out else "")


def main():
    modes = {"warnings": warnings, "tidy": tidy}
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in modes:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[2]).resolve()
    part = sys.argv[3] if len(sys.argv) == 4 else ""
    entries = {e["file"]: e for e in json.loads((build / "compile_commands.json").read_text())}
    chosen = [e for name, e in sorted(entries.items()) if part in name and name.endswith(".c")]
    CLEAN.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = []
        for entry, result in zip(chosen, pool.map(lambda e: modes[sys.argv[1]](e, build), chosen)):
            print(os.path.relpath(entry["file"], ROOT), flush=True)  # one may watch that it goes on
            results.append(result)
    bad = [text for rc, text in results if rc]
    print("".join(text for rc, text in results if not rc and text.startswith("skipped ")) + "".join(bad))
    print("\n".join(sorted(set(re.findall(r"^.*: (?:fatal )?error: .*$", "".join(bad), re.MULTILINE)))))
    print(f"{len(chosen)} files, {len(bad)} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
