#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain search`: the headline is a fault, or the limit; sound machines are not suspected."""
import os

import tool

# Machines that lack something on purpose, and the missing parts.
FAULTY = {
    "a100-nvsw-8nic-broken-gpu3.xml": "few_nvlinks",
    "dgx1v-hcm-4nic-broken-0-3.xml": "few_nvlinks",
    "dgx1v-hcm-4nic-missing-0-4.xml": "few_nvlinks",
}


class Search(tool.Case):
    words = ("explain", "search")

    def answer(self, machine, *args, **env):
        return self.json(*args, "--topo", tool.machine(machine), **env)

    def verdict(self, machine, *args, **env):
        return self.answer(machine, *args, **env)["verdict"]["code"]

    def test_the_first_line_is_the_verdict(self):
        for machine in ("h100-rail-8nic-400g", "a100-rail-8nic-200g", "a100-nvsw-8nic-broken-gpu3"):
            out = self.good("--topo", tool.machine(machine), "--hosts", "2")
            o = self.answer(machine, "--hosts", "2")
            self.assertEqual(out.split("\n")[0], f"NCCL {o['nccl']}: {o['verdict']['text']}")

    def test_what_limits(self):
        for machine, hosts, verdict, limit, result, full in (
            ("h100-rail-8nic-400g", 1, "limit", "links", (12, 30), ("GPU", "NVS")),
            ("h100-rail-8nic-400g", 2, "limit", "links", (8, 48), ("GPU", "PCI")),
            ("single-gpu-1nic", 1, "limit", "channels", (32, 40), None),
            ("pcie-2cpu-4gpu", 1, "limit", "links", (1, 10), ("GPU", "PCI")),
        ):
            o = self.answer(machine, "ring", "--hosts", str(hosts))
            g = o["graphs"][0]
            self.assertEqual((o["verdict"]["code"], g["limit"], g["nchannels"], g["bw_intra"]), (verdict, limit, *result), machine)
            lacking = {(l["from"].split("/")[0], l["to"].split("/")[0]) for l in g["links"] if l["lacks"] > 0}
            self.assertEqual(full in lacking, full is not None, (machine, lacking))
        o = self.answer("a100-rail-8nic-200g", "--hosts", "2", "--nccl", "2.26.3")
        tree = next(g for g in o["graphs"] if g["graph"] == "tree")
        self.assertEqual((o["verdict"]["code"], tree["end"]["code"], tree["bw_intra"], o["channels"]["nchannels"]), ("fallback", "fallback", 0.1, 2))
        o = self.answer("a100-rail-8nic-200g", "--hosts", "2")  # which may use NICs as far as SYS
        self.assertEqual((o["verdict"]["code"], o["channels"]["nchannels"]), ("limit", 16))

    def test_faults_are_tried_without(self):
        for machine, now, without in (("a100-nvsw-8nic-broken-gpu3", (6, 20), (12, 20)), ("dgx1v-hcm-4nic-missing-0-4", (4, 20), (6, 20))):
            o = self.answer(machine)
            (fault,) = o["faults"]
            self.assertEqual((o["verdict"]["code"], fault["code"], fault["graph"], fault["costs"]), ("fault", "few_nvlinks", "ring", True))
            for key, want in (("now", now), ("without", without)):
                self.assertEqual((fault[key]["nchannels"], fault[key]["bw_intra"]), want, machine)

    def test_faults_that_cost_nothing_are_not_the_verdict(self):
        o = self.answer("dgx1v-hcm-4nic-missing-0-4", "--hosts", "2")
        self.assertEqual((o["verdict"]["code"], [(f["code"], f["tried"], f["costs"]) for f in o["faults"]]),
                         ("limit", [("few_nvlinks", True, False)]))
        o = self.json("--topo", self.edited("dgx1v-hcm-0nic", ('count="2"', 'count="1"', 1)))
        self.assertEqual((o["verdict"]["code"], o["faults"][0]["code"]), ("fault", "unequal_nvlinks"))

    def test_a_mended_machine_is_the_sound_one(self):
        """The reported cost of a fault equals the gain of the machine without it."""
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
        for hosts in (1, 2):
            o = self.json("--topo", f, "--hosts", str(hosts), "--nccl", "2.28.3")
            (fault,) = o["faults"]
            self.assertEqual((o["verdict"]["code"], fault["code"], fault["hosts"], fault["graph"]), ("fault", "shared_port", 2, "ring"))
            self.assertEqual([(fault[k]["nchannels"], fault[k]["bw_intra"]) for k in ("now", "without")], [(2, 24), (8, 48)])

    def test_faults_that_cost_more_together(self):
        f = self.edited("a100-nvsw-8nic-broken-gpu3", ('guid="0x', 'guid="'))
        o = self.json("ring", "--topo", f, "--hosts", "2", "--nccl", "2.28.3")
        self.assertEqual([(x["code"], x["together"]) for x in o["faults"]], [("few_nvlinks", True), ("shared_port", True)])
        sound = self.json("ring", "--topo", tool.machine("a100-nvsw-8nic-200g"), "--hosts", "2")["graphs"][0]
        self.assertEqual(o["faults"][0]["without"]["nchannels"], sound["nchannels"])
        o = self.json("ring", "--topo", f, "--nccl", "2.28.3")  # one host: each costs something by itself, in another place
        self.assertEqual([(x["code"], x["together"], x["hosts"]) for x in o["faults"]], [("few_nvlinks", False, 1), ("shared_port", False, 2)])

    def test_a_topology_of_a_setting_is_named_with_who_set_it(self):
        file = tool.machine("pcie-2cpu-4gpu")
        o = self.json("--hosts", "2", NCCL_TOPO_FILE=file)
        self.assertEqual((o["topology"], o["topology_origin"], o["hosts"], o["ranks_total"]), (file, "environment", 2, 8))
        self.assertIsNone(self.json("--topo", file)["topology_origin"])

    def test_a_graph_file_is_named_with_who_set_it(self):
        machine = tool.machine("pcie-2cpu-4gpu")
        g = tool.good("graph", "--topo", machine, "--format", "xml")
        with tool.written(g.replace('speedintra="10"', 'speedintra="5"').replace('speedinter="10"', 'speedinter="5"')) as t:
            o = self.json("ring", "--topo", machine, NCCL_GRAPH_FILE=t.name)
            self.assertEqual((o["verdict"]["code"], o["graph_file"]), ("graph_file", {"file": t.name, "origin": "environment"}))
            self.assertEqual((o["graphs"][0]["bw_intra"], o["graphs"][0]["searched"]["bw_intra"]), (5, 10))
            o = self.json("ring", "--topo", machine, "--with", f"NCCL_GRAPH_FILE={t.name}")
            self.assertEqual(o["graph_file"]["origin"], "--with")
            o = self.json("ring", "--topo", machine, "--gpus", "0,1", NCCL_GRAPH_FILE=t.name)
            self.assertEqual(o["verdict"]["code"], "graph_file_refused")
            self.assertRegex(o["graphs"][0]["graph_file_refused"], f"^{t.name}:[0-9]+: ")
        o = self.json("ring", "--topo", machine)
        self.assertEqual((o["graph_file"], o["graphs"][0]["searched"]), (None, None))

    def test_all_shows_every_attempt(self):
        machine = tool.machine("pcie-2cpu-4gpu")
        o = self.json("ring", "--all", "--topo", machine)["graphs"][0]
        self.assertEqual(o["chapters"][-1]["attempts"][1], len(o["attempts"]) - 1)
        for c in o["chapters"]:
            self.assertEqual(c["made"] + c["repeated"] + c["hopeless"], c["attempts"][1] - c["attempts"][0] + 1)

    def test_loads_agree_with_the_paths(self):
        """Every GPU of a ring sends and receives all channels: the loads of its links must add up to that."""
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
        g = self.json("ring", "--topo", f, "--hosts", "2", "--nccl", "2.26.3")["graphs"][0]
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
             [("ring", 8), ("twice", 16), ("max_channels", 4), ("min_channels", 6)]),
            ({"NCCL_MAX_NCHANNELS": "4", "NCCL_MIN_NCHANNELS": "6", "KOLO_NCCL_VERSION": "2.27.7"},
             [("ring", 8), ("twice", 16), ("max_channels", 4), ("min_channels", 6), ("nvls", 16)]),
            ({"NCCL_MAX_CTAS": "6", "NCCL_NVLS_ENABLE": "0"}, [("ring", 8), ("twice", 16), ("max_ctas", 6)]),
        ):
            o = self.json("ring", "--topo", machine, "--hosts", "2", **env)["channels"]
            self.assertEqual([(s["code"], s["after"]) for s in o["steps"]], want, env)
            self.assertEqual(o["nchannels"], want[-1][1])
        o = self.json("tree", "--topo", tool.machine("a100-rail-8nic-200g"), "--hosts", "2", "--nccl", "2.26.3")["channels"]
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
        nvl, port = "few_nvlinks", "shared_port"
        for name, codes, without in (
            ("derived/gb300-nvl72-2tray-rank5-no-nvlink-numhash", [nvl], (16, 45)),
            ("derived/gb300-nvl72-2tray-rank5-no-nvlink", [nvl, "host_hash"], (16, 45)),
            ("from-public/gb300-nvl72-2tray-rank5-no-nvlink", [nvl, "host_hash"], (16, 45)),
            ("real/2xa100pcie-nvbridge-degraded", ["unequal_nvlinks"], (12, 20)),
            ("real/2xa100pcie-nvbridge-degraded-fusednic", ["unequal_nvlinks"], (12, 20)),
            ("real/aws-p5.48xlarge-h100", [port, "no_nvlinks"], (2, 12)),
            ("derived/aws-p5-nvs18", [port], (32, 12)),
        ):
            nccl = "2.26.3" if port in codes else "2.30.7"  # which reads guids in decimal as well
            o = self.json("--topo", self.shared(name), "--nccl", nccl)
            costly = [f for f in o["faults"] if f["costs"]]
            self.assertEqual((o["verdict"]["code"], [f["code"] for f in costly]), ("fault", codes), name)
            self.assertEqual((costly[0]["without"]["nchannels"], costly[0]["without"]["bw_intra"]), without, name)

    def test_every_machine_has_an_answer(self):
        for f in tool.swept(tool.machines("random") + self.shared_machines("real", "derived", "from-public")):
            self.good_or_refused("--topo", f, "--hosts", "2")


if __name__ == "__main__":
    tool.main()
