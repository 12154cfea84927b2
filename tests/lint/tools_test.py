#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools_test.py - the checks of tools/dev find their faults."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools/dev"))
import circles  # noqa: E402
import coverage  # noqa: E402
import ctest_count  # noqa: E402
import folders  # noqa: E402
import objects  # noqa: E402
import static  # noqa: E402
import symbols  # noqa: E402
import words  # noqa: E402


class Folders(unittest.TestCase):
    CASES = [  # file, its includes, whether that is a fault
        ("comm/setup/init.c", "os/socket.h", False),
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


class Objects(unittest.TestCase):
    NM = """build/a.c.o: kl_a T 0 10
build/a.c.o: kl_b U
build/b.c.o: kl_b D 0 8
build/b.c.o: kl_maybe w
build/b.c.o: local t 0 8
"""

    def test_what_nm_prints(self):
        found = objects.parse(self.NM)
        self.assertEqual(found["build/a.c.o"], ({"kl_a"}, {"kl_b"}))
        self.assertEqual(found["build/b.c.o"], ({"kl_b"}, {"kl_maybe"}))

    def test_what_belongs_to_kolo(self):
        for source, want in (("src/os/socket.c", True), ("tools/kolo/main.c", True), ("src/os/socket_test.c", False),
                             ("tests/api_test.c", False), ("bench/redop_bench.c", False), ("tools/kolo/faulty_library.c", False)):
            self.assertEqual(objects.is_product(source), want, source)
        for source, want in (("compat/cuda/core/copy.c", True), ("compat/verbs/cq.c", True), ("compat/cuda/nvcc/options_test.c", False),
                             ("compat/cuda/tests/job_cuda_test.c", False), ("src/os/socket.c", False)):
            self.assertEqual(objects.is_compat(source), want, source)


def program(**files):
    """{source: Symbols} of files of src/base/: name="a b: c" defines a and b, and uses c."""
    found = {}
    for name, text in files.items():
        defines, _, uses = text.partition(":")
        found[f"src/base/{name}.c"] = objects.Symbols(set(defines.split()), set(uses.split()))
    return found


class Circles(unittest.TestCase):
    def faults(self, symbols, headers=(), concepts=()):
        with tempfile.TemporaryDirectory() as scratch:
            base = pathlib.Path(scratch, "src/base")
            base.mkdir(parents=True)
            for source in symbols:
                (pathlib.Path(scratch) / source).touch()
            for name, includes in headers:
                (base / name).write_text("".join(f'#include "base/{i}"\n' for i in includes))
            return list(circles.faults(circles.arrows(pathlib.Path(scratch), symbols), concepts))

    def test_files_in_layers_are_fine(self):
        self.assertEqual(self.faults(program(a="a: b c", b="b: c", c="c: printf")), [])

    def test_calls_in_a_circle(self):
        self.assertEqual(self.faults(program(a="a: b", b="b: c", c="c c2: a", d="d: a")),
                         ["base/a.c -> base/b.c -> base/c.c -> base/a.c (b; c; a)"])

    def test_each_of_two_circles_shows(self):
        self.assertEqual(self.faults(program(a="a a2: b", b="b: a a2 c", c="c: b")),
                         ["base/a.c -> base/b.c -> base/a.c (b; a, a2)", "base/b.c -> base/c.c -> base/b.c (c; b)"])

    def test_an_interface_made_of_anothers(self):
        files = program(a="a: b", b="b:")
        self.assertEqual(self.faults(files, [("a.h", []), ("b.h", ["a.h"])]),
                         ["base/a.c -> base/b.c -> base/a.c (b; #include in b.h)"])
        self.assertEqual(len(self.faults(files, [("a.h", []), ("b.h", ["types.h"]), ("types.h", ["a.h"])])), 1)
        self.assertEqual(self.faults(files, [("a.h", ["b.h"]), ("b.h", ["types.h"]), ("types.h", [])]), [])

    def test_tests_are_no_part_of_it(self):
        self.assertEqual(self.faults(program(a="a: a_check", a_test="a_check: a")), [])

    def test_compat_uses_kolo_and_has_names_of_its_own(self):
        files = program(a="a: b", b="b:")
        stand_in = {"compat/x/a.c": objects.Symbols({"b"}, {"d"}), "compat/x/d.c": objects.Symbols({"d"}, {"a", "b"})}
        needs = circles.arrows(pathlib.Path("/nonexistent"), files | stand_in)
        self.assertEqual({k: dict(v) for k, v in needs.items()},
                         {"src/base/a.c": {"src/base/b.c": ["b"]}, "src/base/b.c": {}, "compat/x/a.c": {"compat/x/d.c": ["d"]},
                          "compat/x/d.c": {"src/base/a.c": ["a"], "compat/x/a.c": ["b"]}})
        self.assertEqual(len(list(circles.faults(needs, []))), 1)

    def test_one_concept(self):
        files = program(a="a: b", b="b: a c", c="c: b")
        pair = {"src/base/a.c", "src/base/b.c"}
        self.assertEqual(self.faults(files, concepts=[pair]), ["base/b.c -> base/c.c -> base/b.c (c; b)"])
        self.assertEqual(self.faults(files, concepts=[pair | {"src/base/c.c"}]), [])


class Static(unittest.TestCase):
    def faults(self, symbols, texts=None, for_tests=()):
        return list(static.faults(symbols, lambda source: (texts or {}).get(source, ""), for_tests))

    def test_what_another_file_uses_is_fine(self):
        self.assertEqual(self.faults(program(a="a:", b="main: a")), [])

    def test_public_functions_are(self):
        self.assertEqual(self.faults(program(a="ncclX pncclX koloY main:")), [])

    def test_what_only_its_own_file_uses(self):
        text = "/* a: a */\nint a(void) { return 1; }\nint b(void) { return a(); } // b"
        self.assertEqual(self.faults(program(a="a b:"), {"src/base/a.c": text}),
                         ["base/a.c: a should be static", "base/a.c: nobody uses b"])

    def test_tests_count_where_it_says_so(self):
        files = program(a="a:", a_test="main: a")
        self.assertEqual(self.faults(files), ["base/a.c: a is used by src/base/a_test.c only"])
        self.assertEqual(self.faults(files, for_tests={"a"}), [])

    def test_the_list_is_kept_short(self):
        self.assertEqual(self.faults(program(a="a:", b="main: a"), for_tests={"a", "gone"}),
                         ["tools/dev/static.py: a is used, and need not be listed",
                          "tools/dev/static.py: there is no gone"])


class Symbols(unittest.TestCase):
    def test_equal_sets_are_fine(self):
        names = {"ncclA", "pncclA", "koloB"}
        self.assertEqual(list(symbols.problems(names, names, names, ["ncclA", "koloB"])), [])

    def test_each_difference_shows(self):
        names, spelled = {"ncclA", "pncclA"}, ["ncclA", "koloB"]
        for headers, listed, library in ((names | {"koloB"}, names, names), (names, names | {"koloB"}, names),
                                         (names, names, names | {"koloB"}), (names, names, {"ncclA"})):
            with self.subTest(headers=headers, listed=listed, library=library):
                self.assertTrue(list(symbols.problems(headers, listed, library, spelled)))

    def test_versions_are_for_kolo_only(self):
        self.assertEqual(list(symbols.versions({"ncclA": "", "pncclA": "", "koloB": "KOLO_0.1"})), [])
        self.assertEqual(list(symbols.versions({"ncclA": "KOLO_0.1", "koloB": ""})),
                         ["koloB: has no version", "ncclA: has version KOLO_0.1, and programs for other libraries ask for none"])

    def test_a_missing_twin_shows(self):
        self.assertEqual(list(symbols.problems({"ncclA"}, {"ncclA"}, {"ncclA"}, ["ncclA"])), ["ncclA: has no twin pncclA"])

    def test_a_definition_that_grep_does_not_find_shows(self):
        names = {"koloB"}
        for spelled in ([], ["koloB", "koloB"]):
            with self.subTest(spelled):
                self.assertEqual(len(list(symbols.problems(names, names, names, spelled))), 1)

    def test_every_public_function_is_spelled_where_it_is_defined(self):
        for name, library in symbols.LIBRARIES.items():
            with self.subTest(name):
                self.assertEqual(sorted(symbols.defined(library)),
                                 sorted(n for n in symbols.listed(library) if not n.startswith("pnccl")))

    def test_the_headers_declare_what_they_declare(self):
        names = symbols.declared(symbols.LIBRARIES["libkolo.so"])
        self.assertLessEqual({"ncclAllReduce", "pncclAllReduce", "ncclGetErrorString", "koloMalloc"}, names)
        self.assertFalse(names & {"ncclResult_t", "ncclComm", "NCCL_VERSION"})
        self.assertIn("koloplanOpen", symbols.declared(symbols.LIBRARIES["libkoloplan.so"]))

    def test_the_library_has_nothing_of_the_planner(self):
        build = pathlib.Path(os.environ["KOLO_BUILD"])
        self.assertEqual(list(symbols.planner(build / "libkolo.so")), [])
        self.assertGreater(len(list(symbols.planner(build / "kolo"))), 200)  # the tool has all of it


class Words(unittest.TestCase):
    def retired(self, row, **texts):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            for name, text in texts.items():
                file = root / name.replace("__", "/").replace("_dot_", ".")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return list(words.retired(root, words.rows(row)))

    def test_a_retired_word_is_named_with_its_place_and_the_word_to_use(self):
        self.assertEqual(self.retired("# comment\n\n\\blent\\b  peer buffer\n", README_dot_md="fine\nIt is lent.\n"),
                         ['README.md:2: "lent" is retired; use: peer buffer'])

    def test_documents_may_quote_programs(self):
        self.assertEqual(self.retired("lent  x", README_dot_md="`lent`\n```\nlent\n```\n    lent\n"), [])

    def test_rows_name_the_files_that_they_cover(self):
        row = "kl_process_shared  kl_process_shared  src/**/*.[ch]  !src/comm/old.c"
        self.assertEqual(self.retired(row, README_dot_md="kl_process_shared", src__comm__a_dot_c="/* `kl_process_shared` */", src__comm__old_dot_c="kl_process_shared"),
                         ['src/comm/a.c:1: "kl_process_shared" is retired; use: kl_process_shared'])

    def test_a_row_that_cannot_be_read_is_named(self):
        for row, why in (("\nlent\n", "line 2: a row has"), ("(  x\n", "line 1: ")):
            with self.assertRaisesRegex(ValueError, why):
                list(words.rows(row))

    def test_documents_name_files_and_functions_that_exist(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            (root / "docs").mkdir()
            (root / "src/coll").mkdir(parents=True)
            (root / "src/coll/a.h").write_text("int kl_a(void);")
            (root / "docs/glossary.md").write_text("| `coll/`, `coll/a.h`, `src/coll/a.h:kl_a` |\n| `coll/b.h` |\n| `src/coll/a.h:kl_b` |\n| `coll/old/`, `lib/old/` |\n")
            self.assertEqual(list(words.gone(root)), ["docs/glossary.md:2: there is no coll/b.h",
                                                      "docs/glossary.md:3: there is no kl_b in src/coll/a.h",
                                                      "docs/glossary.md:4: there is no folder coll/old/"])


    def test_links_lead_to_files_and_headings(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            (root / "docs").mkdir()
            (root / "docs/a.md").write_text("# One, two: `three`\n")
            (root / "README.md").write_text("[a](docs/a.md#one-two-three) [w](https://x.org/y#z)\n[b](docs/b.md)\n[c](docs/a.md#four)\n")
            self.assertEqual(list(words.dangling(root)), ["README.md:2: a link to docs/b.md, which does not exist",
                                                          "README.md:3: docs/a.md has no heading #four"])


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

    def test_shows_the_first_complaint(self):
        early = "\n".join(["[  ERROR   ] early", *(f"later {i}" for i in range(200))])
        lines = self.count(self.RECORD.replace("one\ntwo", early))
        self.assertIn("    [  ERROR   ] early", lines)
        self.assertNotIn("    later 199", lines)

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


class Leftovers(unittest.TestCase):
    COMMAND = [sys.executable, str(ROOT / "tests/leftovers.py")]

    def setUp(self):
        if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("no mount namespaces: files are not looked at")

    def test_a_file_that_is_left_shows(self):
        p = subprocess.run([*self.COMMAND, "touch", "/dev/shm/kolo-left"], env={**os.environ, "TEST_HANG_S": "15"}, text=True,
                           stderr=subprocess.PIPE, check=False)
        self.assertEqual((p.returncode, p.stderr), (1, "left behind: file /dev/shm/kolo-left\n"))

    def test_another_jobs_file_does_not(self):
        with tempfile.TemporaryDirectory() as scratch:
            begun = os.path.join(scratch, "begun")
            os.mkfifo(begun)
            with subprocess.Popen([*self.COMMAND, "sh", "-c", f"read line <{begun}"]) as job:
                with open(begun, "w", encoding="ascii") as fifo, tempfile.NamedTemporaryFile(prefix="kolo-", dir="/dev/shm"):
                    fifo.write("go on\n")
                    fifo.flush()
                    self.assertEqual(job.wait(), 0)


if __name__ == "__main__":
    unittest.main()
