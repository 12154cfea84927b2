# SPDX-License-Identifier: Apache-2.0
"""Shared by tests of the kolo tool: running it, the machines, and skipping.

A test is a Case with the words that begin its commands, and ends with `tool.main()`:

    class Nics(tool.Case):
        words = ("explain", "nics")

        def test_all_are_used(self):
            self.assertEqual(self.json("--topo", tool.machine("a100-nvsw-8nic-200g"))["used"], 8)

Machines are those of tests/data/; with KOLO_SHARED (else ../shared, where that exists) also those of topologies/ there.
Tests that cannot run here are skipped with the reason. Sentences are checked by docs_test.py alone: other tests assert JSON, exit codes and
error lines.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

KOLO = os.path.join(os.environ["KOLO_BUILD"], "kolo")
DATA = "tests/data/topologies"
EXAMPLES = "tests/data/examples"
SHARED = os.path.join(os.environ.get("KOLO_SHARED") or "../shared", "topologies")
HANG_S = int(os.environ.get("TEST_HANG_S", 900))  # no test fails because it is slow
SANITIZE = os.environ.get("TEST_SANITIZE", "")  # address,undefined | thread; empty: none
NCCL = "2.31.2"  # the release that is followed where nobody asks for another
NO_SHARED = "no machines of others (KOLO_SHARED)"


def run(*words, stdin="", stdout=subprocess.PIPE, cwd=None, **env):
    """Run the tool with no settings but `env`, and as if this machine had no GPUs."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
    return subprocess.run([KOLO, *words], input=stdin, stdout=stdout, stderr=subprocess.PIPE, encoding="utf-8", timeout=HANG_S, cwd=cwd,
                          env={**clean, "HOME": "/nonexistent", "KOLO_NVML": "0", **env}, check=False)


def checked(p):
    """Its output; it must have succeeded, and may have warned."""
    complaints = [line for line in p.stderr.splitlines() if not line.startswith("warning: ")]
    if p.returncode or complaints:
        raise AssertionError(f"{p.args}: exit {p.returncode}: {p.stderr or p.stdout}")
    return p.stdout


def good(*words, **env):
    return checked(run(*words, **env))


# ---- machines ----

def machine(name):
    return f"{DATA}/synthetic/{name}.xml"


def is_sound(file):
    return not os.path.basename(file).startswith("bad-")


def machines(*folders):
    """All files of these folders of tests/data/topologies/."""
    return sorted(f for folder in folders for f in glob.glob(f"{DATA}/{folder}/*.xml"))


def written(text):
    """A file with this text, which lives as long as the returned object."""
    t = tempfile.NamedTemporaryFile("w", suffix=".xml", encoding="utf-8")
    t.write(text)
    t.flush()
    return t


def recorded(name):
    """A folder for --sysfs, laid out from tests/data/sysfs/NAME.tree as tests/sysfs_tree.h does; lives as long as the returned object."""
    d = tempfile.TemporaryDirectory(prefix="kolo_sysfs_")
    with open(f"tests/data/sysfs/{name}.tree", encoding="utf-8") as tree:
        for line in tree.read().splitlines():
            if line.endswith("/"):
                os.makedirs(os.path.join(d.name, line), exist_ok=True)
                continue
            at = min((line.find(sep), sep) for sep in (" : ", " -> ") if sep in line)
            path = os.path.join(d.name, line[:at[0]])
            content = line[at[0] + len(at[1]):]
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if at[1] == " -> ":
                os.symlink(content, path)
            else:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(content.replace("\\n", "\n") + "\n")
    return d


def second_port(folder, card):
    """Give an InfiniBand card of a folder for --sysfs another port, like its first."""
    ports = os.path.join(folder, "class/infiniband", card, "ports")
    shutil.copytree(os.path.join(ports, "1"), os.path.join(ports, "2"))


def swept(files):
    """Of the machines that a test goes through one by one: all, or every fifth with a sanitizer, which sees the same code in each."""
    return files[::5] if SANITIZE else files


def ends(versions):
    """All versions of a plugin's interface, or the oldest and the newest with a sanitizer: net_plugin_test goes through all adapters there."""
    return (versions[0], versions[-1]) if SANITIZE else versions


# ---- tests ----

class Case(unittest.TestCase):
    words = ()
    maxDiff = None

    def run_tool(self, *args, **env):
        return run(*self.words, *args, **env)

    def good(self, *args, **env):
        return checked(self.run_tool(*args, **env))

    def json(self, *args, **env):
        return json.loads(self.good(*args, "--json", **env))

    def check_refusal(self, p, code, want, what):
        """Nothing but one line of diagnostics, which `want` is found in."""
        self.assertEqual((p.returncode, p.stdout or "", p.stderr.count("\n")), (code, "", 1), (what, p.stderr))
        self.assertRegex(p.stderr, want, what)

    def refused(self, code, want, *args, **env):
        self.check_refusal(self.run_tool(*args, **env), code, want, args)

    def good_or_refused(self, *args, **env):
        """Its output, or None after a refusal in one line: for machines that need not be sound."""
        p = self.run_tool(*args, **env)
        if p.returncode:
            self.check_refusal(p, 1, ".", args)
            return None
        return p.stdout

    def need_shared(self):
        if not os.path.isdir(SHARED):
            self.skipTest(NO_SHARED)

    def shared(self, name):
        """A machine of others; without it the test is skipped."""
        self.need_shared()
        return f"{SHARED}/{name}.xml"

    def shared_machines(self, *folders):
        """All files of these folders, for a test that goes on without them: then that part of it is skipped."""
        with self.subTest("machines of others"):
            self.need_shared()
        return sorted(f for folder in folders for f in glob.glob(f"{SHARED}/{folder}/*.xml"))


def main():
    """Run the tests of the script. Skipped tests are printed in lines that tools/dev/ctest_count.py counts."""
    result = unittest.main(exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    parts = [(getattr(test, "test_case", test), test, why) for test, why in result.skipped]
    if result.testsRun and sum(whole is test for whole, test, _ in parts) == result.testsRun:
        print("skipped:", ", ".join(sorted({why for _, _, why in parts})), file=sys.stderr)
        sys.exit(77)
    for whole, _, why in parts:
        print(f"skipped {whole.id().split('.')[-1]}: {why}", file=sys.stderr)
