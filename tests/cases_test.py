#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inputs as people paste them, and the first line of each answer: own inputs of each kind (tests/data/cases), and inputs of others
(../shared/cases)."""
import os
import re
import unittest

import tool

OWN = "tests/data/cases"
OTHERS = os.path.join(os.path.dirname(tool.SHARED), "cases")

LOG, BENCH, GRAPH, TOPO = ("explain", "--log"), ("explain", "--bench"), ("graph", "--topo"), ("topo", "--topo")

# The command, the file, a pattern of the first line, and a pattern that it must not match.
OWN_CASES = (
    # init that does not end
    (LOG, "stuck-in-bootstrap.log", r"ranks 0-2 of 4 began init and never finished.*waited for the other ranks.*rank 3", "no problem"),
    (LOG, "second-communicator-stuck.log", r"ranks 0-1 of 2 began init and never finished", "no problem"),
    (LOG, "finished.log", r"^NCCL 2\.27\.5: The log shows no problem", "failed"),
    # hosts and containers
    (LOG, "four-containers-of-one-host.log", r"over TCP sockets.*4 ranks.*1 host.*NCCL_HOSTID", "more problem"),
    (LOG, "hosts-that-count-twice.log", r"8 ranks count as 4 nodes: h0 has 4 of them, but each node has 2", "no problem"),
    (LOG, "one-gpu-per-host.log", r"TCP sockets", "container"),
    (LOG, "containers-by-bus-id.log", r"over TCP sockets.*2 ranks.*1 host", "more problem"),
    (LOG, "bootstrap-line-only.log", r"Nothing here failed, but the log shows no communicator", "Not a log|no problem"),
    # plugins
    (LOG, "libfabric-starts.log", r"no problem", "libfabric"),
    (LOG, "plugin-lines-only.log", r"aws-ofi-nccl 1\.13\.2", "no problem|Not a log"),
    (LOG, "efa-unresponsive.log", r"EFA endpoint is gone or not addressable.*w3:77 \[1\]", "more problem"),
    (LOG, "efa-unreachable.log", r"security group", "no problem"),
    (LOG, "efa-unreachable-newer.log", r"security group.*ip-10-0-1-5:2100 \[2\]", "no problem|more problem"),
    (LOG, "tcpx-manager.log", r"TCPX.*manager.*/run/tcpx", "no problem"),
    (LOG, "fastsocket-gives-up.log", r"cannot be reached", "harmless|no problem"),
    (LOG, "sharp-missing.log", r"SHARP could not be used", "a call failed"),
    # the place of a message
    (LOG, "bootstrap-truncated-elsewhere.log", r"2\.27\.5.*bootstrap.*stray connection", "defect|counts"),
    (LOG, "socket-truncated.log", r"messages of different sizes", "bootstrap"),
    (LOG, "device-number.log", r"asks for a GPU that it does not see", "hidden"),
    (LOG, "peer-hidden-older.log", r"peer's GPU is hidden", "asks for"),
    (LOG, "no-kernel.log", r"no code for this GPU", "registered"),
    (LOG, "window-register-500.log", r"cannot be registered.*not known to the driver", "no code"),
    (LOG, "nvls-401.log", r"refuse multicast.*nvidia-fabricmanager", "more problem"),
    (LOG, "nvls-800.log", r"refuse multicast.*nvidia-fabricmanager", "more problem"),
    (LOG, "shm-size-0.log", r"size 0.*NCCL_CUMEM_HOST_ENABLE=0", "--shm-size"),
    (LOG, "shm-small.log", r"no room for shared memory.*--shm-size", "CUMEM"),
    (LOG, "reg-mr-memlock.log", r"nvidia-peermem or DMA-BUF, or the limit of locked memory", "no problem"),
    (LOG, "create-qp.log", r"ulimit -l", "more problem"),
    (LOG, "unknown-warning-ends-the-call.log", r"a call failed: The frobnicator.*something_new\.cc:77 \(ncclNewThing\).*q1:3 \[2\]$", "more"),
    (LOG, "unknown-warning-before-success.log", r"no problem", "frobnicator"),
    (LOG, "imex-already-off.log", r"IMEX channel", "NCCL_MNNVL_ENABLE=0"),
    (LOG, "fork.log", r"before the process was forked.*spawn", "kernel"),
    (LOG, "nvml-by-index.log", r"NVML does not find.*--gpu-bind=none", "no problem"),
    (LOG, "function-names.log", r"GPU memory is used up, on cn13:11 \[1\]", "no problem"),
    # calls
    (LOG, "counts-differ.log", r"rank 1 called AllReduce of 4000 elements as opCount 1f where rank 3 called AllReduce of 4096", "no problem"),
    (LOG, "data-types-differ.log", r"n5:9 \[0\] called ReduceScatter of data type 7 as opCount 3f where n4:9 \[0\] called ReduceScatter of data type 9", "no problem"),
    (LOG, "roots-differ.log", r"rank 1 called Broadcast with root 1 as opCount 3 where rank 0 called Broadcast with root 0", "no problem"),
    (LOG, "calls-alike.log", r"Nothing here failed", "called|no problem"),
    (LOG, "pairs-of-four-ranks.log", r"Nothing here failed", "called|no problem"),
    (LOG, "watchdog-sizes-differ.log", r"rank 0 called ALLREDUCE of 512 elements, rank 2 ALLREDUCE of 500 .*number 8$", "more"),
    (LOG, "watchdog-one-behind.log", r"rank 2 called only 38 operations; rank 0 waits in ALLREDUCE, number 40$", "more"),
    (LOG, "fingerprints.log", r"rank 3 called ALLREDUCE, rank 0 BROADCAST at the same sequence number 12$", "more"),
    # releases
    (LOG, "pytorch-names-release.log", r"^NCCL 2\.21\.5: CUDA reports an error", "no problem"),
    (LOG, "pip-names-release.log", r"^NCCL 2\.27\.3: ", "no problem"),
    (LOG, "rccl.log", r"^RCCL 2\.22\.3: .*1 connection over NET/IB/3\(2\)/GDRDMA/Shared and 1 other$", "comm 0x"),
    # tables
    (BENCH, "rounded-to-zero.txt", r"no problem", "alone|communicator"),
    (BENCH, "really-alone.txt", r"bus bandwidth is 0 throughout", "no problem"),
    (BENCH, "tags-with-bars.txt", r"no problem", "alone|communicator"),
    (BENCH, "tags-that-touch.txt", r"falls from 16\.78 GB/s at 32 MiB to 4\.47 GB/s, from 128 MiB on", "alone"),
    (BENCH, "tags-of-mpirun.txt", r"falls from 19\.17 GB/s at 64 MiB to 3\.35 GB/s, from 128 MiB on", "alone|no problem"),
    (BENCH, "time-falls-all-gather.txt", r"time falls from 309 us at 128 KiB to 90\.0 us at 256 KiB.*NCCL_PROTO=\^LL", "no problem"),
    (BENCH, "bandwidth-falls.txt", r"falls from 41 GB/s at 64 MiB to 22 GB/s, from 256 MiB on", "no problem"),
    (BENCH, "time-falls-twice.txt", r"time falls from 900 us at 256 KiB to 200 us at 512 KiB.*NCCL_PROTO=\^LL", "no problem"),
    (BENCH, "noise-is-no-fall.txt", r"no problem", "falls"),
    (BENCH, "second-run-fails.txt", r"failed at 2 MiB: Test NCCL failure all_reduce\.cu:44", "no problem"),
    (LOG, "runs-without-mpi.txt", r"2 processes run, but each has a communicator of its own", "no problem"),
    (BENCH, "runs-of-two-releases.txt", r"2 runs, each judged by itself", "alone"),
    (BENCH, "new-columns.txt", r"^NCCL 2\.30\.7: The table shows no problem", "alone"),
    (BENCH, "illegal-access.txt", r"failed before its first row: Test CUDA failure common\.cu:296 'misaligned address'.*no kernels of a program", "one of the program"),
    (BENCH, "hip-failure.txt", r"^RCCL 2\.27\.7: the run failed before its first row: Test HIP failure.*no kernels of a program", "one of the program"),
    # machines
    (GRAPH, "matrix-glued.txt", r"4 GPUs \(H100 SXM5, sm 90, PCIe 5\), 18 NVLinks of each lead to NVSwitches", "mesh"),
    (GRAPH, "matrix-pairs-nv18.txt", r"4 GPUs \(H100 NVL, .*NVLinks between 2 of 6 pairs only \(GPU/0-GPU/1 18, GPU/2-GPU/3 18\), no switch", "NVSwitches"),
    (GRAPH, "matrix-names-alone.txt", r"2 GPUs \(A100 SXM4 40 GB, .*12 NVLinks of each lead to NVSwitches", "between the two"),
    (GRAPH, "matrix-v100-cube.txt", r"1 to 2 NVLinks between all pairs: a mesh, no switch", "NVSwitches"),
    (GRAPH, "lspci-two-switches.txt", r"read as the tree of lspci: 2 GPUs \(A100 PCIe 80 GB\), 2 NICs", "matrix"),
    (TOPO, "matrix-markdown-cut.txt", r"a column GPU2, but no row", "1 GPU"),
    (TOPO, "nics-below-cpu.xml", r"nics-below-cpu\.xml:3: <net> stands directly in <cpu>; it belongs in a <nic> element$", "gpu"),
    (("explain",), "topology.conf", r"read as Slurm's topology\.conf: 16 hosts in 2 pods.*already stand pod by pod", "crosses pods 4"),
    (("explain",), "topology.yaml", r"read as Slurm's topology\.conf: 8 hosts in 2 pods .*2 switches in 1 level:", "no problem"),
    (("explain",), "node-labels.txt", r"read as output of topograph: 4 hosts in 2 pods .*crosses pods 4 times, in the order below 2", "no problem"),
    (TOPO, "topology.conf", r"topology\.conf is Slurm's topology\.conf, which describes no machine; use it with kolo explain FILE", "syntax"),
    (TOPO, "finished.log", r"is a log of NCCL, which describes no machine; use it with kolo explain --log", "syntax"),
)

OTHERS_CASES = (
    (LOG, "stuck-while-connecting.txt", r"ranks 0-1 of 2 began init and never finished", "no problem"),
    (LOG, "one-rank-of-many-stuck.txt", r"rank 1 of 2 began init and never finished", "no problem"),
    (LOG, "all-sockets-no-network-line.txt", r"over TCP sockets.*one GPU.*different numbers.*one host|TCP sockets.*1 host.*NCCL_HOSTID", "no problem"),
    (LOG, "efa-libfabric-lines-only.txt", r"EFA endpoint is gone or not addressable", "no problem"),
    (LOG, "efa-security-group.txt", r"security group must allow all traffic to and from itself", "more problem"),
    (BENCH, "small-sizes-busbw-0.txt", r"no problem", "communicator of its own"),
    (BENCH, "tags-inside-rows.txt", r"falls from 15\.39 GB/s at 32 MiB to 2\.75 GB/s, from 64 MiB on", "alone|communicator"),
    (BENCH, "two-runs-one-file.txt", r"2 runs", "communicator of its own"),
    (LOG, "two-runs-one-file.txt", r"2 runs", "communicator of its own"),
    (BENCH, "time-falls.txt", r"time falls.*NCCL_PROTO=\^LL", "no problem"),
    (BENCH, "table-ends-in-failure.txt", r"failed at 512 KiB: Test CUDA failure common\.cu:516 'an illegal memory access", "no problem"),
    (LOG, "table-ends-in-failure.txt", r"the run failed with Test CUDA failure common\.cu:516", "one of the program"),
    (BENCH, "no-row-but-failure.txt", r"failed before its first row: Test CUDA failure common\.cu:1030.*fabric", "no row of"),
    (LOG, "no-row-but-failure.txt", r"Test CUDA failure common\.cu:1030.*fabric", "no problem"),
    (LOG, "nccl-tests-own-kernel.txt", r"^NCCL 2\.26\.2: .*no kernels of a program.*driver, and the GPU", "one of the program"),
    (GRAPH, "smi-a100-mesh-nv4.txt", r"4 NVLinks between all pairs: a mesh, no switch.*239 GB/s", "NVSwitch"),
    (GRAPH, "smi-a100-pairs.txt", r"2 of 6 pairs only .*GPU/0-GPU/1 12, GPU/2-GPU/3 10.*some pairs have 10, others 12", "NVSwitch"),
    (GRAPH, "smi-two-pairs-no-name.txt", r"2 of 6 pairs only .*some pairs have 10, others 12", "NVSwitch"),
    (TOPO, "smi-glued-header.txt", r"2 GPUs, 3 NICs", "error"),
    (TOPO, "smi-markdown-table.txt", r"6 GPUs", "1 GPU,"),
    (GRAPH, "smi-csv-names.txt", r"2 GPUs \(H200 SXM5, sm 90, PCIe 5\)", "error"),
    (TOPO, "smi-soc.txt", r"2 GPUs, 1 NIC", "error"),
    (LOG, "register-500.txt", r"cannot be registered.*not known to the driver", "no code for this GPU"),
    (LOG, "reg-mr-enomem-dmabuf.txt", r"GPU memory cannot be registered.*nvidia-peermem.*DMA-BUF", "locked"),
    (LOG, "bootstrap-truncated.txt", r"bootstrap.*a defect of this release \(2\.19\.3\), or a stray connection", "counts"),
    (LOG, "peer-import-101.txt", r"peer's GPU is hidden from this process.*see all GPUs of its host", "asks for"),
    (LOG, "remedy-already-applied.txt", r"NCCL_SHM_DISABLE=1 .*as well", "NCCL_P2P_DISABLE=1"),
    (LOG, "unknown-warn-below-costs.txt", r"ulimit -l", "GPUDirect"),
    (LOG, "mnnvl-imex.txt", r"IMEX channel", "GPUDirect"),
    (LOG, "nvls-cuda-failure.txt", r"NCCL_CUMEM_ENABLE=0.*NCCL_NVLS_ENABLE=0", "no problem"),
    (LOG, "nvml-not-found.txt", r"NVML does not find.*bound to tasks", "no problem"),
    (LOG, "fork-initialization-error.txt", r"before the process was forked", "no problem"),
    (LOG, "harmless-plugin-warnings.txt", r"remarks only.*came about", "no problem|more problem"),
    (LOG, "warn-with-function-name.txt", r"a kernel failed.*cn13:11 \[1\].*cn14:12 \[3\]", "no problem"),
    (LOG, "watchdog-ranks-differ.txt", r"rank 0 called ALLREDUCE, rank 1 _ALLGATHER_BASE at the same sequence number 112", "more problem"),
    (LOG, "coll-lines-differ.txt", r"rank 1 called Broadcast as opCount 11 where rank 0 called AllReduce", "Not a log"),
    (LOG, "vllm-names-release.txt", r"^NCCL 2\.20\.5: ", "no problem"),
    (BENCH, "rccl-tests-release.txt", r"^RCCL 2\.27\.7: ", "^NCCL"),
    (LOG, "rccl-tests-release.txt", r"^RCCL 2\.27\.7: ", "^NCCL"),
    (LOG, "rccl-connection-suffix.txt", r"2 connections over NET/IB/0/GDRDMA$", "comm 0x"),
    (TOPO, "gpu-directly-under-cpu.xml", r"xml:3: <gpu> stands directly in <cpu>; it belongs in a <pci> element", "no <gpu> element"),
)

# Remedies that the log shows as applied, which the whole answer must not recommend.
APPLIED = (
    ("imex-already-off.log", "NCCL_MNNVL_ENABLE=0 does without"),
    ("nvls-off-already.log", "NCCL_NVLS_ENABLE=0 turns NVLS off"),
    ("remedy-on-the-command-line.log", "NCCL_SHM_DISABLE=1 shows"),
    ("remedy-on-the-command-line.log", "NCCL_IB_TIMEOUT=22 gives"),
)


class Cases(tool.Case):
    def answer(self, command, file):
        p = tool.run(*command, file)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        return p.stdout if p.returncode == 0 else p.stderr

    def check(self, folder, cases):
        for command, name, want, never in cases:
            with self.subTest(f"{' '.join(command)} {name}"):
                first = self.answer(command, f"{folder}/{name}").replace(f"{folder}/{name}", name).split("\n")[0]
                self.assertRegex(first, want)
                self.assertNotRegex(first, never)

    def test_own(self):
        self.check(OWN, OWN_CASES)
        used = {name for _, name, _, _ in OWN_CASES} | {name for name, _ in APPLIED}
        self.assertEqual(used, set(os.listdir(OWN)))

    def test_others(self):
        if not os.path.isdir(OTHERS):
            self.skipTest("no cases of others (KOLO_SHARED)")
        self.check(OTHERS, OTHERS_CASES)
        self.assertEqual({name for _, name, _, _ in OTHERS_CASES}, set(os.listdir(OTHERS)) - {"README.md"})

    def test_applied_remedies_are_left_out(self):
        for name, remedy in APPLIED:
            with self.subTest(name):
                text = self.answer(LOG, f"{OWN}/{name}")
                self.assertNotIn(remedy, text)
                self.assertRegex(text, "nvidia-|--ipc=host")  # the other remedies are there

    def test_every_answer_has_json(self):
        for command, name, _, _ in OWN_CASES:
            if command in (LOG, BENCH) and name != "runs-without-mpi.txt":
                with self.subTest(name):
                    o = self.json(*command, f"{OWN}/{name}")
                    self.assertIn("problem", o)

    def test_files_by_themselves_are_read_as_what_they_are(self):
        machine = tool.machine("h100-rail-8nic-400g")
        for files, want in ((("finished.log",), r"finished\.log, read as a log of NCCL: NCCL 2\.27\.5: "),
                            (("new-columns.txt",), r"new-columns\.txt, read as a table of nccl-tests: NCCL 2\.30\.7: "),
                            (("finished.log", "stuck-in-bootstrap.log"), r"^2 files, read as a log of NCCL: "),
                            (("matrix-glued.txt",), r"read as the matrix of nvidia-smi topo -m: 4 GPUs .*ring: "),
                            (("lspci-two-switches.txt",), r"read as the tree of lspci: 2 GPUs .*ring: "),
                            ((machine,), r"h100-rail-8nic-400g\.xml, read as a topology file: NCCL .*ring: "),
                            ((machine, tool.machine("a100-nvsw-8nic-200g")), r"^2 files, read as topologies: NCCL ")):
            with self.subTest(files):
                paths = [f if "/" in f else f"{OWN}/{f}" for f in files]
                self.assertRegex(tool.good("explain", *paths).split("\n")[0], want)

    def test_standard_input_is_read_as_what_it_is(self):
        for name, want in (("finished.log", "standard input, read as a log of NCCL: "),
                           ("new-columns.txt", "standard input, read as a table of nccl-tests: ")):
            with open(f"{OWN}/{name}", encoding="utf-8") as f:
                p = tool.run("explain", "-", stdin=f.read())
            self.assertTrue(p.stdout.startswith(want), (p.stdout, p.stderr))

    def test_a_machine_beside_a_table_is_its_machine(self):
        first = tool.good("explain", tool.machine("h100-rail-8nic-400g"), "tests/data/logs/all-reduce-2x8h100.txt").split("\n")[0]
        self.assertRegex(first, r"read as a table of nccl-tests: .*instead of the predicted")

    def test_options_of_other_questions_are_refused(self):
        machine = tool.machine("h100-rail-8nic-400g")
        for words, want in ((("order", "allreduce", "1M", "--pod", "2"), r"order has no --pod, which belongs to traffic"),
                            (("search", "--type", "half"), r"search has no --type, which belongs to collectives, order, traffic"),
                            (("allreduce", "1M", "--lint"), r"a collective has no --lint, which belongs to order"),
                            (("nics", "--captured"), r"nics has no --captured"), (("traffic", "allreduce", "1M", "--all"), r"traffic has no --all")):
            with self.subTest(words):
                self.check_refusal(tool.run("explain", *words, "--topo", machine), 2, want, words)
        self.check_refusal(tool.run("explain", f"{OWN}/finished.log", "--root", "1"), 2, r"no --root, which belongs to order, traffic", "file")

    def test_missing_files_are_named(self):
        for words, want in ((("absent_0", "nothere"), "absent_0: there is no such file, question or collective"),
                            ((f"{OWN}/finished.log", "nothere"), "nothere: there is no such file; "), (("a.log",), "a.log: there is no such file"),
                            (("bogus",), "no question, collective or file \"bogus\"")):
            with self.subTest(words):
                self.check_refusal(tool.run("explain", *words), 2, re.escape(want), words)

    def test_control_characters_are_shown(self):
        with tool.written("h:1:2 [0] NCCL INFO NCCL version 2.27.5\nh:1:2 [0] new.cc:3 NCCL WARN a \x1b]0;title\x07 b\nh:1:2 [0] NCCL INFO new.cc:4 -> 3\n") as f:
            p = tool.run("explain", f.name)
        self.assertNotRegex(p.stdout, r"[\x00-\x08\x0b-\x1f\x7f]")
        self.check_refusal(tool.run("explain", "no\x1b[31mthing"), 2, re.escape("no\\x1b[31mthing"), "a word")

    def test_what_is_nothing_is_refused(self):
        for text, want in (("hello\n", "no kind that is known"), ("", "is empty"), ('{"a": 1}', "JSON of no kind"),
                           ('{"traceEvents": []}', "a trace"), ("<graphs/>", "a graph file")):
            with self.subTest(text), tool.written(text) as f:
                p = tool.run("explain", f.name)
                self.check_refusal(p, 1, re.escape(f.name) + ".*" + want, text)


if __name__ == "__main__":
    tool.main()
