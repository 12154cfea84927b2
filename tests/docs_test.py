#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the pages show of the tool is what it prints.

Of each block, the lines behind `$ kolo ...` are held against what the command prints now; a line `...` stands for any number
of lines. README.md shows first lines only, from the folder of the machines. Commands about the machine they run on, and those that
write files, are left out. Machines of others are those of KOLO_SHARED (else ../shared, where that exists).
"""
import os
import re
import shlex

import tool

ROOT = "../shared/topologies"


def blocks(file):
    with open(file, encoding="utf-8") as f:
        fenced = re.split(r"^```.*\n", f.read(), flags=re.M)
    return fenced[1::2]


def examples(block):
    """The commands of a block, each with the lines that follow."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def is_ours(command):
    return re.match(r"([A-Z_]+=\S+ )*kolo (explain|topo|graph) ", command) and ">" not in command and "--ranks" not in command


def lines_of(text):
    return [line.rstrip() for line in text.rstrip("\n").split("\n")]


def missing(shown, printed):
    """The first run of lines shown that is not printed where it should be; None if all are."""
    runs, at, rest = [[]], 0, lines_of(printed)
    for line in lines_of(shown):
        runs.append([]) if line.strip() == "..." else runs[-1].append(line)
    for i, run in enumerate(runs):
        last = len(rest) - len(run)
        starts = [0] if not i else [last] if i == len(runs) - 1 and run else range(at, last + 1)
        found = next((k for k in starts if k >= at and rest[k:k + len(run)] == run), None)
        if found is None or (len(runs) == 1 and len(run) < len(rest)):
            return "\n".join(run)
        at = found + len(run)
    return None


class Pages(tool.Case):
    def printed(self, command):
        words = shlex.split(command)
        env = dict(w.split("=", 1) for w in words[:words.index("kolo")])
        args = [w.replace(ROOT, tool.SHARED) for w in words[words.index("kolo") + 1:]]
        return tool.good(*args, **env).replace(tool.SHARED, ROOT)

    def test_explain(self):
        shown = [(c, text) for b in blocks("docs/explain.md") for c, text in examples(b) if is_ours(c)]
        self.assertGreater(len(shown), 12)
        with self.subTest("machines of others"):
            self.need_shared()
        for command, text in shown:
            if ROOT in command and not os.path.isdir(tool.SHARED):
                continue
            with self.subTest(command):
                self.assertIsNone(missing(text, self.printed(command)))

    def test_readme(self):
        shown = [(c, text) for b in blocks("README.md") for c, text in examples(b) if c.startswith("kolo explain")]
        self.assertGreater(len(shown), 4)
        for command, text in shown:
            with self.subTest(command):
                out = self.printed(command.replace("--topo ", f"--topo {tool.DATA}/synthetic/"))
                self.assertEqual(out.split("\n")[0], text.rstrip("\n"))


if __name__ == "__main__":
    tool.main()
