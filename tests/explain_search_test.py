#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain search`: the first line names what is wrong, or what limits; sound machines are not suspected; golden texts.

Whole answers are in tests/data/explain/search-*.txt.
"""
import os

import tool

# Machines that lack something on purpose, and what.
FAULTY = {
    "a100-nvsw-8nic-broken-gpu3.xml": "few_nvlinks",
    "dgx1v-hcm-4nic-broken-0-3.xml": "few_nvlinks",
    "dgx1v-hcm-4nic-missing-0-4.xml": "few_nvlinks",
}


class Search(tool.Case):
    words = ("explain", "search")

    def test_golden_texts(self):
        for machine, hosts in (("a100-nvsw-8nic-200g", 2), ("h100-rail-8nic-400g", 2), ("pcie-1cpu-2gpu-amd", 1), ("gb200-4gpu-4nic", 2)):
            out = self.good("--topo", tool.machine(machine), "--hosts", str(hosts))
            self.check_page(f"search-{machine}", out)

    def test_the_first_line_says_what_limits(self):
        for machine, hosts, want in (
            ("h100-rail-8nic-400g", 1, "ring: 12 channels of 30 GB/s; no room for one more, which takes 30: all 8 links GPU → NVS (NVL) "
                                       "carry 360 of 370.8 GB/s."),
            ("h100-rail-8nic-400g", 2, "ring: 8 channels of 48 GB/s; no room for one more, which takes 48: all 8 links GPU → PCI (PCI) "
                                       "carry 48 of 48 GB/s."),
            ("single-gpu-1nic", 1, "ring: 32 channels of 40 GB/s, as many as there may be: a GPU alone needs no links."),
            ("pcie-2cpu-4gpu", 1, "ring: 1 channel of 10 GB/s; no room for one more, which takes 12: GPU/0 → PCI/0-10000 (PCI) and 1 like "
                                  "it carry 12 of 12 GB/s."),
            ("a100-rail-8nic-200g", 2, "tree: none was found at any bandwidth, so the GPUs are taken in their order, at 0.1 GB/s, and rings "
                                       "and trees have 2 channels; no link was full, but paths of the types that may be used do not lead on."),
        ):
            self.assertEqual(self.first("--topo", tool.machine(machine), "--hosts", str(hosts)), want)

    def test_faults_are_named_first_and_tried_without(self):
        for machine, want in (
            ("a100-nvsw-8nic-broken-gpu3", "GPU/3 has only 6 NVLinks while 7 other GPUs of the same kind have 12 each: the ring graph has 6 "
                                           "channels of 20 GB/s; with as many NVLinks as the others it would have 12 channels of 20 GB/s."),
            ("dgx1v-hcm-4nic-missing-0-4", "GPU/0 and GPU/4 have only 4 NVLinks each while 6 other GPUs of the same kind have 6 each: the "
                                           "ring graph has 4 channels of 20 GB/s; with as many NVLinks as the others it would have 6 "
                                           "channels of 20 GB/s."),
        ):
            self.assertEqual(self.first("--topo", tool.machine(machine)), want)

    def test_faults_that_cost_nothing_are_named_behind_the_limit(self):
        self.assertRegex(self.first("--topo", tool.machine("dgx1v-hcm-4nic-missing-0-4"), "--hosts", "2"),
                         r"^ring: 4 channels of 12 GB/s; no room .* Something looks wrong, though it costs nothing here: GPU/0 and GPU/4 have")
        f = self.edited("dgx1v-hcm-0nic", ('count="2"', 'count="1"', 1))
        self.assertRegex(self.first("--topo", f), r"^GPU/0 sees 1 NVLink to GPU/[0-9], which sees 2 back: ")

    def test_a_mended_machine_is_the_sound_one(self):
        """What a fault is said to cost is what the machine without it has."""
        for broken, sound in (("a100-nvsw-8nic-broken-gpu3", "a100-nvsw-8nic-200g"), ("dgx1v-hcm-4nic-missing-0-4", "dgx1v-hcm-4nic")):
            fault = self.json("--topo", tool.machine(broken))["faults"][0]
            ring = self.json("ring", "--topo", tool.machine(sound))["graphs"][0]
            self.assertEqual(fault["without"], {k: ring[k] for k in ("nchannels", "bw_intra", "bw_inter")})

    def test_sound_machines_are_not_suspected(self):
        for f in filter(tool.is_sound, tool.machines("synthetic")):
            name = os.path.basename(f)
            o = self.json("ring", "--topo", f, "--hosts", "2")
            self.assertEqual({x["code"] for x in o["faults"]}, {FAULTY[name]} if name in FAULTY else set(), name)

    def edited(self, machine, *edits):
        with open(tool.machine(machine), encoding="utf-8") as f:
            text = f.read()
        for old, new, *times in edits:
            self.assertIn(old, text)
            text = text.replace(old, new, *times)
        t = tool.written(text)
        self.addCleanup(t.close)
        return t.name

    def test_nics_of_one_guid_are_named_on_one_host_too(self):
        f = self.edited("h100-rail-8nic-400g", ('guid="0x', 'guid="'))
        for hosts, between in ((1, "between 2 hosts, "), (2, "")):
            self.assertEqual(
                self.first("--topo", f, "--hosts", str(hosts)),
                'NET/0, NET/1, NET/2, NET/3 and 4 more count as one port of 400 Gb/s because their guid is not written as 0x... '
                f'(guid="a0b0c0d000") and so reads as 0: {between}the ring graph has 2 channels of 24 GB/s; with a guid of its own for every '
                "card it would have 8 channels of 48 GB/s.")

    def test_faults_that_cost_more_together(self):
        f = self.edited("a100-nvsw-8nic-broken-gpu3", ('guid="0x', 'guid="'))
        o = self.json("ring", "--topo", f, "--hosts", "2")
        self.assertEqual([(x["code"], x["together"]) for x in o["faults"]], [("few_nvlinks", True), ("shared_port", True)])
        sound = self.json("ring", "--topo", tool.machine("a100-nvsw-8nic-200g"), "--hosts", "2")["graphs"][0]
        self.assertEqual(o["faults"][0]["without"]["nchannels"], sound["nchannels"])
        o = self.json("ring", "--topo", f)  # one host: each costs something by itself, in another place
        self.assertEqual([(x["code"], x["together"], x["hosts"]) for x in o["faults"]], [("few_nvlinks", False, 1), ("shared_port", False, 2)])

    def test_a_topology_of_a_setting_is_named_with_who_set_it(self):
        file = tool.machine("pcie-2cpu-4gpu")
        second = self.good("--hosts", "2", NCCL_TOPO_FILE=file).split("\n")[1]
        self.assertEqual(second, f"  {file} (NCCL_TOPO_FILE, environment), 2 hosts with 4 GPUs each")
        self.assertEqual(self.good("--topo", file).split("\n")[1], f"  {file}, 1 host with 4 GPUs")

    def test_a_graph_file_is_named_with_who_set_it(self):
        machine = tool.machine("pcie-2cpu-4gpu")
        g = tool.good("graph", "--topo", machine, "--format", "xml")
        with tool.written(g.replace('speedintra="10"', 'speedintra="5"').replace('speedinter="10"', 'speedinter="5"')) as t:
            self.assertEqual(self.first("ring", "--topo", machine, NCCL_GRAPH_FILE=t.name),
                             f"ring: 1 channel of 5 GB/s, taken without a search from the graph file {t.name} (NCCL_GRAPH_FILE, "
                             "environment); a search finds 1 channel of 10 GB/s.")
            self.assertIn("(NCCL_GRAPH_FILE, --with)",
                          self.first("ring", "--topo", machine, "--with", f"NCCL_GRAPH_FILE={t.name}"))
            self.assertRegex(self.first("ring", "--topo", machine, "--gpus", "0,1", NCCL_GRAPH_FILE=t.name),
                             r"^The graph file \(NCCL_GRAPH_FILE, environment\) is not used for the ring graph: .*:[0-9]+: .*\. A search gave ")

    def test_all_shows_every_attempt(self):
        machine = tool.machine("pcie-2cpu-4gpu")
        o = self.json("ring", "--all", "--topo", machine)["graphs"][0]
        rows = [l for l in self.good("ring", "--all", "--topo", machine).split("\n") if l[2:3].isdigit()]
        self.assertEqual(len(rows), len(o["attempts"]))
        self.assertEqual(o["chapters"][-1]["attempts"][1], len(o["attempts"]) - 1)
        for c in o["chapters"]:
            self.assertEqual(c["made"] + c["repeated"] + c["hopeless"], c["attempts"][1] - c["attempts"][0] + 1)

    def test_loads_agree_with_the_paths(self):
        """Every GPU of a ring sends and receives all channels: what its links carry must add up to that."""
        o = self.json("ring", "--topo", tool.machine("dgx1v-hcm-0nic"))["graphs"][0]
        total = o["nchannels"] * o["bw_intra"]
        for gpu in range(8):
            out = sum(l["used"] for l in o["links"] if l["from"] == f"GPU/{gpu}")
            self.assertEqual(out, total, gpu)
        for l in o["links"]:
            self.assertLessEqual(l["used"], l["bw"])
            self.assertAlmostEqual(l["lacks"], max(0, l["used"] + l["one_more"] - l["bw"]) if l["one_more"] else 0)

    def test_nics_of_one_number_are_not_mixed_up(self):
        """Odd files number two NICs alike; the channel must be charged to the one that can carry it."""
        f = self.edited("dualport-2gpu", ('dev="0" speed="100000"', 'dev="0" speed="1000"'), ('name="mlx5_1" dev="1"', 'name="mlx5_1" dev="0"'))
        g = self.json("ring", "--topo", f, "--hosts", "2")["graphs"][0]
        self.assertGreater(g["nchannels"] * g["bw_inter"], 1)
        for l in g["links"] + g["ports"]:
            self.assertLessEqual(l["used"], l["bw"], l)

    def test_lines_fit_a_page(self):
        for machine in ("a100-nvsw-8nic-200g", "h100-nvsw-8nic-400g", "power9-6gpu-2nic", "b200-nvsw-8nic-800g"):
            for line in self.good("--topo", tool.machine(machine), "--hosts", "4").split("\n")[1:]:
                self.assertLessEqual(len(line), 150, line)

    def test_how_channels_come_about(self):
        machine = tool.machine("h100-rail-8nic-400g")
        for env, want in (
            ({}, [("ring", 8), ("twice", 16)]),
            ({"NCCL_MAX_NCHANNELS": "10", "NCCL_NVLS_ENABLE": "0"}, [("ring", 8), ("twice", 16), ("max_channels", 10)]),
            ({"NCCL_MAX_NCHANNELS": "4", "NCCL_MIN_NCHANNELS": "6"},
             [("ring", 8), ("twice", 16), ("max_channels", 4), ("min_channels", 6), ("nvls", 16)]),
            ({"NCCL_MAX_CTAS": "6", "NCCL_NVLS_ENABLE": "0"}, [("ring", 8), ("twice", 16), ("max_ctas", 6)]),
        ):
            o = self.json("ring", "--topo", machine, "--hosts", "2", **env)["channels"]
            self.assertEqual([(s["code"], s["after"]) for s in o["steps"]], want, env)
            self.assertEqual(o["nchannels"], want[-1][1])
        o = self.json("tree", "--topo", tool.machine("a100-rail-8nic-200g"), "--hosts", "2")["channels"]
        self.assertEqual([(s["code"], s["after"]) for s in o["steps"]], [("ring", 8), ("tree", 1), ("twice", 2)])

    def test_wrong_questions(self):
        machine = tool.machine("pcie-2cpu-4gpu")
        for args, code, want in (
            (("rings",), 2, 'no graph "rings": ring, tree, collnet or nvls'),
            (("ring", "tree"), 2, "expected: search"),
            (("nvls", "--topo", machine), 1, "no nvls graph was computed: a GPU is older than sm 90"),
            (("collnet", "--topo", machine), 1, "NCCL_COLLNET_ENABLE is not 1"),
            (("--topo", tool.machine("bad-truncated")), 1, "bad-truncated.xml:3: "),
            (("--topo", "/nonexistent"), 1, "/nonexistent"),
        ):
            self.refused(code, want, *args)

    # ---- published faults ----

    def test_published_faults(self):
        for name, start, end in (
            ("derived/gb300-nvl72-2tray-rank5-no-nvlink-numhash", "GPU/5 has no NVLink while 7 other GPUs of the same kind have 18 each: ",
             "it would have 16 channels of 45 GB/s."),
            ("derived/gb300-nvl72-2tray-rank5-no-nvlink", "GPU/5 has no NVLink while 7 other GPUs of the same kind have 18 each, and ",
             "it would have 16 channels of 45 GB/s."),
            ("from-public/gb300-nvl72-2tray-rank5-no-nvlink", "GPU/5 has no NVLink while 7 other GPUs of the same kind have 18 each, and ",
             "it would have 16 channels of 45 GB/s."),
            ("real/2xa100pcie-nvbridge-degraded", "GPU/0 sees 1 NVLink to GPU/1, which sees 12 back: ", "12 channels of 20 GB/s."),
            ("real/2xa100pcie-nvbridge-degraded-fusednic", "GPU/0 sees 1 NVLink to GPU/1, which sees 12 back: ", "12 channels of 20 GB/s."),
            ("real/aws-p5.48xlarge-h100", "NET/0, NET/1, NET/2, NET/3 and 28 more count as one port of 100 Gb/s because their guid ",
             "2 channels of 12 GB/s."),
            ("derived/aws-p5-nvs18", "NET/0, NET/1, NET/2, NET/3 and 28 more count as one port of 100 Gb/s because their guid ",
             "32 channels of 12 GB/s."),
        ):
            line = self.first("--topo", self.shared(name))
            self.assertTrue(line.startswith(start) and line.endswith(end), f"{name}: {line}")

    def test_every_machine_has_an_answer(self):
        for f in tool.machines("random") + self.shared_machines("real", "derived", "from-public"):
            self.good_or_refused("--topo", f, "--hosts", "2")


if __name__ == "__main__":
    tool.main()
