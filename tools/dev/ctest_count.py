#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Count the results of a CTest run.

usage: ctest_count.py JUNIT.xml LOG     (both of one run: --output-junit, and its output)

First line: `PASSED FAILED SKIPPED`. Then, for people, the failed tests (with their output from the first complaint on, or else
its end) and the skipped ones (with their last line, the reason). A test that passed may have left out a part, and say so in a line `skipped PART: REASON`: that
counts as one more. A missing or damaged record is one failure: a run that cannot be counted has not passed.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

SHOWN_LINES = 25
BEFORE = 4  # lines before the first complaint
COMPLAINT = re.compile(r"\[  ERROR   \]|Sanitizer|runtime error:|error: Failure!|Traceback")


def outcome(case):
    """passed, failed or skipped. Only a test that asked for it is skipped; one that could not be started has failed."""
    if case.get("status") == "run":
        return "passed"
    skipped = case.find("skipped")
    if case.get("status") == "disabled" or (skipped is not None and skipped.get("message", "").startswith("SKIP_")):
        return "skipped"
    return "failed"


def causes(log):
    """Test name -> Failed, Timeout, SEGFAULT, ...: only the summary at the end of the log tells."""
    return dict(re.findall(r"^\s*\d+ - (\S+) \((.+)\)$", log, re.MULTILINE))


def lines(case):
    return [line for line in (case.findtext("system-out") or "").splitlines() if line.strip()]


def parts_skipped(kind, case):
    """The parts that a passed test skipped, with the reasons."""
    return [line[8:] for line in lines(case) if re.match(r"skipped \w+: ", line)] if kind == "passed" else []


def telling(text):
    """The lines that tell why a test failed. A test that goes on after a failure has the cause far from its end."""
    first = next((i for i, line in enumerate(text) if COMPLAINT.search(line)), len(text))
    begin = max(0, min(first - BEFORE, len(text) - SHOWN_LINES))
    return text[begin : begin + SHOWN_LINES]


def report(cases, why):
    for name, kind, case in cases:
        text = lines(case)
        yield from (f"skipped {name}: {part}" for part in parts_skipped(kind, case))
        if kind == "skipped":
            yield f"skipped {name}: {text[-1].strip() if text else 'gives no reason'}"
        elif kind == "failed":
            yield f"failed {name}: {why.get(name, 'Failed')}"
            yield from ("    " + line for line in telling(text))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        suite = ElementTree.parse(sys.argv[1]).getroot()
        why = causes(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8", errors="replace"))
    except (OSError, ElementTree.ParseError) as error:
        print(f"0 1 0\nfailed: no usable record of the run: {error}")
        return 0
    cases = [(case.get("name"), outcome(case), case) for case in suite.iter("testcase")]
    kinds = [kind for _, kind, _ in cases] + ["skipped" for _, kind, case in cases for _ in parts_skipped(kind, case)]
    print(*(kinds.count(kind) for kind in ("passed", "failed", "skipped")))
    for line in report(cases, why):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
