#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain diff` and the options --with, --without and --without-link, as their users meet them.

Whole pages are in tests/data/explain/diff-*.txt.
"""
import json
import os
import sys

import tool

PAGE_CASES = {
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

    # ---- pages ----

    def test_pages(self):
        for name, args in PAGE_CASES.items():
            self.check_page(f"diff-{name}", self.good(*args))

    def test_text_and_json_say_the_same(self):
        for name, args in PAGE_CASES.items():
            first, o = self.first(*args), self.json(*args)
            self.assertEqual(set(o), {"cause", "differences", "changes", "totals", "a", "b"}, name)
            c = o["cause"]
            if c["code"] == "changes":
                self.assertEqual(first, f"{c['text']}: {c['effect']}", name)
            else:
                self.assertEqual(first, f"nothing changes: {c['text']}; why: {c['why']}", name)
            listed = {}
            for row in o["changes"]:
                listed[row["what"]] = listed.get(row["what"], 0) + 1
                self.assertNotEqual(row["a"], row["b"], (name, row))
            self.assertEqual(listed, {k: v["changed"] for k, v in o["totals"].items() if v["changed"]}, name)

    # ---- the cause ----

    def test_values_are_those_of_the_plans(self):
        o = self.json(*PAGE_CASES["a100-lost-links"])
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
        alone = self.first("--topo", "dgx1v-hcm-4nic", *lost)
        self.assertEqual(self.first("--topo", "dgx1v-hcm-4nic", *other, *lost), alone)
        o = self.json("--topo", "dgx1v-hcm-4nic", *other, *lost)
        self.assertEqual({d["subject"]: (d["cause"], d["alone_explains"]) for d in o["differences"]},
                         {"GPU/0-GPU/3": (True, "all"), "NCCL_NET_GDR_READ": (False, "nothing")})
        self.assertTrue(o["cause"]["verified"])

    def test_causes_that_work_only_together(self):
        o = self.json(*PAGE_CASES["dgx1v-several"])
        self.assertEqual([(d["subject"], d["cause"], d["alone_explains"]) for d in o["differences"]],
                         [("GPU/0-GPU/1", True, "part"), ("GPU/0-GPU/3", True, "part"),
                          ("NCCL_NET_GDR_READ", False, "nothing")])
        self.assertTrue(o["cause"]["verified"])

    def test_what_means_nothing_is_no_difference(self):
        with open(tool.machine("dgx1v-hcm-4nic"), encoding="utf-8") as f:
            text = f.read().replace('name="mlx5_', 'name="roce').replace('affinity="', 'affinity="0,')
        with tool.written(text) as t:
            same = self.first("--topo", "dgx1v-hcm-4nic", "--topo", t.name)
            self.assertRegex(same, r"^nothing changes: what differs in the files \([0-9]+\) means nothing to a plan$")
            lost = self.json("--topo", t.name, "--topo", "dgx1v-hcm-4nic-broken-0-3")
        self.assertEqual([d["subject"] for d in lost["differences"]], ["GPU/0-GPU/3"])

    def test_an_edit_is_the_same_as_an_edited_file(self):
        edited = self.json("--topo", "dgx1v-hcm-4nic", "--without-link", "GPU/3-GPU/0:1")
        written = self.json("--topo", "dgx1v-hcm-4nic", "--topo", "dgx1v-hcm-4nic-broken-0-3")
        for key in ("cause", "differences", "changes"):
            self.assertEqual(edited[key], written[key])

    def test_nothing_changes(self):
        for args, why in (
            (["--topo", "dgx1v-hcm-4nic", "--topo", "dgx1v-hcm-4nic"], "the same machine"),
            (["--topo", "pcie-2cpu-4gpu", "--with", "NCCL_P2P_DISABLE=0"], "it was so before (0 (default))"),
            (["--topo", "pcie-2cpu-4gpu", "--with", "NCCL_IB_HCA=x"], "in Kolo it has no effect"),
            (["--topo", "dgx1v-hcm-0nic", "--with", "NCCL_CROSS_NIC=0"], "no rule that reads it answers otherwise"),
            (["--topo", "h100-rail-8nic-400g", "--without", "NET/3"], "the network is not used"),
        ):
            first = self.first(*args)
            self.assertTrue(first.startswith("nothing changes: "), first)
            self.assertIn(why, first)
            self.assertEqual(self.json(*args)["cause"]["code"], "nothing_changes")

    def test_threads_are_a_change(self):
        first = self.first("--topo", "a100-nvsw-8nic-200g", "--with", "NCCL_NTHREADS=64")
        self.assertIn('from "Ring Simple on 24, 544 threads" to "Ring Simple on 24, 96 threads"', first)

    def test_one_gpu_takes_no_time(self):
        first = self.first("--topo", "pcie-1cpu-2gpu-amd", "--without", "GPU/1")
        self.assertRegex(first, 'AllReduce 64 MiB from ".*" to "a copy, nothing is sent"$')

    def test_graphs_that_keep_their_bandwidth_say_what_changes(self):
        first = self.first("--topo", "a100-nvsw-4nic-200g", "--hosts", "2", "--with", "NCCL_CROSS_NIC=1")
        self.assertIn("keep their channels and bandwidths; ring: crossing NICs yes instead of no", first)

    def test_a_time_without_its_latency_is_not_to_be_trusted(self):
        args = ("--topo", "gb200-4gpu-4nic", "--with", "NCCL_P2P_DISABLE=1")
        self.assertIn("but the second is not to be trusted: it leaves out the latency", self.first(*args))
        times = {c["subject"]: c for c in self.json(*args)["changes"] if c["what"] == "tuning"}
        self.assertEqual((times["AllReduce 1 KiB"]["b"].get("timeless_hops"), times["AllReduce 1 KiB"]["a"].get("timeless_hops")),
                         (True, None))
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
        self.assertIn("it was so before (SYS (environment))",
                      self.first("--topo", "pcie-2cpu-4gpu", "--with", "NCCL_P2P_LEVEL=SYS", NCCL_P2P_LEVEL="SYS"))

    def test_gpus_that_close_ranks_keep_their_names(self):
        out = self.good("--topo", "dgx1v-hcm-4nic", "--without", "GPU/3")
        self.assertTrue(out.startswith("GPU/3 is gone: "), out)
        self.assertIn("GPU/4 is rank 3 in B", out)
        self.assertIn("in B: 0 4 7", out)  # the ring goes on over the same GPUs

    def test_another_machine(self):
        first = self.first("--topo", "pcie-2cpu-4gpu", "--topo", "gb200-4gpu-4nic")
        self.assertIn("another machine (4 GPUs of sm 100", first)

    # ---- --with, --without, --without-link ----

    def test_edits_work_everywhere(self):
        def plan(*args, **env):
            return kolo("graph", "--topo", "pcie-8gpu-4nic-100g", *args, **env).stdout.split("where the searches")[0]

        for name, value, other in (("NCCL_SHM_DISABLE", "1", "0"), ("NCCL_MIN_NCHANNELS", "6", "4"),
                                   ("NCCL_ALGO", "tree", "ring")):  # of comm, graph and tuning
            want = plan(**{name: value})
            self.assertNotEqual(plan(), want)
            self.assertEqual(plan("--with", f"{name}={value}"), want)
            self.assertEqual(plan("--with", f"{name}={other}", f"--with={name}={value}", **{name: other}), want)
        self.assertIn("PXN: no, NCCL_PXN_DISABLE=1", kolo("topo", "--topo", "a100-nvsw-8nic-200g", "--with",
                                                          "NCCL_PXN_DISABLE=1", "--path", "GPU/0", "NET/7").stdout)

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
        self.assertTrue(self.first("--ranks", "4", "--with", "NCCL_DEBUG=WARN").startswith("nothing changes"))
        self.assertTrue(self.first("--ranks", "4", "--without", "GPU/1").startswith("GPU/1 is gone: "))

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
            (2, ["--without-link", "GPU/0-GPU/1:0"], ["how many links"]),
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
            first = self.first("--topo", sound, "--topo", self.shared(f"real/2xa100pcie-nvbridge-{bad}"))
            self.assertTrue(first.startswith("GPU/0 to GPU/1 lost 11 of its 12 NVLinks (240 to 20 GB/s), one way: the ring "
                                             "drops from 12 channels of 20 GB/s to 1;"), first)

    def test_pxn_on_a_real_machine(self):
        f = self.shared("real/oci-bm.gpu.h100.8")
        o = self.json("--topo", f, "--hosts", "2", "--with", "NCCL_PXN_DISABLE=1")
        self.assertEqual(o["totals"]["relay"], {"compared": 128, "changed": 112})
        self.assertIn("goes direct instead of through GPU/", o["cause"]["effect"])

    def test_every_machine_can_lose_something(self):
        asked = 0
        for f in (tool.machines("synthetic") + self.shared_machines("*"))[::int(os.environ.get("STEP", 3))]:
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
