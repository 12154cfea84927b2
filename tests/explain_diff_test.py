#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain diff` and the options --with, --without and --without-link, as their users meet them."""
import json
import os
import sys

import tool

CASES = {
    "a100-lost-links": ["--topo", "a100-nvsw-8nic-200g", "--topo", "a100-nvsw-8nic-broken-gpu3"],
    "dgx1v-lost-link": ["--topo", "dgx1v-hcm-4nic", "--topo", "dgx1v-hcm-4nic-broken-0-3"],
    "h100-rail-net": ["--topo", "h100-rail-8nic-400g", "--without", "NET/3"],
    "h100-rail-net-2h": ["--topo", "h100-rail-8nic-400g", "--hosts", "2", "--without", "NET/3"],
    "gb200-p2p-off": ["--topo", "gb200-4gpu-4nic", "--with", "NCCL_P2P_DISABLE=1"],
    "pcie-p2p-sys": ["--topo", "pcie-2cpu-4gpu", "--with", "NCCL_P2P_LEVEL=SYS"],
    "a100-pxn-off": ["--topo", "a100-nvsw-4nic-200g", "--hosts", "2", "--with", "NCCL_PXN_DISABLE=1"],
    "dgx1v-several": ["--topo", "dgx1v-hcm-4nic", "--without-link", "GPU/0-GPU/3:1", "--without-link", "GPU/0-GPU/1",
                      "--with", "NCCL_NET_GDR_READ=1"],
}


def kolo(*args, **env):
    """The tool, on machines by name."""
    files = [tool.machine(a) if os.path.exists(tool.machine(a)) else a for a in args]
    return tool.run(*files, **env)


