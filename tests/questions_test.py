#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The questions that come first, in docs/explain.md: one command each, whose first line is the answer that stands there. KOLO_RENEW=1
writes the answers anew."""
import json
import os
import re

import tool

PAGE = "docs/explain.md"


class Questions(tool.Case):
    def setUp(self):
        with open(PAGE, encoding="utf-8") as f:
            self.page = f.read()
        self.table = re.search(r"<!-- questions -->\n(.*)<!-- /questions -->", self.page, flags=re.S)[1]
        self.rows = re.findall(r"^\| (.*) \| `kolo (.*)` \|", self.table, flags=re.M)

    def test_first_lines(self):
        self.assertEqual(len(self.rows), 4)
        lines = [f"| {question} | `kolo {command}` | {tool.good(*command.split()).splitlines()[0]} |\n" for question, command in self.rows]
        head = "".join(self.table.splitlines(keepends=True)[:2])
        if os.environ.get("KOLO_RENEW"):
            with open(PAGE, "w", encoding="utf-8") as f:
                f.write(self.page.replace(self.table, head + "".join(lines)))
        else:
            self.assertEqual(self.table, head + "".join(lines), "KOLO_RENEW=1 writes the answers anew")

    def test_they_are_the_answers(self):
        slow, nics, release, log = (json.loads(tool.good(*command.split(), "--json")) for _, command in self.rows)
        self.assertIn("few_nvlinks", {f["code"] for f in slow["faults"]})
        ring = next(c for c in nics["changes"] if c["subject"] == "ring: GB/s to the network")
        self.assertEqual(ring["b"], 2 * ring["a"])
        channels = next(c for c in release["changes"] if c["what"] == "channels")
        self.assertNotEqual(channels["a"], channels["b"])
        self.assertEqual(log["findings"][0]["code"], "gdr_far")


if __name__ == "__main__":
    tool.main()
