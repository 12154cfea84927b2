# SPDX-License-Identifier: Apache-2.0
"""`kolo perf --net-plugin`: the figures of a net plugin by itself, for the oldest and the newest version; and a plugin that fails, blocks or spoils."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import tool  # noqa: E402

PLUGINS = os.path.join(os.environ["KOLO_BUILD"], "plugins")
CALLS = ["listen", "connect", "accept", "regMr", "deregMr", "isend", "irecv", "test", "close"]
SHORT = ("-b", "8", "-e", "4K", "-f", "512", "-n", "1")


def plugin(name):
    return os.path.join(PLUGINS, f"libnccl-net-{name}.so")


class Figures(unittest.TestCase):
    def measure(self, name, *words, **env):
        with tempfile.TemporaryDirectory() as folder:
            p = tool.run("perf", "--net-plugin", plugin(name), *SHORT, *words, "-J", folder + "/out", **env)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            self.text = p.stdout
            with open(folder + "/out", encoding="utf-8") as f:
                return json.load(f)

    def test_oldest_and_newest(self):
        for version in (6, 12):
            with self.subTest(version=version):
                found = self.measure(f"example{version}")
                own = found["plugin"]
                self.assertEqual((own["name"], own["version"], own["library"]), ("ExampleTCP", version, plugin(f"example{version}")))
                self.assertEqual(own["devices"], [{"name": "tcp0", "speed_mbps": 10000, "pci_path": None, "max_recvs": 8, "ptr_support": 1}])
                self.assertEqual(found["socket"]["name"], "Socket")
                for net in found.values():
                    points = {(p["bytes"], p["connections"], p["ways"], p["outstanding"]): p["bytes_per_s"] for p in net["points"]}
                    self.assertEqual(set(points), {(b, c, w, o) for b in (8, 4096) for c in (1, 2, 4) for w in (1, 2)
                                                   for o in (1, 2, 4, 8, 16, 32)})
                    self.assertTrue(all(rate > 0 for rate in points.values()))
                    for side in net["processes"]:
                        self.assertEqual(list(side["calls"]), CALLS)
                        calls = side["calls"]
                        self.assertGreaterEqual(calls["test"]["calls"], side["messages"])
                        self.assertLessEqual(calls["test"]["p50_us"], calls["test"]["max_us"])
                        self.assertEqual([r["bytes"] for r in side["registrations"]], [4096, 65536, 1 << 20, 16 << 20])
                        self.assertTrue(0 < side["most_outstanding"] <= 8 * 32)

    def test_messages_are_counted(self):
        # Of each size one verified message in each direction, then warm-up and measured rounds of the outstanding ones.
        side = self.measure("example12", "-n", "3", "-w", "2")["plugin"]["processes"][0]
        of_a_size = 2 + sum((3 + 2) * outstanding * connections * ways for connections in (1, 2, 4) for ways in (1, 2)
                            for outstanding in (1, 2, 4, 8, 16, 32))
        self.assertEqual(side["messages"], 2 * of_a_size)
        self.assertEqual(side["bytes"], (8 + 4096) * of_a_size)

    def test_text_names_the_library(self):
        self.measure("example12")
        self.assertIn(f"net plugin ExampleTCP: ncclNetPlugin_v12 of {plugin('example12')}, 1 device", self.text)
        self.assertIn("regMr, median: 4 KiB", self.text)


class Refusals(unittest.TestCase):
    def fails(self, *words, **env):
        p = tool.run("perf", *words, **env)
        self.assertNotEqual(p.returncode, 0, p.stdout)
        return p.stderr

    def test_faults(self):
        for fault, sentence in (("init", "it is not usable"), ("contents", "came with other contents"), ("sizes", "came as 0")):
            with self.subTest(fault=fault):
                self.assertIn(sentence, self.fails("--net-plugin", plugin("faulty"), *SHORT, FAULTY_NET=fault))

    def test_a_peer_that_is_not_heard_is_named(self):
        text = self.fails("--net-plugin", plugin("faulty"), *SHORT, "-T", "1", FAULTY_NET="silent")
        self.assertIn("no message and no connection came about for 1 s", text)
        self.assertIn("process 0", text)
        self.assertIn("process 1", text)

    def test_usage(self):
        self.assertIn("NCCL_NET_PLUGIN=x.so kolo perf all_reduce", self.fails("all_reduce", "--net-plugin", "x.so"))
        self.assertIn("a size is at least 1 byte", self.fails("--net-plugin", "x.so", "-b", "0"))
        self.assertIn("it is not usable", self.fails("--net-plugin", "/nowhere/x.so"))


if __name__ == "__main__":
    unittest.main()
