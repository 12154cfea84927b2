#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain --log` and `--bench`: real logs and tables of others, each with its expected diagnosis, and small own ones."""
import glob
import gzip
import os
import re
import subprocess
import sys
import tempfile
import unittest

import tool

LOGS = os.path.join(tool.SHARED, "logs")
BENCHES = os.path.join(os.path.dirname(tool.SHARED), "bench-results")

# The expected diagnosis of a log: codes of findings that stop a job or cost bandwidth. Others must have none.
PROBLEMS = {
    "2node-1xa100pcie-gdr-off-2.16.5": {"gdr_far"},
    "2node-2xv100-2x25g-2.26.6": {"machines_differ", "graphs_differ", "gdr_driver", "shm"},
    "2xa100pcie-nvbridge-degraded-2.27.7": {"machine"},
    "dgx-b200-init-timings-2.25": {"slow_init"},
    "fault-g7e-rtxpro6000-2node-no-kernel-2.29.2": {"no_kernel", "plugin_no_gdr", "failed"},
    "fault-gid-empty-after-linkflap-gb10-2.30": {"gid_empty"},
    "fault-nccltests-without-mpi-2.26.5": {"alone", "killed"},
    "fault-nvls-multicast-slots-2.29.7": {"nvls_slots", "failed"},
    "fault-too-many-xml-nodes-p5-2.30.4": {"xml_nodes"},
    "fault-ungrouped-sendrecv-2.29.2": {"ungrouped", "split_host", "socket", "setting"},
    "h200-kvm-8gpu-8nic-2.2x": {"virtual_pci"},
    "soft-roce-1gpu-per-node": {"gdr_driver", "slow_nic"},
}
WORST = {name: code for name, code in (
    ("fault-g7e-rtxpro6000-2node-no-kernel-2.29.2", "no_kernel"),
    ("fault-nccltests-without-mpi-2.26.5", "alone"),
    ("fault-ungrouped-sendrecv-2.29.2", "ungrouped"),
)}
REMARKS = {
    "alltoall-h20-2node-pxn-2.26.5": {"peer_channels"},
    "h100-6of8gpu-nvls-2.29.2": {"affinity"},
    "h20-2gpu-9nic-pxn-off": {"setting"},
}
# Logs with topology and channels: the plan of their release agrees in all that they print. Their release, where no line names it.
AGREE = {
    "1xv100sxm2-1nic-2.26.6": None,
    "2xa100pcie-nvbridge-2.27.7": None,
    "2xa100pcie-nvbridge-degraded-2.27.7": None,
    "4x4090-epyc-tcp-2.28.9": "2.28.9",
    "gb300-nvl72-2tray-8gpu-2.29.7": "2.29.7",
}

# How the first line of a log without problems reads: it shows that init finished, or is too short to show anything, or is none.
SOUND = ("shows no problem", "Nothing here failed", "Not a log of NCCL")

# Worst finding of a table that is faulty; all others have no problem but dips and differences in place.
FAULTY = {"a100pcie-2gpu-gdr-on-off-internal": "link", "anomaly-h100-pair-13GBps": "link", "alps-gh200-1to128nodes-allreduce": "wrong"}
NOISE = {"dip", "places", "falls"}
ALSO = {"alps-gh200-1to128nodes-allreduce": {"time_falls"}}
NO_ROWS = {"b300-1x8-allreduce-table"}


def named(folder):
    return {os.path.basename(f)[:-len(".txt")]: f for f in sorted(glob.glob(f"{folder}/*.txt"))}


def codes(o, problem):
    return {f["code"] for f in o["findings"] if (f["weight"] != "remark") == problem}


