#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that retired words stay out, and that documents name files, functions and headings that exist.

usage: words.py [ROOT]

The words are in tools/dev/retired_words.txt, which explains its columns. Documents name, in `code`, files (`coll/shm/shm_exchange.h`, below
src/, compat/cuda/, examples/ or the root) and names in files (`src/net/nets.c:kl_nets`), and link to files and headings; the architecture also
names files without their folder. Prints one line per finding and exits 1 if there is one.
"""
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md"]
CODE = re.compile(r"`[^`]*`")
PLACE = re.compile(r"`((?:[a-z]+/)+\w+\.(?:c|h|py|sh|txt))(?::(\w+))?`")
BARE = re.compile(r"`(\w+\.(?:c|h))`")
FOLDER = re.compile(r"`((?:[a-z]+/){2,})`")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
BELOW = ["src", "compat/cuda", "examples", "."]


def rows(text):
    """(regex, word to use, globs) of each row; a row that cannot be read raises ValueError with its line."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = re.split(r"\s{2,}", line.strip())
        if len(columns) < 2:
            raise ValueError(f"line {number}: a row has a regular expression and a word to use, two blanks apart")
        try:
            yield re.compile(columns[0]), columns[1], columns[2:] or DOCUMENTS
        except re.error as error:
            raise ValueError(f"line {number}: {error}") from None


def files(root, globs):
    """The files that the globs name, below `root`, as paths relative to it."""
    left_out = [g[1:] for g in globs if g.startswith("!")]
    found = {p.relative_to(root) for g in globs if not g.startswith("!") for p in root.glob(g) if p.is_file()}
    return sorted(p for p in found if not any(fnmatch.fnmatch(str(p), g) for g in left_out))


def lines(path):
    """(number, text) of the lines that count: of a document those outside of code."""
    document, fenced = path.suffix == ".md", False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if document and line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not (document and line.startswith("    ")):
            yield number, CODE.sub("`", line) if document else line


def retired(root, table):
    for regex, use, globs in table:
        for file in files(root, globs):
            for number, line in lines(root / file):
                match = regex.search(line)
                if match:
                    yield f'{file}:{number}: "{match.group().strip()}" is retired; use: {use}'


def missing(root, place, name):
    """Why a document's `place`, or `place:name`, is wrong, or None."""
    path = next((root / b / place for b in BELOW if (root / b / place).exists()), None)
    if not path:
        return f"there is no {place}"
    if name and not re.search(rf"\b{name}\b", path.read_text(encoding="utf-8")):
        return f"there is no {name} in {place}"
    return None


def gone(root, globs=tuple(DOCUMENTS)):
    for file in files(root, globs):
        for number, line in enumerate((root / file).read_text(encoding="utf-8").splitlines(), 1):
            for place, name in PLACE.findall(line):
                why = missing(root, place, name)
                if why:
                    yield f"{file}:{number}: {why}"
            for place in FOLDER.findall(line):  # of the sources, by its first part
                if (root / "src" / place.split("/")[0]).is_dir() and not (root / "src" / place).is_dir():
                    yield f"{file}:{number}: there is no folder {place}"


def unknown(root, document="docs/architecture.md"):
    """Files that the page names without a folder, and that are nowhere below the folders of the sources."""
    known = {p.name for folder in ("include", "src", "compat", "tools") for p in (root / folder).rglob("*.[ch]")}
    for number, line in enumerate((root / document).read_text(encoding="utf-8").splitlines(), 1):
        for name in BARE.findall(line):
            if name not in known:
                yield f"{document}:{number}: there is no file {name}"


def headings(path):
    """The anchors of a document's headings, as GitHub makes them."""
    text = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in text}


def dangling(root, globs=tuple(DOCUMENTS)):
    for file in files(root, globs):
        for number, line in lines(root / file):
            for target, anchor in LINK.findall(line):
                path = (root / file).parent / target if target else root / file
                if not path.exists():
                    yield f"{file}:{number}: a link to {target}, which does not exist"
                elif anchor and path.suffix == ".md" and anchor not in headings(path):
                    yield f"{file}:{number}: {target or file} has no heading #{anchor}"


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    try:
        table = list(rows((root / "tools/dev/retired_words.txt").read_text(encoding="utf-8")))
    except ValueError as error:
        sys.exit(f"tools/dev/retired_words.txt: {error}")
    found = list(retired(root, table)) + list(gone(root)) + list(unknown(root)) + list(dangling(root))
    print("\n".join(found) if found else f"{len(table)} retired words, none in use")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
