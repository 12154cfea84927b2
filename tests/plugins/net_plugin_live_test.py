# SPDX-License-Identifier: Apache-2.0
"""Communicators over the example net plugin: every collective between emulated hosts, in the newest and the oldest version of the ABI,
its devices in the topology, and the sentences where hosts have different networks or the network is lost."""
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import tool  # noqa: E402

PLUGINS = os.path.join(os.environ["KOLO_BUILD"], "plugins")
COLLECTIVES = ("all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather scatter sendrecv hypercube "
               "barrier").split()


def plugin(version):
    return os.path.join(PLUGINS, f"libnccl-net-example{version}.so")


class Collectives(unittest.TestCase):
    def perf(self, version, *words):
        with tempfile.TemporaryDirectory() as logs:
            p = tool.run("perf", *words, NCCL_NET_PLUGIN=plugin(version), NCCL_DEBUG="INFO", NCCL_DEBUG_FILE=logs + "/%p")
            log = "".join(f.read_text(encoding="utf-8") for f in pathlib.Path(logs).iterdir())
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("Out of bounds values : 0 OK", p.stdout)
        self.assertIn(f"NET/Plugin: using ExampleTCP (ncclNetPlugin_v{version} of {plugin(version)}), 1 device", log)
        self.assertIn("via NET/ExampleTCP/0", log)
        self.assertNotIn("via NET/Socket", log)

    def test_every_collective_on_two_hosts(self):
        for collective in COLLECTIVES:
            for version in (6, 12):
                with self.subTest(collective=collective, version=version):
                    self.perf(version, collective, "--np", "4", "--hosts", "2", "-b", "40", "-e", "300K", "-f", "87", "-n", "1",
                              "-w", "0")

    def test_three_hosts_and_large_messages(self):
        self.perf(9, "all_reduce", "--np", "3", "--hosts", "3", "-b", "5M", "-e", "5M", "-n", "1", "-w", "0")
        self.perf(11, "sendrecv", "--np", "3", "--hosts", "3", "-b", "5M", "-e", "5M", "-n", "1", "-w", "0")


class Topology(unittest.TestCase):
    def test_its_devices_are_nics(self):
        with tempfile.TemporaryDirectory() as folder:
            file = folder + "/topo.xml"
            tool.good("perf", "all_reduce", "--np", "2", "--hosts", "2", "-b", "8", "-e", "8", NCCL_NET_PLUGIN=plugin(10),
                      NCCL_TOPO_DUMP_FILE=file)
            with open(file, encoding="utf-8") as f:
                text = f.read()
        self.assertIn('name="tcp0"', text)
        self.assertIn('speed="10000"', text)
        self.assertIn('guid="0x1"', text)


class Record(unittest.TestCase):
    def test_each_call_returns(self):
        for version in (6, 12):
            with self.subTest(version=version), tempfile.TemporaryDirectory() as folder:
                tool.good("perf", "all_reduce", "--np", "2", "--hosts", "2", "-b", "8", "-e", "256K", "-f", "32768",
                          NCCL_NET_PLUGIN=os.path.join(PLUGINS, f"libnccl-net-record{version}.so"), NET_RECORD_PLUGIN=plugin(version),
                          NET_RECORD_FILE=folder + "/calls")
                names = set()
                for file in pathlib.Path(folder).iterdir():
                    under_way = {}
                    for line in file.read_text(encoding="utf-8").splitlines():
                        word, thread, time, name, *_ = line.split(" ")
                        if word == "call":
                            self.assertNotIn(thread, under_way)
                            under_way[thread] = (name, int(time))
                            continue
                        begun = under_way.pop(thread)
                        self.assertEqual(begun[0], name)
                        self.assertLessEqual(begun[1], int(time))
                        names.add(name)
                    self.assertFalse(under_way)
                self.assertLessEqual({"init", "listen", "connect", "accept", "regMr", "isend", "irecv", "test", "closeSend"}, names)


class Differences(unittest.TestCase):
    def test_hosts_with_different_networks(self):
        one = 'case $KOLO_RANK in 0) export NCCL_NET_PLUGIN=none;; esac; exec "$0" perf all_reduce -b 8 -e 8'
        p = tool.run("run", "-n", "2", "--hosts", "2", "--", "sh", "-c", one, tool.KOLO, NCCL_NET_PLUGIN=plugin(12),
                     NCCL_DEBUG="WARN")
        self.assertNotEqual(p.returncode, 0)
        text = p.stdout + p.stderr
        self.assertIn("uses the network Socket, but rank 1 (host ", text)
        self.assertIn(" ExampleTCP: all need the same", text)

    def test_a_name_that_nobody_has(self):
        p = tool.run("perf", "all_reduce", "--np", "2", "--hosts", "2", "-b", "8", "-e", "8", NCCL_NET="Fabric",
                     NCCL_NET_PLUGIN=plugin(12))
        self.assertNotEqual(p.returncode, 0)
        self.assertIn('there is no network "Fabric"', p.stdout + p.stderr)


if __name__ == "__main__":
    unittest.main()
