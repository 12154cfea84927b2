# SPDX-License-Identifier: Apache-2.0
"""Texts of C files: the string literals, and messages with their formats as blanks."""
import pathlib
import re

PIECE = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\b([A-Za-z_]\w*)\b|/\*.*?\*/|//[^\n]*|\'(?:[^\'\\\n]|\\.)*\'|(\s+)|(.)', re.S)
FORMAT = re.compile(r"%(?:%|[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[diouxXcsfgeGp])")
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "'": "'", "0": "\0", "r": "\r"}
BLANK = "\N{HORIZONTAL ELLIPSIS}"


def unescaped(text):
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(0)), text)


def literals(source, macros=None):
    """(position, text) of each string literal; neighbours are joined, PRIu64 and the like belong to a format, macros have texts."""
    at, parts = 0, None
    for m in PIECE.finditer(source):
        name = m.group(2)
        if m.group(1) is not None:
            at, parts = (m.start(), []) if parts is None else (at, parts)
            parts.append(unescaped(m.group(1)))
        elif parts is not None and name and (name.startswith("PRI") or name in (macros or {})):
            parts.append("d" if name.startswith("PRI") else macros[name])
        elif parts is not None and (name or m.group(4)):
            yield at, "".join(parts)
            parts = None


def blanked(text):
    """A format with a BLANK in the place of each value."""
    return FORMAT.sub(lambda m: "%" if m.group() == "%%" else BLANK, text)


def sources(root, *folders):
    """The C files of the program, without tests and their helpers."""
    for folder in folders:
        for path in sorted(pathlib.Path(root, folder).rglob("*.[ch]")):
            if not path.stem.endswith("_test") and not path.stem.startswith("test_"):
                yield path


def failures(source):
    """(line, result, message) of each KL_FAIL and KL_FAIL_ERRNO whose format is written there."""
    for m in re.finditer(r"\bKL_FAIL(_ERRNO)?\(\s*", source):
        rest = source[m.end():m.end() + 2000]
        result = "ncclSystemError" if m.group(1) else None
        if not result:
            first = re.match(r"(\w+)\s*,\s*", rest)
            if not first:
                continue
            result, rest = first.group(1), rest[first.end():]
        if rest.startswith('"'):
            text = blanked(next(literals(rest))[1])
            yield source.count("\n", 0, m.start()) + 1, result, text + (f": {BLANK}" if m.group(1) else "")
