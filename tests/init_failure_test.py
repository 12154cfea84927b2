# SPDX-License-Identifier: Apache-2.0
"""A rank that cannot do its part of init keeps no rank waiting: all ranks fail, with its reason, wherever they live."""
import re
import unittest

import tool

RANKS = 8
PLACEMENTS = (1, 2, 4, 8)  # processes


class InitFailure(tool.Case):
    def fails(self, reason, *words, **settings):
        """Every process of a job ends by itself with an error that tells the reason; in all placements."""
        for processes in PLACEMENTS:
            with self.subTest(reason=reason, processes=processes):
                p = tool.run("perf", "all_reduce", "--np", str(processes), "-t", str(RANKS // processes), "-b", "8", "-e",
                             "8", "-n", "1", *words, **settings)
                said = re.findall(r"^kolo perf: rank \d+: joining the communicator: (.*)$", p.stderr, re.M)
                self.assertNotEqual(p.returncode, 0)
                self.assertEqual(len(said), processes, p.stderr)
                for line in said:
                    self.assertRegex(line, reason)
                self.assertEqual(len(re.findall(r"rank \d+: exit code 3, by itself$", p.stderr, re.M)), processes)

    def test_the_first_rank_cannot_read_the_machine(self):
        with tool.written('<system version="1">\n<cpu numaid="0">\n<pci') as broken:
            self.fails(r"\.xml:3: ", NCCL_TOPO_FILE=broken.name)

    def test_the_first_rank_finds_too_few_devices(self):
        with tool.written('<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" class="0x030200"><gpu dev="0"/>'
                          "</pci></cpu></system>") as small:
            self.fails("uses device 1, but NCCL_TOPO_FILE=.* has 1 GPUs", NCCL_TOPO_FILE=small.name, KOLO_HOST_DEVICES="8")

    def test_every_rank_fails_by_itself(self):
        self.fails('NCCL_ALGO: no name "nonsense"', NCCL_ALGO="nonsense")

    def test_what_leaves_nothing_fails_the_call_only(self):
        p = tool.run("perf", "broadcast", "--np", "2", "-t", "2", "-b", "8", "-e", "8", "-n", "1", NCCL_ALGO="broadcast:tree")
        self.assertNotEqual(p.returncode, 0)
        self.assertRegex(p.stderr, r"rank \d+: broadcast of .*NCCL_ALGO=broadcast:tree leaves nothing")
        self.assertNotRegex(p.stderr, "joining the communicator: NCCL_ALGO")


if __name__ == "__main__":
    tool.main()
