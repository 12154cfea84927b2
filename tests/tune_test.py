#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo tune`: its measurements are kept as a whole and read again; communicators choose by it if all of their ranks know it, and
`kolo explain` shows it beside the model's times."""
import os
import re
import subprocess
import sys
import tempfile

import tool

SIZES = 8
NAMES = {"AllReduce": ("Ring", "Flat", "Tree", "OneShot")}


def checksum(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 % (1 << 64)
    return h


def kept(path, machine, quick):
    """A file that says: with algorithm `quick` every operation takes 1 us, with others 1 ms."""
    lines = ["kolo tuning 1", machine]
    for algo in NAMES["AllReduce"]:
        for ranks in (2, 4, 8):
            lines.append(" ".join(["AllReduce", algo, str(ranks)] + [str(1000 if algo == quick else 1000000)] * SIZES))
    text = "\n".join(lines) + "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{text}end {checksum(text):016x}\n")


class Tune(tool.Case):
    words = ("tune",)

    @classmethod
    def setUpClass(cls):
        """The file of a second of measuring."""
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.measured = os.path.join(cls.folder.name, "kolo", "tuning")
        cls.file = os.path.join(cls.folder.name, "file")
        tool.good("tune", "--file", cls.measured, "-t", "1", "--keep")  # whatever else runs here
        with open(cls.measured, encoding="utf-8") as file:
            cls.lines = file.read().splitlines()
        cls.machine = cls.lines[1]

    def explained(self, size, **env):
        answer = tool.json.loads(tool.good("explain", "allreduce", size, "--ranks", "2", "--constants", "host", "--json", **env))
        answer.pop("selected", None)  # measured anew for each answer
        return answer

    def algorithms(self, env_of_rank):
        """Each rank's reported choices for 8 bytes and for 8 MiB."""
        script = 'export KOLO_TUNING=$(eval echo \\$TUNING$KOLO_RANK); exec "$0" perf all_reduce -b 8 -e 8M -f 1048576 -n 1 -c 0'
        p = tool.run("run", "-n", "2", "--", "sh", "-c", script, tool.KOLO, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="TUNING",
                     **{f"TUNING{rank}": value for rank, value in enumerate(env_of_rank)})
        self.assertEqual(p.returncode, 0, p.stderr)
        return set(re.findall(r"AllReduce: \d+ Bytes -> Algo (\w+) ", p.stdout + p.stderr))

    def test_it_is_kept_and_read(self):
        self.assertEqual(self.lines[0], "kolo tuning 1")
        self.assertTrue(any(line.startswith("AllReduce Ring 2 ") for line in self.lines))
        self.assertEqual(os.listdir(os.path.dirname(self.measured)), ["tuning"])
        self.assertIn("AllReduce", self.good("--show", "--file", self.measured))
        kept(self.file, self.machine, "Ring")
        self.good("--forget", "--file", self.file)
        self.refused(1, "No such file", "--show", "--file", self.file)
        self.refused(1, "No such file", "--forget", "--file", self.file)

    def test_what_is_damaged_or_of_another_machine_does_not_count(self):
        plain = self.explained("8", KOLO_TUNING="none")
        kept(self.file, self.machine + " more", "Ring")
        self.refused(1, "another machine", "--show", "--file", self.file)
        self.assertEqual(self.explained("8", KOLO_TUNING=self.file), plain)
        kept(self.file, self.machine, "Ring")
        with open(self.file, "a", encoding="utf-8") as file:
            file.write("more\n")
        self.refused(1, "checksum", "--show", "--file", self.file)
        self.assertEqual(self.explained("8", KOLO_TUNING=self.file), plain)

    def test_what_is_quickest_is_chosen(self):
        for quick in NAMES["AllReduce"]:
            kept(self.file, self.machine, quick)
            for size in ("8", "64K", "8M"):
                choice = self.explained(size, KOLO_TUNING=self.file)["choice"]
                self.assertEqual((choice["algorithm"], choice["time_us"]), (quick, 1), size)
                self.assertNotEqual(choice["modelled_us"], 1)

    def test_all_ranks_have_to_know_it(self):
        other = self.file + "2"
        kept(self.file, self.machine, "Ring")
        kept(other, self.machine, "Flat")
        self.assertEqual(self.algorithms((self.file, self.file)), {"RING"})
        self.assertEqual(self.algorithms((other, other)), {"FLAT"})
        modelled = self.algorithms(("none", "none"))
        self.assertEqual(modelled, {"FLAT", "RING"})
        self.assertEqual(self.algorithms((self.file, "none")), modelled)
        self.assertEqual(self.algorithms((self.file, other)), modelled)

    def test_noise_is_not_kept(self):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
        path = os.path.join(self.folder.name, "noise")
        try:
            p = tool.run("tune", "--file", path, "-t", "1")
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertRegex(p.stderr, r"other programs had \d+ % of the CPUs meanwhile, .*: not kept; .* --keep")
            self.assertEqual(p.stdout, "")
            self.assertFalse(os.path.exists(path))
        finally:
            for process in busy:
                process.kill()
                process.wait()

    def test_wrong_usage(self):
        self.refused(2, "unknown option", "--wrong")
        self.refused(2, "exclude each other", "--show", "--forget")
        self.refused(1, "none", KOLO_TUNING="none")
        self.refused(1, "Not a directory", "--file", "/dev/null/tuning")
        self.refused(1, "Is a directory", "--file", self.folder.name)
        self.refused(1, "Is a directory", "--show", "--file", self.folder.name)


if __name__ == "__main__":
    tool.main()
