# SPDX-License-Identifier: Apache-2.0
"""CollNet over the example plugin that reduces: each collective on 2 and 3 emulated hosts, in versions of the ABI with and without gathering,
operations that it does not know, and hosts of which one has no such plugin."""
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import tool  # noqa: E402

PLUGINS = os.path.join(os.environ["KOLO_BUILD"], "plugins")
CHAIN, DIRECT = "CollNetChain", "CollNetDirect"


def plugin(version):
    return os.path.join(PLUGINS, f"libnccl-net-collnet{version}.so")


def machine_that_reduces(folder):
    path = folder + "/machine.xml"
    with open(tool.machine("h100-rail-8nic-400g"), encoding="utf-8") as f:
        pathlib.Path(path).write_text(f.read().replace("<net ", '<net coll="1" '), encoding="utf-8")
    return path


class Collectives(unittest.TestCase):
    def perf(self, version, collective, hosts, *words, **env):
        with tempfile.TemporaryDirectory() as logs:
            p = tool.run("perf", collective, "--np", str(2 * hosts), "--hosts", str(hosts), "-b", "40", "-e", "300K", "-f", "87", "-n", "1", "-w",
                         "0", *words, NCCL_NET_PLUGIN=plugin(version), NCCL_COLLNET_ENABLE="1", NCCL_DEBUG="INFO",
                         NCCL_DEBUG_SUBSYS="INIT,NET,TUNING", NCCL_DEBUG_FILE=logs + "/%p", **env)
            log = "".join(f.read_text(encoding="utf-8") for f in pathlib.Path(logs).iterdir())
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("Out of bounds values : 0 OK", p.stdout)
        self.assertIn(f"COLLNET/Plugin: using ExampleReduce (ncclCollNetPlugin_v{version} of {plugin(version)}), 1 device", log)
        return log

    def heads(self, log):
        return set(re.findall(r"CollNet \d+/\d : (\d+) \[(?:send|receive)\] via COLLNET/ExampleReduce/\d+$", log, re.M))

    def test_all_reduce_through_the_chain(self):
        for version in range(6, 13):
            for hosts in (2, 3) if version in (6, 12) else (2,):
                with self.subTest(version=version, hosts=hosts):
                    log = self.perf(version, "all_reduce", hosts, NCCL_ALGO=CHAIN, NCCL_PROTO="Simple")
                    self.assertGreaterEqual(len(self.heads(log)), hosts)
                    self.assertNotRegex(log, r"Channel \d+/0 : .* via NET/")

    def test_every_collective_through_heads(self):
        with tempfile.TemporaryDirectory() as folder:
            topo = machine_that_reduces(folder)
            for collective in ("all_reduce", "all_gather", "reduce_scatter"):
                for version in (7, 8, 12):
                    with self.subTest(collective=collective, version=version):
                        log = self.perf(version, collective, 2 if version == 8 else 3, "--topo", topo, NCCL_ALGO=DIRECT, NCCL_PROTO="Simple")
                        self.assertTrue(self.heads(log))

    def test_types_and_operations(self):
        for words in (("-d", "int32", "-o", "max"), ("-d", "double", "-o", "avg"), ("-d", "uint8", "-o", "sum"), ("-d", "int64", "-o", "prod")):
            with self.subTest(words=words):
                self.assertTrue(self.heads(self.perf(12, "all_reduce", 2, *words, NCCL_ALGO=CHAIN, NCCL_PROTO="Simple")))

    def test_a_type_that_it_does_not_know_goes_another_way(self):
        log = self.perf(12, "all_reduce", 2, "-d", "half", NCCL_ALGO="allreduce:" + CHAIN + ",ring", NCCL_PROTO="Simple")
        self.assertFalse(self.heads(log))
        self.assertIn("Algo RING proto SIMPLE", log)


class Differences(unittest.TestCase):
    def test_one_host_without_it(self):
        one = f'case $KOLO_RANK in 0) export NCCL_NET_PLUGIN={PLUGINS}/libnccl-net-example12.so;; esac; exec "$0" perf all_reduce -b 8 -e 8'
        p = tool.run("run", "-n", "2", "--hosts", "2", "--", "sh", "-c", one, tool.KOLO, NCCL_NET_PLUGIN=plugin(12), NCCL_DEBUG="WARN")
        self.assertNotEqual(p.returncode, 0)
        self.assertIn("uses the network ExampleTCP, but rank 1 (host ", p.stdout + p.stderr)
        self.assertIn(" ExampleTCP+ExampleReduce: all need the same", p.stdout + p.stderr)


if __name__ == "__main__":
    unittest.main()
