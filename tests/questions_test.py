#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Questions as people ask them, in docs/explain.md and docs/logs.md: one command each, whose first line is the answer that stands
there. KOLO_RENEW=1 writes the answers anew."""
import json
import os
import re

import tool

PAGES = {"docs/explain.md": 4, "docs/logs.md": 28}  # how many questions each has


def read(page):
    with open(page, encoding="utf-8") as f:
        text = f.read()
    table = re.search(r"<!-- questions -->\n(.*)<!-- /questions -->", text, flags=re.S)[1]
    return text, table, re.findall(r"^\| (.*?) \| `kolo (.*?)` \|", table, flags=re.M)


class Questions(tool.Case):
    def first_line(self, command):
        p = tool.run(*command.split())
        return (p.stdout or p.stderr).splitlines()[0].replace("|", "\\|")

    def test_first_lines(self):
        for page, n in PAGES.items():
            with self.subTest(page):
                text, table, rows = read(page)
                self.assertEqual(len(rows), n)
                lines = [f"| {question} | `kolo {command}` | {self.first_line(command)} |\n" for question, command in rows]
                head = "".join(table.splitlines(keepends=True)[:2])
                if os.environ.get("KOLO_RENEW"):
                    with open(page, "w", encoding="utf-8") as f:
                        f.write(text.replace(table, head + "".join(lines)))
                else:
                    self.assertEqual(table, head + "".join(lines), "KOLO_RENEW=1 writes the answers anew")

    def test_they_are_the_answers(self):
        slow, nics, release, log = (json.loads(tool.good(*command.split(), "--json")) for _, command in read("docs/explain.md")[2])
        self.assertIn("few_nvlinks", {f["code"] for f in slow["faults"]})
        ring = next(c for c in nics["changes"] if c["subject"] == "ring: GB/s to the network")
        self.assertEqual(ring["b"], 2 * ring["a"])
        channels = next(c for c in release["changes"] if c["what"] == "channels")
        self.assertNotEqual(channels["a"], channels["b"])
        self.assertEqual(log["findings"][0]["code"], "gdr_far")


if __name__ == "__main__":
    tool.main()
