#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual, without its generator: every page is in the navigation, the reference has every public function with its row in the table of releases,
messages that are quoted are in the sources, and quoted C code is in the example that is named beside it. tools/site/stage.py makes the pages.
"""
import os
import re
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools/site"))
import ctext  # noqa: E402
import headers  # noqa: E402
import pyreference  # noqa: E402
import stage  # noqa: E402

DECLARED = re.compile(r"^(?:NCCL_TEAM_INLINE )?(?:const )?\w+ \*?(p?(?:nccl|kolo)\w+)\(", re.M)
BLANK = ctext.BLANK


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def one_blank(text):
    return re.sub(f"{BLANK}+", BLANK, text)


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.site = stage.Site()
        cls.docs = cls.site.make()  # a link to a file that does not exist is an error here
        cls.config = read("mkdocs.yml")

    def test_navigation_is_complete(self):
        stage.check_navigation(self.config, self.site.pages, self.docs)

    def test_a_page_outside_of_the_navigation_is_named(self):
        with self.assertRaisesRegex(stage.Fault, r"docs/new\.md is not in the navigation: add it to the list `nav` in mkdocs\.yml"):
            stage.check_navigation(self.config, {**self.site.pages, "new.md": ""}, self.docs | {"new.md"})

    def test_an_entry_without_a_page_is_named_unless_it_is_to_come(self):
        with self.assertRaisesRegex(stage.Fault, r"mkdocs\.yml:2: there is no page a\.md"):
            stage.check_navigation("nav:\n  - A: a.md\n", {}, set())
        text = "nav:\n  - A: a.md # to come\n  - B: b.md\n"
        stage.check_navigation(text, {"b.md": ""}, {"b.md"})
        self.assertEqual(stage.without_absent(text, {"b.md": ""}), "nav:\n  - B: b.md\n")

    def test_links_lead_to_pages(self):
        for page, text in self.site.pages.items():
            for target in re.findall(r"\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)", re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))):
                there = os.path.normpath(os.path.join(os.path.dirname(page), target))
                if not page.startswith("source/"):
                    self.assertTrue(there in self.site.pages or there in self.site.files, f"{page}: {target}")

    def test_links_out_of_docs_lead_to_references(self):
        self.assertIn("(reference/nccl.md)", self.site.pages["index.md"])
        self.assertIn("(../source/examples/nccl/ring.c.md)", self.site.pages["guide/messages.md"])
        with self.assertRaisesRegex(stage.Fault, r"docs/index\.md: a link to nothing\.md, which does not exist"):
            self.site.target("docs/index.md", "index.md", "nothing.md")

    def test_lists_are_told_from_paragraphs(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "a.md"), "w", encoding="utf-8") as f:
                f.write("some text:\n- one\n- two\n```\ntext\n- no list\n```\n")
            self.assertEqual(stage.Site(folder).converted("a.md", "a.md"), "some text:\n\n- one\n- two\n```\ntext\n- no list\n```\n")


class Reference(unittest.TestCase):
    def test_every_public_function_is_there(self):
        for name, page in ((h, stage.MADE_BY[f"include/{h}"]) for h in stage.REFERENCES):
            text = headers.page(headers.parse(os.path.join(ROOT, "include", name)), headers.since(), "", "")
            declared = set(DECLARED.findall(read(f"include/{name}")))
            self.assertGreater(len(declared), 15, name)
            aliases = {f"p{n}" for n in declared} & declared
            for function in declared - aliases:
                self.assertIn(f"\n### {function}\n", text, page)
                self.assertRegex(text, rf"\n\| \[`{function}`\]\(#{function.lower()}\) \| (Kolo only|1|2\.\d+|2\.3 or before) \| (yes|partly|no) \| .+ \| .+ \|\n")
            for alias in aliases:
                self.assertIn(f"also as `{alias}`", text)

    def test_the_table_of_releases_has_nccls_functions_and_no_others(self):
        declared = {f.name for h in ("nccl.h", "nccl_device.h") for f in headers.parse(os.path.join(ROOT, "include", h)).functions}
        self.assertEqual(set(headers.since()), declared, "tools/site/since.txt")
        for name, (_, supported, remark) in headers.since().items():
            self.assertIn(supported, ("yes", "partly", "no"), name)
            self.assertTrue(remark or supported == "yes", f"{name}: a remark says why")

    def test_unsupported_functions_are_those_that_the_header_refuses(self):
        """The header's comment of such a function begins with its refusal."""
        header = headers.parse(os.path.join(ROOT, "include/nccl_device.h"))
        refused = {f.name for f in header.functions if re.match(r"ncclInvalidUsage|NULL: there is no", f.comment)} - {"ncclDevCommDestroy"}
        self.assertEqual({n for n, row in headers.since().items() if row[1] == "no"}, refused)

    def test_declarations_have_their_comments(self):
        functions = {f.name: f for h in stage.REFERENCES for f in headers.parse(os.path.join(ROOT, "include", h)).functions}
        self.assertIn("sendbuff == recvbuff", functions["ncclAllReduce"].comment)
        self.assertEqual(functions["ncclAllReduce"].section, "operations")
        self.assertEqual(functions["koloStreamLaunch"].codes, ["ncclInvalidArgument"])
        self.assertEqual(functions["ncclCommResume"].comment, functions["ncclCommSuspend"].comment)
        self.assertEqual(functions["ncclCommCount"].comment, "")

    def test_python(self):
        found = {heading: text for heading, _, text in pyreference.entries(os.path.join(ROOT, "python/kolocc"), os.path.join(ROOT, "python/src"))}
        self.assertEqual([h for h, text in found.items() if not text], [], "no docstring")
        self.assertLessEqual({"plan", "Communicator.allreduce", "Communicator.rank", "Stream.query", "Event.query", "Plan.to_dict"}, set(found))
        self.assertTrue(found["Communicator.allreduce"].endswith("Raises ValueError for buffers that do not fit."))


class Quotations(unittest.TestCase):
    def test_messages_are_in_the_sources(self):
        texts = "\n".join(one_blank(ctext.blanked(t)) for p in ctext.sources(ROOT, "src", "tools/kolo", "compat/cuda")
                          for _, t in ctext.literals(p.read_text(encoding="utf-8")))
        rows = re.findall(r"^\| `(.+?)` \| .* \| .* \|$", read("docs/troubleshooting.md"), re.M)
        quoted = [r for r in rows if not re.fullmatch(r"ncclI?\w+", r)]
        self.assertGreater(len(quoted), 50)
        for message in quoted:
            self.assertTrue(one_blank(message) in texts or message in SYSTEM, f"docs/troubleshooting.md: no source has the message: {message}")

    def test_code_is_in_the_example_that_is_named(self):
        pages = sorted(p for p in os.listdir(os.path.join(ROOT, "docs/guide")) if p.endswith(".md"))
        found = 0
        for page in pages:
            text = read(f"docs/guide/{page}")
            for m in re.finditer(r"^```c\n(.*?)^```", text, re.M | re.S):
                files = re.findall(r"\]\(\.\./\.\./(examples/[\w/.]+)\)", text[:m.start()])
                self.assertTrue(files, f"docs/guide/{page}: no example is named before the code")
                self.assertIn(m.group(1), read(files[-1]), f"docs/guide/{page}: not in {files[-1]}")
                found += 1
        self.assertGreater(found, 8)


SYSTEM = {  # texts that are not the program's own
    "Too many open files": "strerror(EMFILE)",
    "undefined symbol: __koloBlockIdx": "the dynamic loader; the symbol is in compat/cuda",
}

if __name__ == "__main__":
    unittest.main()
