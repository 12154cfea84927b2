# SPDX-License-Identifier: Apache-2.0
"""Events for a profiler plugin, in each version of its ABI: an all-reduce and messages over two emulated hosts as a tree, in which each
event that begins ends once, has the states of its kind in their order, and a parent that began before it."""
import collections
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import tool  # noqa: E402

PLUGINS = os.path.join(os.environ["KOLO_BUILD"], "plugins")
GROUP, COLL, P2P, PROXY_OP, STEP, KERNEL, NET, GROUP_API, COLL_API, P2P_API, LAUNCH = (
    1, 2, 4, 8, 0x10, 0x40, 0x80, 0x100, 0x200, 0x400, 0x800)
SENT, RECEIVED = ["8", "20", "9"], ["10", "11", "12"]
Event = collections.namedtuple("Event", "type parent text states")


def plugin(version):
    return os.path.join(PLUGINS, f"libnccl-profiler-example{version}.so")


class Case(unittest.TestCase):
    def events(self, *words, version=7, **env):
        """Of each rank, by number; all that began have ended once."""
        ranks = []
        with tempfile.TemporaryDirectory() as folder:
            p = tool.run("perf", *words, "-n", "1", "-w", "0", NCCL_PROFILER_PLUGIN=plugin(version),
                         EXAMPLE_PROFILER_FILE=folder + "/events", **env)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            self.assertIn("Out of bounds values : 0 OK", p.stdout)
            for file in sorted(pathlib.Path(folder).iterdir()):
                ranks.append(self.read(file.read_text(encoding="utf-8")))
        return ranks

    def read(self, text):
        events, open_ones = {}, set()
        for line in text.splitlines():
            word, number, *rest = line.split(" ")
            if word == "start":
                self.assertNotIn(number, events)
                self.assertTrue(rest[1] == "0" or rest[1] in events, line)
                events[number] = Event(int(rest[0]), rest[1], " ".join(rest[2:]), [])
                open_ones.add(number)
            elif word == "state":
                self.assertIn(number, open_ones, line)
                events[number].states.append(rest[0])
            else:
                self.assertEqual(word, "stop")
                self.assertIn(number, open_ones, line)
                open_ones.remove(number)
        self.assertFalse(open_ones)
        return events

    def of(self, events, kind):
        return [e for e in events.values() if e.type == kind]

    def parents(self, events, kind):
        return {events[e.parent].type for e in self.of(events, kind) if e.parent != "0"}


class Tree(Case):
    def check_collective(self, events, version):
        self.assertTrue(self.of(events, COLL))
        self.assertEqual(self.parents(events, PROXY_OP) - {P2P}, {COLL})  # messages compare the results
        self.assertEqual(self.parents(events, STEP), {PROXY_OP})
        for e in self.of(events, PROXY_OP):
            words = e.text.split(" ")
            if events[e.parent].type == P2P:
                continue
            steps, sends = int(words[7]), words[9] == "1"
            mine = [s for s in self.of(events, STEP) if events[s.parent] is e]
            self.assertEqual(sorted(int(s.text.split(" ")[1]) for s in mine), list(range(steps)))
            self.assertEqual({tuple(s.states) for s in mine}, {tuple(SENT if sends else RECEIVED)})
        if version >= 3:
            self.assertEqual(self.parents(events, KERNEL), {COLL})
        self.assertEqual(self.parents(events, COLL), {COLL_API} if version >= 5 else {GROUP})
        if version >= 5:
            self.assertEqual(self.parents(events, COLL_API), {GROUP_API})
            self.assertEqual(self.parents(events, LAUNCH), {GROUP_API})
            self.assertEqual({tuple(e.states) for e in self.of(events, GROUP_API)}, {("23", "24")})

    def test_every_version(self):
        for version in range(1, 8):
            with self.subTest(version=version):
                ranks = self.events("all_reduce", "--np", "2", "--hosts", "2", "-b", "4M", "-e", "4M", version=version)
                self.assertEqual(len(ranks), 2)
                for events in ranks:
                    self.check_collective(events, version)

    def test_messages(self):
        for events in self.events("sendrecv", "--np", "2", "--hosts", "2", "-b", "4M", "-e", "4M"):
            self.assertTrue(self.of(events, P2P))
            self.assertEqual(self.parents(events, P2P), {P2P_API})
            self.assertLessEqual({P2P}, self.parents(events, PROXY_OP))
            self.assertEqual(self.parents(events, STEP), {PROXY_OP})

    def test_events_of_a_net_plugin(self):
        net = os.path.join(PLUGINS, "libnccl-net-example12.so")
        for events in self.events("all_reduce", "--np", "2", "--hosts", "2", "-b", "4M", "-e", "4M", NCCL_NET_PLUGIN=net):
            self.assertTrue(self.of(events, NET))
            self.assertEqual(self.parents(events, NET), {STEP})
            self.assertEqual({e.text for e in self.of(events, NET)}, {"plugin 3e80001"})

    def test_one_host(self):
        for events in self.events("all_reduce", "--np", "2", "-b", "1K", "-e", "4M", "-f", "4096"):
            self.assertFalse(self.of(events, PROXY_OP))
            self.assertEqual(self.parents(events, KERNEL), {COLL})

    def test_a_mask(self):
        for events in self.events("all_reduce", "--np", "2", "--hosts", "2", "-b", "1M", "-e", "1M", EXAMPLE_PROFILER_EVENTS="0x200"):
            self.assertEqual({e.type for e in events.values()}, {GROUP_API, COLL_API})


class Refused(Case):
    def test_without_a_plugin_the_log_says_why(self):
        with tempfile.TemporaryDirectory() as logs:
            p = tool.run("perf", "all_reduce", "--np", "2", "-b", "8", "-e", "8", NCCL_PROFILER_PLUGIN="/nowhere/p.so",
                         NCCL_DEBUG="WARN", NCCL_DEBUG_FILE=logs + "/%p")
            log = "".join(f.read_text(encoding="utf-8") for f in pathlib.Path(logs).iterdir())
        self.assertEqual(p.returncode, 0)
        self.assertIn('profiler plugin "/nowhere/p.so" could not be loaded', log)


if __name__ == "__main__":
    unittest.main()