class Logs(tool.Case):
    words = ("explain", "--log")

    def setUp(self):
        self.files = named(LOGS)

    def need(self):
        if not self.files:
            self.skipTest("no logs of others (KOLO_SHARED)")

    def test_every_log_has_its_diagnosis(self):
        self.need()
        for name, file in self.files.items():
            with self.subTest(name):
                o = self.json(file)
                self.assertEqual(codes(o, True), PROBLEMS.get(name, set()))
                self.assertLessEqual(REMARKS.get(name, set()), codes(o, False))
                self.assertEqual(o["problem"], name in PROBLEMS)
                if name in WORST:
                    self.assertEqual(o["findings"][0]["code"], WORST[name])
                for f in o["findings"]:
                    self.assertTrue(f["text"] and f["at"]["line"] > 0, f)

    def test_plans_of_the_release_agree(self):
        self.need()
        for name, nccl in AGREE.items():
            with self.subTest(name):
                p = self.json(self.files[name], *(["--nccl", nccl] if nccl else []))["plan"]
                self.assertTrue(p["made"] and p["from_log"] and not p["other_release"], p)
                self.assertEqual(p["differences"], [])
                self.assertGreater(sum(part["checked"] for part in p["parts"].values()), 0)

    def test_a_file_of_the_machine_agrees_as_well(self):
        self.need()
        for log, machine, nccl in (("2xa100pcie-nvbridge-2.27.7", "2xa100pcie-nvbridge-fusednic", "2.27.7"),
                                   ("4x4090-epyc-tcp-2.28.9", "epyc-4x4090-tcp", "2.28.9")):
            p = self.json(self.files[log], "--topo", self.shared(f"real/{machine}"), "--nccl", nccl)["plan"]
            self.assertEqual((p["made"], p["from_log"], p["differences"]), (True, False, []))

    def test_text_and_json_agree(self):
        self.need()
        for name, file in self.files.items():
            first = self.good(file).splitlines()[0]
            self.assertEqual(any(words in first for words in SOUND), name not in PROBLEMS, name)

    def test_several_files_are_one_log(self):
        with tempfile.TemporaryDirectory() as d:
            for rank, version in ((0, "2.26.2"), (1, "2.28.9")):
                with open(f"{d}/{rank}", "w", encoding="utf-8") as f:
                    f.write(f"h{rank}:1:1 [0] NCCL INFO NCCL version {version}+cuda12.8\n")
            o = self.json(f"{d}/0", f"{d}/1")
            self.assertEqual([f["code"] for f in o["findings"]], ["versions_differ"])
            self.assertEqual(o["findings"][0]["at"]["file"], f"{d}/1")

    def test_gpus_without_p2p_are_findings(self):
        """Of the library's own lines, over the CUDA stand-in: a path that loses writes, no access, settings that forbid it."""
        build = os.environ["KOLO_BUILD"]
        if not os.path.exists(f"{build}/libkolo-cuda-standin.so.0") or tool.SANITIZE:
            self.skipTest("no CUDA stand-in with Kolo's kernels in this build, or Python would load a sanitized library")
        program = """
import ctypes
kolo, comms = ctypes.CDLL(None), (ctypes.c_void_p * 2)()
assert not kolo.ncclCommInitAll(comms, 2, None)
for comm in comms:
    assert not kolo.ncclCommDestroy(ctypes.c_void_p(comm))
"""
        for env, code, words in (({"KOLO_CUDA_P2P": "lost"}, "gpu_path", "writes get lost"), ({"KOLO_CUDA_P2P": "0"}, "gpu_path", "no access"),
                                 ({"NCCL_P2P_DISABLE": "1"}, "gpu_p2p_off", "NCCL_P2P_DISABLE"), ({}, None, None)):
            p = subprocess.run([sys.executable, "-c", program], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               timeout=tool.HANG_S, env={**os.environ, "LD_PRELOAD": f"{build}/libkolo.so", "KOLO_DEVICES": "cuda",
                                                         "LD_LIBRARY_PATH": f"{build}/lib/kolo/cuda", "KOLO_HOST_DEVICES": "2",
                                                         "NCCL_DEBUG": "INFO", **env})
            self.assertEqual(p.returncode, 0, p.stdout)
            with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
                log.write(p.stdout)
                log.flush()
                found = [f for f in self.json(log.name)["findings"] if f["code"].startswith("gpu_p")]
            self.assertEqual([f["code"] for f in found], [code] if code else [], p.stdout)
            for f in found:
                self.assertIn(words, f["text"])
                self.assertEqual(f["weight"], "costs")

    def test_the_question_may_be_a_word(self):
        file = "tests/data/logs/two-hosts-far-nic.log"
        self.assertEqual(tool.good("explain", "log", file), self.good(file))
        self.assertEqual(tool.good("explain", "log", file, "--json"), tool.good("explain", "--log", file, "--json"))
        for words, want in ((("log",), "expected: log FILE"), (("bench",), "expected: bench FILE"),
                            (("search", file), f"--topo {file} for a topology")):
            self.check_refusal(tool.run("explain", *words), 2, want, words)

    def test_what_cannot_be_read(self):
        self.refused(1, "cannot be opened", "/nonexistent/log")
        self.refused(1, "Is a directory", tempfile.gettempdir())
        self.refused(2, "two questions", "-", "--bench", "-")
        with tempfile.NamedTemporaryFile("wb", suffix=".gz") as f:
            self.assertIn(f"Not a log of NCCL: {f.name} is empty", self.good(f.name))
            f.write(gzip.compress(b"a:1:1 [0] NCCL INFO x"))
            f.flush()
            self.refused(1, f"is compressed: zcat {f.name}", f.name)
        self.assertIn("Not a log of NCCL", self.run_tool("-", stdin="hello\n").stdout)


