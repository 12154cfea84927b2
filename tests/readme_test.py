#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of README.md, in its order, in a copy of the sources, have the results that it shows.

Where mounts are allowed the copy has the release build of this tree and stands at its path, so that only files that a fresh clone
would lack are built again; elsewhere everything is. Each line `$ COMMAND` of its blocks is run, all by one shell; a block of C is first written to the file that the line before it
names. Only `./dev test` is left out: it would run this test. Nothing is installed but below a scratch folder, packages neither.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEFT_OUT = "./dev test"


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def write(text, *path):
    with open(os.path.join(*path), "w", encoding="utf-8") as f:
        f.write(text)


def steps(page):
    """("file", name, text) and ("command", line, lines that it is shown to print), in order."""
    for before, kind, body in re.findall(r"(?:^|\n)([^\n]*)\n+```(\w*)\n(.*?)```", page, flags=re.S):
        if kind:
            yield "file", re.search(r"`([\w.]+)`", before).group(1), body
            continue
        parts = re.split(r"^\$ (.*)\n", body, flags=re.M)
        yield from (("command", command, shown.splitlines()) for command, shown in zip(parts[1::2], parts[2::2]))


def copy_sources(to):
    """The files of a clone if everything were committed."""
    if subprocess.run(["git", "-C", ROOT, "rev-parse"], capture_output=True, check=False).returncode:
        shutil.copytree(ROOT, to, symlinks=True, ignore=shutil.ignore_patterns("build", ".git"))
        return
    names = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        if os.path.lexists(os.path.join(ROOT, name)):
            os.makedirs(os.path.dirname(os.path.join(to, name)), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), os.path.join(to, name), follow_symlinks=False)


def copy_build(to):
    """The release build without the programs of tests, as old as it is; false: there is none."""
    build = os.path.join(ROOT, "build", "release")
    if not os.path.isfile(os.path.join(build, "build.ninja")):
        return False
    shutil.copytree(build, os.path.join(to, "build", "release"), symlinks=True, ignore=shutil.ignore_patterns("bin", "Testing"))
    return True


def mounting():
    """Words before a command that let it mount; None: not allowed here."""
    for words in (["unshare", "-m"], ["unshare", "-rm"]):
        try:
            if not subprocess.run([*words, "mount", "--bind", "/tmp", "/tmp"], stderr=subprocess.DEVNULL, check=False).returncode:
                return words
        except FileNotFoundError:
            pass
    return None


def stand_in(folder, name):
    """A program that changes nothing, and leaves a trace of having been called."""
    write(f"#!/bin/sh\ntouch {folder}/called\nexit 1\n", folder, name)
    os.chmod(os.path.join(folder, name), 0o755)


class Readme(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="kolo-readme.")
        self.addCleanup(shutil.rmtree, self.scratch)
        self.tree, self.bin, self.out = (os.path.join(self.scratch, n) for n in ("tree", "bin", "out"))
        copy_sources(self.tree)
        for folder in (self.bin, self.out):
            os.mkdir(folder)
        for name in ("apt-get", "sudo"):
            stand_in(self.bin, name)

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
        return {**env, "PATH": f"{self.bin}:{env['PATH']}", "DESTDIR": os.path.join(self.scratch, "root")}

    def run_all(self, commands):
        """Stop at the first that fails; the output of the n-th is in out/n."""
        script = "".join(f"{{ {c}\n}} >{self.out}/{n} 2>&1 </dev/null || exit 1\n" for n, c in enumerate(commands))
        words = mounting()
        if words and copy_build(self.tree):
            at_root = ["sh", "-c", 'mount --bind "$1" "$2" && cd "$2" && exec sh -c "$3"', "sh", self.tree, ROOT, script]
            return subprocess.run(words + at_root, env=self.environment(), check=False).returncode
        return subprocess.run(["sh", "-c", script], cwd=self.tree, env=self.environment(), check=False).returncode

    def test_walk(self):
        walk = list(steps(read(self.tree, "README.md")))
        for _, name, text in (s for s in walk if s[0] == "file"):
            write(text, self.tree, name)
        commands = [(line, shown) for kind, line, shown in walk if kind == "command" and line != LEFT_OUT]
        self.assertGreater(len(commands), 8)
        status = self.run_all([line for line, _ in commands])
        if os.path.exists(os.path.join(self.bin, "called")):
            self.skipTest("packages are missing, which ./dev would install")
        last = max(map(int, os.listdir(self.out)))
        self.assertEqual(status, 0, f"$ {commands[last][0]}\n{read(self.out, str(last))[-2000:]}")
        self.check_hello(commands)
        self.check_installation()

    def check_hello(self, commands):
        """Ranks print in any order."""
        n, shown = next((n, shown) for n, (line, shown) in enumerate(commands) if line.endswith("./hello"))
        self.assertGreater(len(shown), 1)
        self.assertEqual(sorted(read(self.out, str(n)).splitlines()), shown)

    def check_installation(self):
        found = {name for _, _, names in os.walk(os.path.join(self.scratch, "root")) for name in names}
        self.assertLessEqual({"kolo", "kolo.h", "nccl.h", "libkolo.so", "libnccl.so.2", "kolo.pc", "koloConfig.cmake"}, found)


def main():
    result = unittest.main(exit=False).result
    for _, why in result.skipped:
        print(f"skipped: {why}", file=sys.stderr)
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)


if __name__ == "__main__":
    main()
