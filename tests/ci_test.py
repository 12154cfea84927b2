#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The workflow of docs/ci.md: the commands of its steps, in order, in a folder with a program for NCCL (tests/data/ci), as a runner of GitHub runs them. The steps that
install packages and build Kolo are left out; the build is the one under test."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import tool

PAGE = "docs/ci.md"
LEFT_OUT = ["Packages", "Build Kolo"]


def steps():
    """(name, commands) of each step that runs some, without a library for YAML."""
    with open(PAGE, encoding="utf-8") as f:
        workflow = re.search(r"^```yaml\n(.*?)^```", f.read(), re.M | re.S).group(1)
    for step in re.split(r"^      - ", workflow, flags=re.M)[1:]:
        name = re.search(r"name: (.*)", step)
        run = re.search(r"^        run: (?:[|>]\n((?:          .*\n)+)|(.*)\n)", step, re.M)
        if run:
            yield name.group(1), run.group(2) or re.sub(r"^          ", "", run.group(1), flags=re.M)


class Runner:
    """A runner's folder and environment: $GITHUB_PATH and $GITHUB_ENV count for later steps."""

    def __init__(self, folder):
        self.folder = folder
        self.env = {"HOME": folder, "PATH": os.environ["PATH"], "KOLO_NVML": "0", "GITHUB_PATH": f"{folder}/path", "GITHUB_ENV": f"{folder}/env"}

    def run(self, commands):
        p = subprocess.run(["bash", "-e", "-c", commands], cwd=f"{self.folder}/work", env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           encoding="utf-8", timeout=tool.HANG_S, check=False)
        for line in self.new_lines("env"):
            name, _, value = line.partition("=")
            self.env[name] = value
        for line in self.new_lines("path"):
            self.env["PATH"] = f"{line}:{self.env['PATH']}"
        return p

    def new_lines(self, name):
        path = f"{self.folder}/{name}"
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
        os.unlink(path)
        return lines


@unittest.skipIf(tool.SANITIZE, "a program that uses the library would need the sanitizer as well")
class Workflow(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kolo-ci.")
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copytree("tests/data/ci", f"{self.folder}/work")
        os.mkdir(f"{self.folder}/work/kolo")
        os.symlink(os.environ["KOLO_BUILD"], f"{self.folder}/work/kolo/build")

    def test_steps(self):
        found, runner = list(steps()), Runner(self.folder)
        self.assertEqual([name for name, _ in found][:2], LEFT_OUT)
        said = {}
        for name, commands in found[2:]:
            p = runner.run(commands)
            self.assertEqual(p.returncode, 0, f"{name}: {commands}{p.stdout}")
            said[name] = p.stdout
        self.assertIn("8 ranks, 0 wrong", said["One process, the eight devices of a DGX H100"])
        self.assertEqual(said["Four processes on two hosts"].count("] 4 ranks, 0 wrong"), 4)
        self.assertIn("rank 3: exit code 7", said["A rank that dies is noticed by the others"])


if __name__ == "__main__":
    tool.main()