class Document(unittest.TestCase):
    def test_shows_what_is_printed(self):
        """docs/logs.md holds on to whole answers, nothing else does."""
        with open("docs/logs.md", encoding="utf-8") as f:
            blocks = re.findall(r"^```\n\$ kolo (.*)\n((?:.*\n)*?)```", f.read(), flags=re.M)
        self.assertEqual(len(blocks), 3)
        for command, lines in blocks:
            words = [name for word in command.split() for name in sorted(glob.glob(word)) or [word]]
            self.assertEqual(tool.good(*words).rstrip(), lines.rstrip())


class Benches(tool.Case):
    words = ("explain", "--bench")

    def test_tables_of_others(self):
        files = named(BENCHES)
        if not files:
            self.skipTest("no tables of others (KOLO_SHARED)")
        for name, file in files.items():
            with self.subTest(name):
                if name in NO_ROWS:
                    self.refused(1, "no row of nccl-tests", file)
                    continue
                o = self.json(file)
                found = {f["code"] for t in o["tables"] for f in t["findings"] if f["problem"]}
                if name in FAULTY:
                    self.assertIn(FAULTY[name], found)
                self.assertLessEqual(found - NOISE, {FAULTY.get(name)} | ALSO.get(name, set()))
                for t in o["tables"]:
                    self.assertGreater(t["shape"]["peak"], 0)
                    self.assertTrue(t["rows"])

    def test_measured_beside_predicted(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as t:
            t.write("# Collective test starting: all_reduce_perf\n" +
                    "".join(f"{1 << i} {1 << i - 2} float sum -1 {us} {bw:.2f} {1.75 * bw:.2f} 0\n"
                            for i, us in ((26, 3000), (28, 12000), (30, 48000)) for bw in ((1 << i) / us / 1e3,)))
            t.flush()
            o = self.json(t.name, "--topo", tool.machine("h100-rail-8nic-400g"))
            text = self.good(t.name, "--topo", tool.machine("h100-rail-8nic-400g"))
        (table,) = o["tables"]
        self.assertEqual((table["collective"], table["ranks"], table["modelled"]), ("all_reduce", 8, True))
        self.assertEqual(table["findings"][0]["code"], "short")
        self.assertTrue(all(r["predicted"]["bus_bw"] > r["out_of_place"]["bus_bw"] for r in table["rows"]))
        self.assertRegex(text.splitlines()[0], rf"^NCCL {re.escape(tool.NCCL)}: 39\.15 GB/s instead of the predicted [0-9.]+ \(\d+ % less\) at 1 GiB \(all_reduce, 8 ranks\)$")
        for row in ("64 MiB    3.00 ms    39.15", "256 MiB    12.0 ms    39.15", "1 GiB    48.0 ms    39.15"):
            self.assertIn(row, text)

    def first_line(self, rows, *args):
        """Of a table of float sums of 8 ranks: (exponent of the size, us)."""
        text = "".join(f"{1 << i} 1 float sum -1 {us} {bw:.4f} {1.75 * bw:.4f} 0\n" for i, us in rows for bw in ((1 << i) / us / 1e3,))
        p = self.run_tool("-", *args, stdin=text)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout.splitlines()[0]

    def test_the_first_line_tells_what_was_compared(self):
        topo = ("--topo", tool.machine("h100-rail-8nic-400g"))
        self.assertRegex(self.first_line([(26, 200), (30, 3000)], *topo),
                         rf"^NCCL {re.escape(tool.NCCL)}: No size is much slower than predicted: 626\.3 GB/s measured, 473 predicted, at 1 GiB \(all_reduce, 8 ranks\)$")
        self.assertEqual(self.first_line([(10, 20), (20, 60)], *topo),
                         f"NCCL {tool.NCCL}: The table shows no problem, but nothing could be compared with the model: no size reaches 16 MiB")
        self.assertEqual(self.first_line([(30, 3000)], *topo, "--with", "NCCL_ALGO=PAT"),
                         f"NCCL {tool.NCCL}: The table shows no problem, but nothing could be compared with the model: it has no time for 1 GiB")
        self.assertEqual(self.first_line([(30, 3000)]), "The table shows no problem by itself")
        self.assertEqual(self.first_line([(30, 3000)], *topo, "--hosts", "2"), "The table shows no problem by itself")

    def test_what_is_no_table(self):
        p = self.run_tool("-", stdin="hello\n")
        self.check_refusal(p, 1, "no row of nccl-tests", "hello")


if __name__ == "__main__":
    tool.main()
