# SPDX-License-Identifier: Apache-2.0
"""Communicators over the example net plugin: every collective between emulated hosts, in the newest and the oldest version of the ABI,
its devices in the topology, and the sentences where hosts have different networks or the network is lost."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, "tests")
import tool  # noqa: E402

PLUGINS = os.path.join(os.environ["KOLO_BUILD"], "plugins")
COLLECTIVES = ("all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather scatter sendrecv hypercube "
               "barrier").split()


def plugin(version):
    return os.path.join(PLUGINS, f"libnccl-net-example{version}.so")


def card(folder):
    """The path of a PCI device in a sysfs of its own, which no machine has."""
    path = os.path.join(folder, "fffe:17:00.0")
    os.makedirs(path)
    os.makedirs(os.path.join(folder, "bus", "pci"))
    os.symlink("../bus/pci", os.path.join(path, "subsystem"))
    return path


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


class Merged(unittest.TestCase):
    """Two ports of a card, which are merged where the plugin and the settings allow it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.pci = card(folder.name)

    def topology(self, version, *words, **env):
        with tempfile.TemporaryDirectory() as folder:
            file = folder + "/topo.xml"
            p = tool.run("perf", "all_reduce", "--hosts", "2", "-b", "8", "-e", "1M", "-f", "128", "-n", "1", "-w", "0", *(words or ("--np", "4")),
                         NCCL_NET_PLUGIN=plugin(version), NCCL_TOPO_DUMP_FILE=file, EXAMPLE_NET_DEVICES="2", EXAMPLE_NET_PCI=self.pci,
                         NCCL_DEBUG="INFO", NCCL_DEBUG_FILE=folder + "/log.%p", **env)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            self.assertIn("Out of bounds values : 0 OK", p.stdout)
            self.log = "".join(f.read_text(encoding="utf-8") for f in pathlib.Path(folder).glob("log.*"))
            self.seen = json.loads(tool.good("topo", "--topo", file, "--format", "json"))
            return xml.etree.ElementTree.parse(file)

    def nets(self, tree):
        return {n.get("name"): (int(n.get("dev")), int(n.get("speed")), n.get("keep", "1")) for n in tree.iter("net")}

    def test_ports_of_a_card_are_one_nic(self):
        for version in (9, 12):
            with self.subTest(version=version):
                tree = self.topology(version)
                nets = self.nets(tree)
                self.assertEqual({name: nic[:2] for name, nic in nets.items()}, {"tcp0+tcp1": (2, 20000)})
                self.assertEqual([(n["dev"], n["bw"], n["asic"]) for n in self.seen["system"] if n["type"] == "NET"], [(2, 2.5, "0x1")])
                self.assertIn("via NET/ExampleTCP/2", self.log)
                self.assertNotRegex(self.log, "via NET/ExampleTCP/[01]")
                self.assertIn("NET/ExampleTCP : [2]tcp0+tcp1 20000 Mb/s, merged of 2 devices", self.log)
                path = [p.get("busid") for p in tree.iter("pci") for n in p.iter("net") if n.get("name") == "tcp0+tcp1"]
                self.assertIn(os.path.basename(self.pci), path)

    def test_ranks_that_are_threads(self):
        nets = self.nets(self.topology(12, "--np", "2", "-t", "2"))
        self.assertEqual(nets["tcp0+tcp1"][0], 2)

    def test_they_stay_apart(self):
        for env in ({"NCCL_NET_MERGE_LEVEL": "LOC"}, {"EXAMPLE_NET_NO_MERGE": "1"}):
            with self.subTest(env=env):
                self.assertEqual(sorted(self.nets(self.topology(12, **env))), ["tcp0", "tcp1"])
        self.assertEqual(sorted(self.nets(self.topology(8))), ["tcp0", "tcp1"])

    def test_they_are_forced_together(self):
        nets = self.nets(self.topology(11, NCCL_NET_MERGE_LEVEL="LOC", NCCL_NET_FORCE_MERGE="tcp1,tcp0"))
        self.assertEqual(nets["tcp1+tcp0"][:2], (2, 20000))


