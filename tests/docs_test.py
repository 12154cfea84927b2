#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tool's output for people: a page for each kind of answer, and the quotations in documents.

The pages are tests/data/explain/*.txt: the command, and its whole output. They are the only place where tests hold on to
sentences; everything else is asserted on JSON. KOLO_RENEW=1 writes them anew, to be read before they are kept.

docs/explain.md and README.md quote pages and nothing else: in their blocks the lines behind `$ kolo ...` are the lines of the page
with that command, a line `...` standing for any number of lines; README.md shows first lines only. A command without lines behind it must
succeed. Commands about the machine they run on, and those that write files, are left out.

docs/faults.md quotes the output of jobs that fail. Each of its commands is run, at ports that are free here, and the sentence about
the fault is looked for in the output, and in the quotation.

docs/tour.md is walked through: the file that it shows is written, and each command of its `console` blocks is run, in order, in a folder that looks like a clone
with a release build. The output is the one shown, with lines `...` for any lines, and ranks in any order. KOLO_RENEW=1 writes outputs without such lines anew.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import ports
import tool

PAGES = "tests/data/explain"
MACHINES = f"{tool.DATA}/synthetic/"


def read(file):
    with open(file, encoding="utf-8") as f:
        return f.read()


def printed(command):
    """The output, without the times that differ from run to run."""
    words = shlex.split(command)
    env = dict(w.split("=", 1) for w in words[:words.index("kolo")])
    return re.sub(r"[0-9.e+-]+ ms\)", "... ms)", tool.good(*words[words.index("kolo") + 1:], **env))


def pages():
    """{command: its output}"""
    found = {}
    for file in sorted(glob.glob(f"{PAGES}/*.txt")):
        command, _, text = read(file).partition("\n")
        found[command.removeprefix("$ ")] = text
    return found


def examples(file):
    """The commands that a document shows, each with the lines that follow."""
    for block in re.split(r"^```.*\n", read(file), flags=re.M)[1::2]:
        parts = re.split(r"^\$ (.*)\n", block, flags=re.M)
        yield from zip(parts[1::2], parts[2::2])


def is_ours(command):
    return re.match(r"([A-Z_]+=\S+ )*kolo (explain|topo|graph) ", command) and ">" not in command and "--ranks" not in command


def lines_of(text):
    return [line.rstrip() for line in text.rstrip("\n").split("\n")]


def missing(quoted, page):
    """The first run of quoted lines that does not stand where it should; None if all do."""
    runs, at, rest = [[]], 0, lines_of(page)
    for line in lines_of(quoted):
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
    def test_pages(self):
        files = sorted(glob.glob(f"{PAGES}/*.txt"))
        self.assertTrue(1 <= len(files) <= 8, "whole pages are hard to keep: at most eight")
        for file in files:
            command, _, text = read(file).partition("\n")
            with self.subTest(file):
                now = printed(command.removeprefix("$ "))
                if os.environ.get("KOLO_RENEW"):
                    with open(file, "w", encoding="utf-8") as f:
                        f.write(f"{command}\n{now}")
                else:
                    self.assertEqual(now, text)

    def test_explain(self):
        quoted = 0
        for command, text in filter(lambda e: is_ours(e[0]), examples("docs/explain.md")):
            with self.subTest(command):
                if not text.strip():
                    printed(command)
                    continue
                quoted += 1
                self.assertIn(command, pages())
                self.assertIsNone(missing(text, pages()[command]))
        self.assertGreater(quoted, 5)

    def test_readme(self):
        shown = [(c, text) for c, text in examples("README.md") if c.startswith("kolo explain")]
        self.assertGreater(len(shown), 4)
        for command, text in shown:
            with self.subTest(command):
                page = pages()[command.replace("--topo ", f"--topo {MACHINES}")]
                self.assertEqual(page.split("\n")[0], text.rstrip("\n"))


# The quoted sentence of each fault of docs/faults.md, by its heading.
FAULTS = {
    "A rank that dies": r"rank 2 \(host .*, pid \d+\) is gone: its connection ",
    "A rank that stands still": r"waiting for rank 2 \(host .*, pid \d+\), which is silent: is it stopped, or cut off\?",
    "A rank that never comes": r"1 of 2 ranks did not join within 2 s: rank 1; see whether it started",
    "Nobody at the rendezvous, or no way to it":
        r"rank 1 cannot join the rendezvous at 127\.0\.0\.1:4712, which rank 0 opens: Connection refused",
    "Rank 0 is not on this host, or dead":
        r"rank 1 did not hear from rank 0 on this host within 2 s \(nobody has written kolo-.*\); see whether that started",
    "A wrong secret": r"rank 1 cannot join .*: secret mismatch with 127\.0\.0\.1:4713; all ranks need the same",
    "Calls that differ": r"rank 2 called AllReduce\(4 elements\) as #1 where the others called AllReduce\(2 elements\)",
    "Too few descriptors": r"joining the communicator: .*: Too many open files; raise `ulimit -n`",
    "Files that may not be large enough": r"cannot give segment kolo-\w+ its \d+ bytes; raise `ulimit -f`: File too large",
    "No interface": r'no network interface matches NCCL_SOCKET_IFNAME="=ib7"; there are: ',
    "A setting that is wrong": r'rank \d: joining the communicator: NCCL_ALGO: no name "nonsense"; known are Tree, ',
    "Settings that differ":
        r"NCCL_PROTO is unset on ranks 0, 1 and LL on rank 2 \(host .*, pid \d+\): all ranks need the same",
}


class Faults(unittest.TestCase):
    def test_faults(self):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
        env = {**clean, "HOME": "/dev/null/home", "PATH": os.path.dirname(tool.KOLO) + ":" + os.environ["PATH"]}
        found = dict(re.findall(r"^## (.*)\n\n```console\n\$ ((?:.*\n)+?)```$", read("docs/faults.md"), re.M))
        self.assertEqual(list(found), list(FAULTS))
        for heading, block in found.items():
            with self.subTest(heading):
                command, _, quoted = block.partition("\n")
                self.assertRegex(quoted, FAULTS[heading])
                told = FAULTS[heading]
                for port in re.findall(r"KOLO_COMM_ID=127\.0\.0\.1:(\d+)", command):
                    here = str(ports.free_port())
                    command, told = command.replace(port, here), told.replace(port, here)
                p = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                                   timeout=tool.HANG_S, env=env, check=False)
                self.assertNotEqual(p.returncode, 0)
                self.assertRegex(p.stdout, told)


class Tour(unittest.TestCase):
    page = "docs/tour.md"

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kolo-tour.")
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("include", "tests", "examples"):
            os.symlink(os.path.abspath(name), f"{self.folder}/{name}")
        os.mkdir(f"{self.folder}/build")
        os.symlink(os.path.dirname(tool.KOLO), f"{self.folder}/build/release")

    def run_here(self, command):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
        env = {**clean, "HOME": "/dev/null/home", "KOLO_NVML": "0", "PATH": f"{self.folder}/build/release:" + os.environ["PATH"]}
        return subprocess.run(["sh", "-c", command], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                              timeout=tool.HANG_S, env=env, check=False)

    @unittest.skipIf(tool.SANITIZE, "a program that uses the library would need the sanitizer as well")
    def test_tour(self):
        text, walked = read(self.page), 0
        for name, body in re.findall(r"`([\w.]+)`:\n\n```c\n(.*?)^```", text, re.M | re.S):
            with open(f"{self.folder}/{name}", "w", encoding="utf-8") as f:
                f.write(body)
        for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
            parts = re.split(r"^\$ (.*)\n", block, flags=re.M)
            for command, shown in zip(parts[1::2], parts[2::2]):
                walked += 1
                with self.subTest(command):
                    p = self.run_here(command)
                    self.assertEqual(p.returncode, 0, p.stdout)
                    text = self.compared(text, command, shown, p.stdout)
        self.assertGreater(walked, 10)
        if os.environ.get("KOLO_RENEW"):
            with open(self.page, "w", encoding="utf-8") as f:
                f.write(text)

    def compared(self, text, command, shown, printed):
        """The page, with the output of the command renewed if that is wanted."""
        if shown.startswith("rank 0 "):
            printed = "".join(sorted(printed.splitlines(True)))
        if os.environ.get("KOLO_RENEW") and "...\n" not in shown:
            return text.replace(f"$ {command}\n{shown}", f"$ {command}\n{printed}")
        self.assertIsNone(missing(shown, printed), printed)
        return text


if __name__ == "__main__":
    tool.main()
