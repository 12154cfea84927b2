#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools_test.py - the checks of tools/dev find what they are for."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/dev"))
import coverage  # noqa: E402
import ctest_count  # noqa: E402
import folders  # noqa: E402
import symbols  # noqa: E402


class Folders(unittest.TestCase):
    CASES = [  # file, what it includes, whether that is a fault
        ("comm/init.c", "os/socket.h", False),
        ("os/socket.c", "os/socket.h", False),
        ("os/socket.c", "include/nccl.h", False),
        ("os/socket.c", "comm/comm.h", True),
        ("topo/paths.c", "graph/search.h", True),
        ("topo/xml.c", "base/error.h", False),
        ("topo/xml.c", "net/net.h", True),
        ("graph/search.c", "bootstrap/bootstrap.h", True),
        ("graph/search.c", "topo/topo.h", False),
        ("transport/shm/shm.c", "transport/transport.h", False),
        ("transport/transport.c", "transport/shm/shm.h", False),
        ("transport/shm/shm.c", "transport/p2p/p2p.h", True),
        ("device/cuda/cuda.c", "device/host/redop.h", True),
        ("net/socket/tcp.c", "os/socket.h", False),
        ("base/log.c", "log.h", True),
        ("base/log.c", "../os/file.h", True),
        ("coll/ring.c", "tools/kolo/cmd.h", True),
        ("coll/ring_test.c", "tests/kolo_test.h", False),
        ("attic/old.c", "base/log.h", True),
    ]

    def test_each_direction(self):
        for name, included, want in self.CASES:
            with self.subTest(file=name, included=included), tempfile.TemporaryDirectory() as scratch:
                file = pathlib.Path(scratch, name)
                file.parent.mkdir(parents=True)
                file.write_text(f'/* first */\n#  include "{included}"\n#include <stdio.h>\n')
                faults, _ = folders.check(pathlib.Path(scratch))
                self.assertEqual(bool(faults), want, faults)

    def test_a_fault_names_file_and_line(self):
        with tempfile.TemporaryDirectory() as scratch:
            file = pathlib.Path(scratch, "os/socket.c")
            file.parent.mkdir()
            file.write_text('\n\n#include "api/nccl.h"\n')
            faults, _ = folders.check(pathlib.Path(scratch))
            self.assertIn("os/socket.c:3:", faults[0])


class Symbols(unittest.TestCase):
    def test_equal_sets_are_fine(self):
        names = {"ncclA", "pncclA", "koloB"}
        self.assertEqual(list(symbols.problems(names, names, names)), [])

    def test_each_difference_shows(self):
        names = {"ncclA", "pncclA"}
        for headers, listed, library in ((names | {"koloB"}, names, names), (names, names | {"koloB"}, names),
                                         (names, names, names | {"koloB"}), (names, names, {"ncclA"})):
            with self.subTest(headers=headers, listed=listed, library=library):
                self.assertTrue(list(symbols.problems(headers, listed, library)))

    def test_a_missing_twin_shows(self):
        self.assertEqual(list(symbols.problems({"ncclA"}, {"ncclA"}, {"ncclA"})), ["ncclA: has no twin pncclA"])

    def test_the_headers_declare_what_they_declare(self):
        names = symbols.declared()
        self.assertLessEqual({"ncclAllReduce", "pncclAllReduce", "ncclGetErrorString", "koloMalloc"}, names)
        self.assertFalse(names & {"ncclResult_t", "ncclComm", "NCCL_VERSION"})


class Count(unittest.TestCase):
    RECORD = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="t" tests="7" failures="3" disabled="1" skipped="1">
    <testcase name="good" status="run"><system-out>fine</system-out></testcase>
    <testcase name="partly" status="run"><system-out>....
skipped test_machines: no data
OK, skipped: 1
</system-out></testcase>
    <testcase name="bad" status="fail"><failure message=""/><system-out>one
two</system-out></testcase>
    <testcase name="hung" status="fail"><failure message=""/></testcase>
    <testcase name="cannot" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>x
no network here
</system-out></testcase>
    <testcase name="gone" status="notrun"><skipped message="Unable to find executable"/></testcase>
    <testcase name="off" status="disabled"/>
</testsuite>"""
    LOG = """
The following tests FAILED:
\t  2 - bad (Failed)
\t  3 - hung (Timeout)
"""

    def count(self, text):
        with tempfile.TemporaryDirectory() as scratch:
            record, log = pathlib.Path(scratch, "record.xml"), pathlib.Path(scratch, "log")
            log.write_text(self.LOG)
            if text is not None:
                record.write_text(text)
            out, before = io.StringIO(), sys.argv
            sys.argv = ["ctest_count.py", str(record), str(log)]
            with contextlib.redirect_stdout(out):
                ctest_count.main()
            sys.argv = before
            return out.getvalue().splitlines()

    def test_outcomes(self):
        lines = self.count(self.RECORD)
        self.assertEqual(lines[0], "2 3 3")
        self.assertIn("skipped partly: test_machines: no data", lines)
        self.assertIn("skipped cannot: no network here", lines)
        self.assertIn("failed hung: Timeout", lines)
        self.assertIn("    two", lines)

    def test_what_cannot_be_read_has_failed(self):
        for text in (None, "", self.RECORD[:-20]):
            with self.subTest(text=text):
                self.assertEqual(self.count(text)[0], "0 1 0")


class Coverage(unittest.TestCase):
    def test_sums_per_folder(self):
        def file(name, covered, total):
            return {"filename": name, "line_covered": covered, "line_total": total, "branch_covered": 0, "branch_total": 0}

        table = coverage.sums([file("src/os/a.c", 1, 4), file("src/os/x/b.c", 2, 4), file("src/base/c.c", 0, 1)])
        self.assertEqual((table["src/os"]["line_covered"], table["src/os"]["line_total"]), (3, 8))
        self.assertEqual(table["all"]["line_total"], 9)


if __name__ == "__main__":
    unittest.main()