class Record(unittest.TestCase):
    """`kolo plugin record` and `replay`."""

    def record(self, folder, version, collective="all_reduce", hosts="2", **env):
        tool.good("plugin", "record", plugin(version), "-o", folder + "/calls", "--", tool.KOLO, "perf", collective, "--np", hosts, "--hosts",
                  hosts, "-b", "8", "-e", "256K", "-f", "32768", **env)
        return sorted(str(f) for f in pathlib.Path(folder).iterdir())

    def test_each_call_returns(self):
        for version in range(6, 13):
            with self.subTest(version=version), tempfile.TemporaryDirectory() as folder:
                names = set()
                for file in self.record(folder, version):
                    under_way = {}
                    for line in pathlib.Path(file).read_text(encoding="utf-8").splitlines():
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

    def test_calls_are_summed_up_and_made_again(self):
        with tempfile.TemporaryDirectory() as folder:
            files = self.record(folder, 12, "alltoall", "3")
            self.assertEqual(len(files), 3)
            text = tool.good("plugin", "replay", *files)
            self.assertEqual(text.count(" isend "), 3)
            self.assertNotIn("has not returned", text)
            for version in (6, 12):
                text = tool.good("plugin", "replay", *files, "--net", plugin(version))
                self.assertRegex(text, rf"^[0-9]+ calls of 3 processes, made again in .* with ExampleTCP \(ncclNetPlugin_v{version} of ")
            # Without the other end, a call does not come to its result, and is named.
            p = tool.run("plugin", "replay", files[0], "--net", plugin(12), "--seconds", "1")
            self.assertEqual(p.returncode, 1)
            self.assertRegex(p.stderr, rf"no call came to its result for 1 s:\n  {files[0]} waits in call [0-9]+, (connect|accept|test)")

    def test_merged_devices(self):
        for version in (9, 10, 11, 12):
            with self.subTest(version=version), tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as sysfs:
                two = {"EXAMPLE_NET_DEVICES": "2"}
                files = self.record(folder, version, EXAMPLE_NET_PCI=card(sysfs), **two)
                for file in files:
                    calls = pathlib.Path(file).read_text(encoding="utf-8")
                    self.assertRegex(calls, r"call \S+ \S+ makeVDevice 0 2 100\nback \S+ \S+ makeVDevice 0 2 0 0\n")
                    self.assertRegex(calls, r"(listen|connect) 0 2 ")  # on the merged device
                again = tool.run("plugin", "replay", *files, "--net", plugin(version), **two)
                self.assertEqual((again.returncode, again.stderr), (0, ""), again.stdout)
                older = tool.run("plugin", "replay", *files, "--net", plugin(8), **two)
                self.assertEqual(older.returncode, 0, older.stderr)
                self.assertIn("(makeVDevice): ExampleTCP does not merge these devices; device 0 stands for them", older.stderr)

    @unittest.skipIf(tool.SANITIZE, "a plugin with a sanitizer cannot be loaded by Python")
    def test_a_plugin_that_cannot_merge(self):
        """Its recorder cannot either, before any call: NCCL tests for the function."""
        look = ("import ctypes, sys; table = ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(sys.argv[1]), 'ncclNetPlugin_v12')); "
                "print(bool(ctypes.c_void_p.from_address(table + 152).value))")
        for fault, has in (("none", "True"), ("merge", "False")):
            p = subprocess.run([sys.executable, "-c", look, os.path.join(PLUGINS, "libnccl-net-record12.so")], stdout=subprocess.PIPE, encoding="utf-8",
                               env={**os.environ, "NET_RECORD_PLUGIN": os.path.join(PLUGINS, "libnccl-net-faulty.so"), "FAULTY_NET": fault}, check=False)
            self.assertEqual((p.returncode, p.stdout.strip()), (0, has), fault)

    def test_failures_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            file = folder + "/calls"
            for text, said in (("call 1 5 test 10 0 0\nback 1 9 test 6 0 0 0\ncall 2 7 connect 0 0 ab\n", "thread 2 has not returned from connect"),
                               ("call 1 5 test 10 0 0\nback 1 4 test 6 0 0 0\n", "calls:2: no call of a net plugin"),
                               ("nothing\n", "calls:1: no call of a net plugin"), ("", "it has no call")):
                pathlib.Path(file).write_text(text, encoding="utf-8")
                p = tool.run("plugin", "replay", file)
                self.assertEqual((p.returncode, said in p.stdout + p.stderr), (1, True), p.stdout + p.stderr)

    def test_variables_for_other_libraries(self):
        text = tool.good("plugin", "record", plugin(8), "-o", "/tmp/c")
        self.assertRegex(text, r"^export NCCL_NET_PLUGIN=/.*libnccl-net-record8.so\nexport NET_RECORD_PLUGIN=/.*example8.so\n"
                         r"export NET_RECORD_FILE=/tmp/c\n$")

    def test_refusals(self):
        p = tool.run("plugin", "record", "/nowhere/x.so", "--", "true")
        self.assertEqual((p.returncode, "no net plugin that can be used" in p.stderr), (1, True), p.stderr)
        p = tool.run("plugin", "record", plugin(8), "--", "/nowhere/program")
        self.assertEqual((p.returncode, "/nowhere/program: No such file" in p.stderr), (1, True), p.stderr)


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