class Diff(tool.Case):
    words = ("explain", "diff")

    def run_tool(self, *args, **env):
        return kolo(*self.words, *args, **env)

    def refused_naming(self, parts, code, *words):
        p = kolo(*words)
        self.check_refusal(p, code, ".", words)
        for part in parts:
            self.assertIn(part, p.stderr)

    def effects(self, *args, **env):
        """The subject of the first line, by code."""
        return {e["code"]: e for e in self.json(*args, **env)["cause"]["effects"]}

    # ---- everything ----

    def test_first_line_and_totals(self):
        for name, args in CASES.items():
            first, o = self.good(*args).split("\n")[0], self.json(*args)
            self.assertEqual(set(o), {"schema", "cause", "differences", "changes", "totals", "a", "b", "ranks_in_b", "release_changes"}, name)
            c = o["cause"]
            if c["code"] == "changes":
                self.assertEqual(first, f"NCCL {tool.NCCL}: {c['text']}: {c['effect']}", name)
            else:
                self.assertEqual(first, f"NCCL {tool.NCCL}: nothing changes: {c['text']}; why: {c['why']}", name)
            listed = {}
            for row in o["changes"]:
                listed[row["what"]] = listed.get(row["what"], 0) + 1
                self.assertNotEqual(row["a"], row["b"], (name, row))
            self.assertEqual(listed, {k: v["changed"] for k, v in o["totals"].items() if v["changed"]}, name)

    def test_what_is_named(self):
        for name, codes in (
            ("a100-lost-links", ["graph_numbers", "time"]),
            ("dgx1v-lost-link", ["graph_numbers", "time"]),
            ("h100-rail-net-2h", ["graph_numbers", "time"]),
            ("gb200-p2p-off", ["rule", "graph_lost", "time"]),
            ("pcie-p2p-sys", ["rule", "unchanged"]),
            ("a100-pxn-off", ["rule", "rule", "unchanged"]),
            ("dgx1v-several", ["graph_numbers", "time"]),
        ):
            c = self.json(*CASES[name])["cause"]
            self.assertEqual([e["code"] for e in c["effects"]], codes, (name, c["effect"]))
        e = self.effects(*CASES["pcie-p2p-sys"])["rule"]
        self.assertEqual((e["what"], e["a"], e["b"], e["p2p_reach"]), ("transport", "SHM", "P2P", {"a": "PXB", "b": "SYS", "off": False}))
        self.assertTrue(self.effects(*CASES["gb200-p2p-off"])["rule"]["p2p_reach"]["off"])

    # ---- the cause ----

    def test_values_are_those_of_the_plans(self):
        o = self.json(*CASES["a100-lost-links"])
        for side, f in (("a", "a100-nvsw-8nic-200g"), ("b", "a100-nvsw-8nic-broken-gpu3")):
            plan = json.loads(kolo("graph", "--topo", f, "--json").stdout)
            self.assertEqual(o[side]["nchannels"], plan["nchannels"])
            self.assertEqual(o[side]["graphs"]["ring"]["channels"], plan["graphs"]["ring"]["nChannels"])
            times = {f"AllReduce {n}": s["time_us"] for n, b in (("1 MiB", 1 << 20), ("64 MiB", 64 << 20))
                     for s in plan["tuning"]["select"]["AllReduce"] if s["bytes"] == b}
            for row in o["changes"]:
                if row["subject"] in times:
                    self.assertAlmostEqual(row[side]["time_us"], times[row["subject"]], 3)

    def test_the_smallest_cause_is_found(self):
        lost, other = ["--without-link", "GPU/0-GPU/3:1"], ["--with", "NCCL_NET_GDR_READ=1"]
        alone, o = (self.json("--topo", "dgx1v-hcm-4nic", *edits) for edits in (lost, other + lost))
        self.assertEqual(o["cause"], alone["cause"])
        self.assertEqual({d["subject"]: (d["cause"], d["alone_explains"]) for d in o["differences"]},
                         {"GPU/0-GPU/3": (True, "all"), "NCCL_NET_GDR_READ": (False, "nothing")})
        self.assertTrue(o["cause"]["verified"])

    def test_causes_that_work_only_together(self):
        o = self.json(*CASES["dgx1v-several"])
        self.assertEqual([(d["subject"], d["cause"], d["alone_explains"]) for d in o["differences"]],
                         [("GPU/0-GPU/1", True, "part"), ("GPU/0-GPU/3", True, "part"),
                          ("NCCL_NET_GDR_READ", False, "nothing")])
        self.assertTrue(o["cause"]["verified"])

    def test_what_means_nothing_is_no_difference(self):
        with open(tool.machine("dgx1v-hcm-4nic"), encoding="utf-8") as f:
            text = f.read().replace('name="mlx5_', 'name="roce').replace('affinity="', 'affinity="0,')
        with tool.written(text) as t:
            same = self.json("--topo", "dgx1v-hcm-4nic", "--topo", t.name)
            self.assertEqual((same["cause"]["why_code"], same["differences"]), ("meaningless", []))
            lost = self.json("--topo", t.name, "--topo", "dgx1v-hcm-4nic-broken-0-3")
        self.assertEqual([d["subject"] for d in lost["differences"]], ["GPU/0-GPU/3"])

    def test_an_edit_is_the_same_as_an_edited_file(self):
        edited = self.json("--topo", "dgx1v-hcm-4nic", "--without-link", "GPU/3-GPU/0:1")
        written = self.json("--topo", "dgx1v-hcm-4nic", "--topo", "dgx1v-hcm-4nic-broken-0-3")
        for key in ("cause", "differences", "changes"):
            self.assertEqual(edited[key], written[key])

    def test_nothing_changes(self):
        for args, why in (
            (["--topo", "dgx1v-hcm-4nic", "--topo", "dgx1v-hcm-4nic"], "same_input"),
            (["--topo", "pcie-2cpu-4gpu", "--with", "NCCL_P2P_DISABLE=0"], "same_value"),
            (["--topo", "pcie-2cpu-4gpu", "--with", "NCCL_IB_ECE_ENABLE=x"], "no_parameter"),
            (["--topo", "pcie-2cpu-4gpu", "--with", "NCCL_CONF_FILE_X=1"], None),
            (["--topo", "dgx1v-hcm-0nic", "--with", "NCCL_CROSS_NIC=0"], "no_rule"),
            (["--topo", "h100-rail-8nic-400g", "--without", "NET/3"], "no_network"),
            (["--topo", "dgx1v-hcm-4nic", "--with", "NCCL_CROSS_NIC=2", "--with", "NCCL_NET_GDR_READ=1"], "several_unused"),
        ):
            if why is None:
                self.refused(2, "no such setting", *args)
                continue
            c = self.json(*args)["cause"]
            self.assertEqual((c["code"], c["why_code"]), ("nothing_changes", why), args)
            self.assertTrue(self.good(*args).startswith(f"NCCL {tool.NCCL}: nothing changes: "))

    def test_two_releases(self):
        args = ("--topo", "gb200-4gpu-4nic", "--hosts", "2", "--nccl", "2.26.3", "--nccl", "2.29.7")
        out = self.good(*args)
        self.assertTrue(out.startswith("NCCL 2.29.7 instead of 2.26.3: "), out)
        self.assertIn("NVLS has channels of its own", out.partition("what changed between NCCL 2.26.3 and 2.29.7 ")[2])
        found = {c["code"]: c for c in self.json(*args)["release_changes"]}
        self.assertTrue({"nvlink_40_1", "nvls_apart", "nvls_model"} <= {k for k, c in found.items() if c["cause"]})
        self.assertFalse(found["inter_up_to_sys"]["cause"])  # which is for GPUs before sm 90
        self.assertNotIn("rails", found)  # which came later

    def test_one_change_between_releases_explains_all(self):
        args = ("--machine", "dgx-h100", "--nccl", "2.26.3", "--nccl", "2.29.7")
        causes = [c for c in self.json(*args)["release_changes"] if c["cause"]]
        self.assertEqual([(c["code"], c["alone_explains"]) for c in causes], [("nvls_model", "all")])
        self.assertIn("<- alone has the whole effect", self.good(*args))
        back = [c["code"] for c in self.json(*args[:2], "--nccl", "2.29.7", "--nccl", "2.26.3")["release_changes"] if c["cause"]]
        self.assertEqual(back, ["nvls_model"])

    def test_what_a_release_sees_of_a_machine_is_no_difference_of_its_own(self):
        with tool.recorded("two-sockets") as d:
            tool.second_port(d, "mlx5_0")
            o = self.json("--sysfs", d, "--hosts", "2", "--nccl", "2.26.3", "--nccl", "2.27.7")
            self.assertEqual(o["differences"], [])
            self.assertIn("merged_only", [c["code"] for c in o["release_changes"] if c["cause"]])
            setting = self.json("--sysfs", d, "--hosts", "2", "--with", "NCCL_IB_MERGE_NICS=0", "--with", "NCCL_CROSS_NIC=2")
            self.assertEqual([(f["subject"], f["cause"]) for f in setting["differences"]],
                             [("NCCL_IB_MERGE_NICS", True), ("NCCL_CROSS_NIC", False)])

    def test_partitions_of_gpus_came_with_a_release(self):
        gpu = """<pci busid="0000:0{0}:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
            <gpu dev="{1}" sm="100" gdr="1" mlopart="0"/><gpu dev="{2}" sm="100" gdr="1" mlopart="1"/></pci>"""
        net = """<pci busid="0000:04:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="16">
            <nic><net name="mlx5_0" dev="0" speed="400000" gdr="1"/></nic></pci>"""
        with tool.written(f"""<system version="1"><cpu numaid="0" arch="arm64">
                <pci busid="0000:01:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
                {gpu.format(2, 0, 1)}{gpu.format(3, 2, 3)}{net}</pci></cpu></system>""") as f:
            one = ("--topo", f.name, "--hosts", "2", "--gpus", "0,2", "--nccl", "2.30.4", "--nccl", "2.30.7")
            self.assertIn("mlopart", [c["code"] for c in self.json(*one)["release_changes"] if c["cause"]])
            o = self.json("--topo", f.name, "--without", "GPU/1")
            self.assertEqual([(d["subject"], d["cause"]) for d in o["differences"]], [("GPU/1", True)])
            self.refused(1, "0000:02:00.0: several ranks share it", "--topo", f.name, "--nccl", "2.30.4", "--nccl", "2.30.7")

    def test_releases_that_change_nothing_here(self):
        o = self.json("--topo", "dgx1v-hcm-4nic", "--nccl", "2.30.3", "--nccl", "2.30.4")
        self.assertEqual((o["cause"]["code"], o["release_changes"]), ("nothing_changes", []))
        c = self.json("--topo", "dgx1v-hcm-4nic", "--nccl", "2.28.9", "--nccl", "2.30.7")
        self.assertEqual((c["cause"]["why_code"], {x["cause"] for x in c["release_changes"]}), ("same_for_releases", {False}))
        both = self.json("--topo", "dgx1v-hcm-4nic", "--nccl", "2.26.3", "--nccl", "2.30.7", "--with", "NCCL_CROSS_NIC=0")
        self.assertEqual({c["cause"] for c in both["release_changes"]}, {None})  # two kinds of causes: not tried

    def test_what_came_with_2_31_and_2_32(self):
        for machine, hosts, want in (
            ("gcp-g4-standard-384", "1", {"amd_models", "amd_sockets", "ring_512"}),
            ("leonardo", "2", {"tree_lesser"}),
            ("dgx-b200", "1", {"ring_plateau"}),
            ("dgx-h100", "1", set()),
        ):
            o = self.json("--machine", machine, "--hosts", hosts, "--nccl", "2.30.7", "--nccl", "2.32.3")
            self.assertEqual({c["code"] for c in o["release_changes"] if c["cause"]}, want, machine)
            self.assertEqual(o["a"]["uncertain"], [], machine)
            # The plateau was read; the other constants that matter here were not, but for slow rings, which are none any more.
            self.assertEqual({u["code"] for u in o["b"]["uncertain"]}, want - {"ring_plateau", "ring_512"}, machine)

    def test_two_releases_only(self):
        o = self.json("--topo", "gb200-4gpu-4nic", "--nccl", "2.26.3", "--nccl", "2.29")
        self.assertEqual((o["a"]["nccl"], o["b"]["nccl"]), ("2.26.3", "2.29.7"))
        self.refused(2, "compares two releases", "--topo", "gb200-4gpu-4nic", *(3 * ["--nccl", "2.29"]))

    def test_threads_are_a_change(self):
        e = self.effects("--topo", "a100-nvsw-8nic-200g", "--with", "NCCL_NTHREADS=64")["time"]
        self.assertEqual([e[side]["choice"] for side in "ab"], ["Ring Simple on 24, 544 threads", "Ring Simple on 24, 96 threads"])
        self.assertEqual(e["a"]["time_us"], e["b"]["time_us"])

    def test_one_gpu_takes_no_time(self):
        e = self.effects("--topo", "pcie-1cpu-2gpu-amd", "--without", "GPU/1")["time"]
        self.assertEqual((e["subject"], e["b"]), ("AllReduce 64 MiB", {"choice": "a copy, nothing is sent", "time_us": None}))

    def test_graphs_that_keep_their_bandwidth_say_what_changes(self):
        e = self.effects("--topo", "a100-nvsw-4nic-200g", "--hosts", "2", "--with", "NCCL_CROSS_NIC=1")
        self.assertEqual(list(e), ["graphs_kept", "graph_number"])
        e = e["graph_number"]
        self.assertEqual((e["subject"], e["a"], e["b"]), ("ring: crossing NICs", "no", "yes"))

    def test_a_time_without_its_latency_is_not_to_be_trusted(self):
        o = self.json("--topo", "gb200-4gpu-4nic", "--with", "NCCL_P2P_DISABLE=1")
        time = next(e for e in o["cause"]["effects"] if e["code"] == "time")
        self.assertEqual([time[side].get("timeless_hops") for side in "ab"], [None, True])
        times = {c["subject"]: c for c in o["changes"] if c["what"] == "tuning"}
        self.assertEqual([times["AllReduce 1 KiB"][side].get("timeless_hops") for side in "ab"], [None, True])
        self.assertNotIn("timeless_hops", times["Broadcast 1 KiB"]["b"])

    def test_orders_of_many_gpus_are_compared_to_the_end(self):
        o = self.json("--topo", "h100-nvsw-8nic-400g", "--hosts", "8", "--mnnvl", "--with", "NCCL_P2P_DISABLE=1")
        orders = [c for c in o["changes"] if c["what"] == "order"]
        self.assertTrue(orders)
        for c in orders:
            for side in "ab":
                self.assertRegex(c[side], r"^(NET/\d+ )?\d+( \d+){15} \.\.\. 48 more( NET/\d+)?$|^[\d NET/]+$")

    def test_a_topology_file_that_cannot_be_read_is_named(self):
        p = kolo("explain", "search", "--ranks", "2", NCCL_TOPO_FILE="/nonexistent")
        self.assertEqual(p.returncode, 0)
        self.assertRegex(p.stderr, r"^warning: NCCL_TOPO_FILE=/nonexistent cannot be read.*\n$")

    def test_a_value_in_the_environment_is_what_is_compared_with(self):
        o = self.json("--topo", "pcie-2cpu-4gpu", "--with", "NCCL_P2P_LEVEL=SYS", NCCL_P2P_LEVEL="SYS")
        self.assertEqual((o["cause"]["why_code"], o["differences"][0]["a"]), ("same_value", "SYS (environment)"))

    def test_gpus_that_close_ranks_keep_their_names(self):
        o = self.json("--topo", "dgx1v-hcm-4nic", "--without", "GPU/3")
        self.assertEqual([(d["code"], d["subject"], d["b"]) for d in o["differences"]], [("gpu", "GPU/3", "absent")])
        self.assertEqual(o["ranks_in_b"], [0, 1, 2, None, 3, 4, 5, 6])
        ring = next(c for c in o["changes"] if c["subject"] == "ring channel 0")
        self.assertEqual(sorted(map(int, ring["b"].split())), [0, 1, 2, 4, 5, 6, 7])  # the ring goes on over the same GPUs

    def test_a_relay_that_only_b_has_is_named_as_its(self):
        o = self.json("--topo", "a100-nvsw-8nic-200g", "--topo", "a100-rail-8nic-200g", "--hosts", "2")
        relays = {c["b"] for c in o["changes"] if c["what"] == "relay"}
        self.assertTrue(any(r.endswith(" of B") for r in relays), relays)
        self.assertFalse(any("GPU/-" in r for r in relays), relays)

    def test_another_machine(self):
        o = self.json("--topo", "pcie-2cpu-4gpu", "--topo", "gb200-4gpu-4nic")
        self.assertEqual([d["code"] for d in o["differences"]], ["machine"])

    # ---- --with, --without, --without-link ----

    def test_edits_work_everywhere(self):
        def plan(*args, **env):
            o = json.loads(kolo("graph", "--topo", "pcie-8gpu-4nic-100g", "--json", *args, **env).stdout)
            return {k: o[k] for k in ("paths", "graphs", "rings", "trees", "tuning")}

        for name, value, other in (("NCCL_SHM_DISABLE", "1", "0"), ("NCCL_MIN_NCHANNELS", "6", "4"),
                                   ("NCCL_ALGO", "tree", "ring")):  # of comm, graph and tuning
            want = plan(**{name: value})
            self.assertNotEqual(plan(), want)
            self.assertEqual(plan("--with", f"{name}={value}"), want)
            self.assertEqual(plan("--with", f"{name}={other}", f"--with={name}={value}", **{name: other}), want)
        path = kolo("topo", "--topo", "a100-nvsw-8nic-200g", "--with", "NCCL_PXN_DISABLE=1", "--json", "--path", "GPU/0", "NET/7")
        self.assertEqual(json.loads(path.stdout)["pxn"]["reason"]["code"], "disabled")

    def xml(self, *args):
        return tool.checked(kolo("topo", "--format", "xml", *args))

    def test_edits_of_a_machine(self):
        self.assertEqual(self.xml("--topo", "dgx1v-hcm-4nic", "--without-link", "GPU/0-11000-GPU/3:1"),
                         self.xml("--topo", "dgx1v-hcm-4nic-broken-0-3"))
        self.assertEqual(self.xml("--topo", "dgx1v-hcm-4nic", "--without-link", "GPU/0-GPU/4"),
                         self.xml("--topo", "dgx1v-hcm-4nic-missing-0-4"))
        self.assertEqual(self.xml("--topo", "dgx1v-hcm-4nic", "--without", "GPU/2", "--without", "GPU/0"),
                         self.xml("--topo", "dgx1v-hcm-4nic", "--gpus", "1,3,4,5,6,7"))
        self.assertEqual(self.xml("--topo", "dgx1v-hcm-4nic", "--gpus", "4,5,6", "--without", "GPU/1"),
                         self.xml("--topo", "dgx1v-hcm-4nic", "--gpus", "4,6"))
        system = [json.loads(kolo("topo", "--json", *a).stdout)["system"] for a in (
            ["--topo", "a100-nvsw-8nic-200g", "--without-link", "GPU/3-NVS:6"], ["--topo", "a100-nvsw-8nic-broken-gpu3"])]
        self.assertEqual(*system)  # three of six switches lost, or one link of two to each: the same bandwidth
        left = self.xml("--topo", "h100-rail-8nic-400g", "--without", "NET/3")
        self.assertEqual([f'dev="{i}" speed' in left for i in range(8)], [i != 3 for i in range(8)])

    def test_machines_that_are_looked_at_can_be_edited(self):
        left = self.xml("--ranks", "4", "--without", "GPU/1")
        self.assertEqual([f'rank="{i}"' in left for i in range(4)], [True, True, True, False])
        self.assertEqual([f'dev="{i}" sm=' in left for i in range(4)], [True, False, True, True])
        self.assertEqual(self.json("--ranks", "4", "--with", "NCCL_DEBUG=WARN")["cause"]["code"], "nothing_changes")
        (gone,) = self.json("--ranks", "4", "--without", "GPU/1")["differences"]
        self.assertEqual((gone["subject"], gone["b"]), ("GPU/1", "absent"))

    def test_what_cannot_be_edited_is_named(self):
        for code, args, parts in (
            (2, ["--with", "NCCL_P2P_LVEL=SYS"], ["did you mean NCCL_P2P_LEVEL?"]),
            (2, ["--with", "NCCL_P2P_LEVEL"], ["expected NAME=VALUE"]),
            (2, ["--with", "=1"], ["expected NAME=VALUE"]),
            (1, ["--with", "NCCL_P2P_LEVEL=FAR"], ["NCCL_P2P_LEVEL=FAR", "one of LOC, NVL"]),
            (1, ["--without", "GPU/8"], ["GPU/8", "GPU/0, GPU/1"]),
            (1, ["--without", "NET/4"], ["NET/4", "NET/3"]),
            (1, ["--without", "CPU/0-0"], ["only GPUs and NETs"]),
            (2, ["--without-link", "GPU/0"], ["expected two nodes"]),
            (2, ["--without-link", "GPU/0-GPU/1:0"], ["number of links"]),
            (1, ["--without-link", "GPU/0-GPU/5"], ["no such link", "GPU/1, "]),
            (1, ["--without-link", "GPU/0-GPU/9"], ["GPU/9"]),
            (1, ["--without-link", "GPU/0-GPU/3:3"], ["only 2 links"]),
            (1, ["--without-link", "GPU/0-PCI/0-b0000"], ["PCI link"]),
            (1, sum((["--without", f"GPU/{i}"] for i in range(8)), []), ["no GPU", "is left"]),
        ):
            for command in (["topo"], ["graph"], ["explain", "diff"]):
                self.refused_naming(parts, code, *command, "--topo", "dgx1v-hcm-4nic", *args)

    def test_transports_are_those_of_pair(self):
        o = self.json("--ranks", "2", "--with", "NCCL_SHM_DISABLE=1")
        pair = json.loads(kolo("explain", "pair", "0", "1", "--ranks", "2", "--json").stdout)
        rows = [c for c in o["changes"] if c["what"] == "transport"]
        self.assertEqual([(r["a"], r["b"]) for r in rows], 2 * [(pair["transport"], "NET")])

    def test_what_changes_only_threads_is_a_cause(self):
        o = self.json("--topo", "dgx1v-hcm-4nic", "--with", "NCCL_NTHREADS=64", "--with", "NCCL_NET_OVERHEAD=5000")
        self.assertTrue(o["cause"]["verified"])
        self.assertEqual({d["subject"]: d["alone_explains"] for d in o["differences"]},
                         {"NCCL_NTHREADS": "all", "NCCL_NET_OVERHEAD": "nothing"})

    def test_a_link_that_one_end_does_not_see_cannot_be_cut(self):
        with open(tool.machine("dgx1v-hcm-4nic"), encoding="utf-8") as f:
            whole = f.read()
        one = whole.replace('count="2"', 'count="1"', 1)  # GPU/0 sees one NVLink to GPU/3, which sees two back
        self.assertNotEqual(one, whole)
        with tool.written(one) as f:
            for link in ("GPU/0-GPU/3:2", "GPU/3-GPU/0:2"):
                self.refused_naming(["there is only 1 link"], 1, "topo", "--topo", f.name, "--without-link", link)

    def test_usage(self):
        self.refused(2, "compare with what", "--topo", "dgx1v-hcm-4nic")
        self.refused(2, "two files", "--topo", "a", "--topo", "b", "--topo", "c")
        self.refused(2, "standard input", "--topo", "-", "--topo", "-")
        self.refused(1, "/nonexistent", "--topo", "dgx1v-hcm-4nic", "--topo", "/nonexistent")
        self.assertIn("--without-link", kolo("explain", "--help").stdout)

    # ---- machines of others ----

    def test_a_degraded_bridge(self):
        sound = self.shared("real/2xa100pcie-nvbridge")
        for bad in ("degraded", "degraded-fusednic"):  # the second differs in its NICs too, which matters to nothing
            o = self.json("--topo", sound, "--topo", self.shared(f"real/2xa100pcie-nvbridge-{bad}"))
            self.assertEqual([(d["code"], d["subject"], d["a"], d["b"]) for d in o["differences"] if d["cause"]],
                             [("link", "GPU/0 to GPU/1", "12 NVLinks, 240 GB/s", "1 NVLink, 20 GB/s")])
            self.assertEqual([o[side]["graphs"]["ring"]["channels"] for side in "ab"], [12, 1])

    def test_pxn_on_a_real_machine(self):
        f = self.shared("real/oci-bm.gpu.h100.8")
        o = self.json("--topo", f, "--hosts", "2", "--with", "NCCL_PXN_DISABLE=1")
        self.assertEqual(o["totals"]["relay"], {"compared": 128, "changed": 112})
        e = o["cause"]["effects"][0]
        self.assertEqual((e["what"], e["b"], e["alike"]), ("relay", "direct", 112))

    def test_every_machine_can_lose_something(self):
        asked = 0
        for f in tool.swept((tool.machines("synthetic") + self.shared_machines("*"))[::int(os.environ.get("STEP", 3))]):
            if kolo("topo", "--topo", f).returncode:
                continue
            for args in (["--with", "NCCL_P2P_DISABLE=1", "--hosts", "2"], ["--without", "GPU/0"]):
                self.good_or_refused("--topo", f, *args)
                asked += 1
        print(f"{asked} questions asked", file=sys.stderr)
        self.assertGreater(asked, 0)

    def test_a_document_is_the_machine_it_describes(self):
        with tool.written(self.xml("--ranks", "4")) as t:
            plans = [json.loads(kolo("graph", "--json", *a).stdout) for a in (["--ranks", "4"], ["--topo", t.name])]
        for key in ("system", "paths", "graphs", "rings", "trees", "tuning"):
            self.assertEqual(plans[0][key], plans[1][key], key)


if __name__ == "__main__":
    tool.main()
