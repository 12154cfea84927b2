#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo graph` as its users meet it: every machine we have gets consistent rings and trees, a written graph file
is read back, and errors are one line. Whether the graphs are the right ones, golden_test.sh knows."""
import glob
import os
import re

import tool

A100 = tool.machine("a100-nvsw-8nic-200g")
COLLNET = tool.machine("h100-nvsw-8nic-400g-coll")
PCIE = tool.machine("pcie-2cpu-4gpu")
TRUNCATED = tool.machine("bad-truncated")


def machines():
    return [f for f in tool.machines("synthetic", "random") + sorted(glob.glob(f"{tool.EXAMPLES}/*.xml")) if tool.is_sound(f)]


class Graph(tool.Case):
    words = ("graph",)

    def written(self, *args, **env):
        """A graph file made with these arguments; it lives as long as the returned object."""
        return tool.written(self.good(*args, "--format", "xml", **env))

    # ---- consistency of results ----

    def check_tree(self, tree):
        up = {n["rank"]: n["up"] for n in tree}
        self.assertEqual([n["rank"] for n in tree], list(range(len(tree))))
        self.assertEqual(sum(u < 0 for u in up.values()), 1)
        for n in tree:
            for child in n["down"]:
                self.assertTrue(child < 0 or up[child] == n["rank"], n)
            rank, hops = n["rank"], 0
            while up[rank] >= 0:
                rank, hops = up[rank], hops + 1
                self.assertLess(hops, len(tree))

    def test_every_machine_is_planned(self):
        files = machines()
        self.assertGreater(len(files), 60)
        for f in tool.swept(files):
            with self.subTest(f):
                with open(f, encoding="utf-8") as text:  # a file of several hosts counts for as many
                    of_file = len(set(re.findall(r'host_hash="0x([0-9a-f]+)"', text.read()))) or 1
                o = self.json("--topo", f, "--hosts", str(3 * of_file))
                ranks = list(range(o["ranks_total"]))
                self.assertEqual(o["ranks_total"], 3 * o["gpus_per_host"])
                self.assertEqual((len(o["rings"]), len(o["trees"])), (o["nchannels"], o["nchannels"]))
                for ring in o["rings"]:
                    self.assertEqual((ring[0], sorted(ring)), (0, ranks))
                for tree in o["trees"]:
                    self.check_tree(tree)
                for name in ("ring", "tree"):
                    self.assertGreater(min(o["graphs"][name]["bwIntra"], o["graphs"][name]["bwInter"]), 0)
                for choices in o["tuning"]["select"].values():
                    self.assertEqual([c for c in choices if not c["algo"]], [])

    def test_hosts_of_a_file_are_not_divided(self):
        self.refused(1, "describes 2 hosts: --hosts 3 is not a multiple of them", "--topo", f"{tool.EXAMPLES}/two-hosts.xml",
                     "--hosts", "3")
        one, two = (self.json("--topo", f"{tool.EXAMPLES}/two-hosts.xml", "--hosts", n) for n in "12")
        self.assertEqual((one["nnodes"], one["rings"]), (two["nnodes"], two["rings"]))

    # ---- formats ----

    def test_json_has_its_keys(self):
        o = self.json("--topo", COLLNET, "--hosts", "2", NCCL_COLLNET_ENABLE="1")
        self.assertEqual(set(o), {
            "schema", "topology", "nccl", "assumed", "uncertain", "finding", "hosts", "gpus_per_host", "ranks_total", "constants", "nnodes", "rank_to_node", "system", "max_bw", "total_bw",
            "paths", "queries", "graphs", "graphs_aligned", "nchannels", "coll_channels", "nvls_channels", "p2p_channels",
            "p2p_channels_per_peer", "nvls_support", "collnet_support", "is_all_nvlink", "max_local_ranks", "rings",
            "trees", "tree_depth", "nvls_conn", "collnet_conn", "tuning", "search_cpu_ms_by_graph", "search_cpu_ms",
            "explain", "search_ms", "warnings"})
        kinds = {"ring", "tree", "collnet_chain", "collnet_direct", "nvls"}
        for key in ("graphs", "graphs_aligned", "explain"):
            self.assertEqual(set(o[key]), kinds, key)
        self.assertEqual(set(o["graphs"]["ring"]), {
            "pattern", "crossNic", "nChannels", "bwIntra", "bwInter", "latencyInter", "typeIntra", "typeInter",
            "sameChannels", "nHops", "minChannels", "maxChannels", "intra", "inter"})
        self.assertEqual(self.good("--topo", PCIE, "--format", "json").split('"search_cpu_ms')[0],
                         self.good("--topo", PCIE, "--json").split('"search_cpu_ms')[0])

    def test_xml_is_a_graph_file(self):
        out = self.good("--topo", A100, "--hosts", "2", "--format", "xml")
        self.assertRegex(out, r'^<graphs version="1">\n  <graph id="0" pattern="4" (.*\n)*</graphs>\n$')
        self.assertEqual([out.count(f'<graph id="{i}"') for i in range(5)], [1] * 5)
        self.assertEqual(out.count("<channel>"), 8 + 8)

    # ---- options ----

    def test_one_kind_of_graph(self):
        kinds = {"ring": ["ring"], "tree": ["tree"], "collnet": ["collnet_chain", "collnet_direct"], "nvls": ["nvls"]}
        where = ("--topo", COLLNET, "--hosts", "2")
        everything = self.json(*where, NCCL_COLLNET_ENABLE="1")
        for kind, names in kinds.items():
            with self.subTest(kind):
                o = self.json(*where, "--graph", kind, NCCL_COLLNET_ENABLE="1")
                self.assertEqual(o["graphs"], {n: everything["graphs"][n] for n in names})
                self.assertEqual(o["rings"], everything["rings"])
                xml = self.good(*where, "--graph", kind, "--format", "xml", NCCL_COLLNET_ENABLE="1")
                self.assertEqual(xml.count("<channel>"), sum(everything["graphs"][n]["nChannels"] for n in names))

    def test_hosts(self):
        for hosts in (1, 2, 5):
            o = self.json("--topo", A100, "--hosts", str(hosts))
            self.assertEqual((o["hosts"], o["gpus_per_host"], o["nnodes"]), (hosts, 8, hosts))
            self.assertEqual(o["rank_to_node"], [r // 8 for r in range(8 * hosts)])
            self.assertEqual(len(o["graphs"]["ring"]["inter"]), 0 if hosts == 1 else 8)  # alone, no NET is needed
        o = self.json("--topo", tool.machine("gb200-4gpu-4nic"), "--hosts", "3", "--mnnvl")
        self.assertEqual((o["ranks_total"], o["nnodes"]), (12, 1))
        self.assertEqual(sorted(o["graphs"]["ring"]["intra"][0]), list(range(12)))

    def test_part_of_a_machine(self):
        o = self.json("--topo", A100, "--gpus", "5,2,7", "--hosts", "2")
        self.assertEqual({(n["rank"], n["dev"]) for n in o["system"] if n["type"] == "GPU"}, {(0, 5), (1, 2), (2, 7)})
        self.assertEqual(sorted(o["graphs"]["ring"]["intra"][0]), [0, 1, 2])
        xml = self.good("--topo", A100, "--gpus", "5,2,7", "--graph", "ring", "--format", "xml")
        self.assertEqual({part.split('"')[0] for part in xml.split('<gpu dev="')[1:]}, {"0x5", "0x2", "0x7"})

    def test_where_machines_come_from(self):
        want = self.json("--topo", PCIE)
        with open(PCIE, encoding="utf-8") as f:
            piped = self.json("--topo", "-", stdin=f.read())
        for o in (piped, self.json(NCCL_TOPO_FILE=PCIE)):
            self.assertEqual((o["graphs"], o["rings"], o["system"]), (want["graphs"], want["rings"], want["system"]))
        o = self.json("--ranks", "3")
        self.assertEqual((o["topology"], o["ranks_total"], sorted(o["rings"][0])), ("this machine", 3, [0, 1, 2]))

    # ---- graph files ----

    def test_a_written_graph_is_taken_back(self):
        for f in tool.swept(machines()):
            where = ("--topo", f, "--hosts", "1" if "examples" in f else "2")
            with self.subTest(f), self.written(*where) as t:
                before, after = self.json(*where), self.json(*where, NCCL_GRAPH_FILE=t.name)
                for name, g in before["graphs"].items():
                    if not g or not g["nChannels"]:
                        continue
                    self.assertEqual(after["explain"][name]["end_code"], "injected", name)
                    heads = 1 if name == "nvls" else None  # of these only the first of a channel counts
                    for key in set(g) - {"nHops", "minChannels", "maxChannels", "intra"}:
                        self.assertEqual(after["graphs"][name][key], g[key], (name, key))
                    self.assertEqual([c[:heads] for c in after["graphs"][name]["intra"]], [c[:heads] for c in g["intra"]])
                self.assertEqual((after["rings"], after["trees"]), (before["rings"], before["trees"]))

    def test_a_graph_of_another_machine_is_not_taken(self):
        with self.written("--topo", A100) as t:
            o = self.json("--topo", PCIE, NCCL_GRAPH_FILE=t.name)
        self.assertEqual(o["graphs"], self.json("--topo", PCIE)["graphs"])
        self.assertRegex(o["explain"]["ring"]["refused"], f"^{t.name}:[0-9]+: .*more gpu elements than the 4 GPUs")
        self.assertNotEqual(o["explain"]["ring"]["end_code"], "injected")

    # ---- errors ----

    def test_bad_files(self):
        self.refused(1, "/nonexistent: No such file", "--topo", "/nonexistent")
        self.refused(1, f"^{TRUNCATED}:3: .*; ", "--topo", TRUNCATED)
        self.refused(1, f"^{tool.machine('bad-nogpu')}:1: .*; ", "--topo", tool.machine("bad-nogpu"))
        self.refused(1, f"^{tool.machine('bad-version2')}:1: .*; ", "--topo", tool.machine("bad-version2"))
        self.refused(1, ":1: .*; ", "--topo", "-", stdin="<system>")
        self.refused(1, f"^{TRUNCATED}:3: .*; ", NCCL_TOPO_FILE=TRUNCATED)
        self.refused(1, "/nonexistent: No such file", "--topo", PCIE, NCCL_GRAPH_FILE="/nonexistent")
        with tool.written('<graphs version="1">\n<graph id="0">\n</graphs>\n') as t:
            self.refused(1, f"^{t.name}:3: .*; ", "--topo", PCIE, NCCL_GRAPH_FILE=t.name)

    def test_bad_values(self):
        for gpus in ("0,4", "0,", "x", "0,0,1,2,3"):
            self.refused(1, f"--gpus {gpus}: expected ordinals", "--topo", PCIE, "--gpus", gpus)
        self.refused(1, "NCCL_ALGO", "--topo", PCIE, NCCL_ALGO="rings")
        for release in ("2.99", "3.1", "2.25", "x"):
            known = f"{release}: expected a known release of NCCL: 2.26.3, .* or 2"
            self.refused(2, f"--nccl {known}", "--topo", PCIE, "--nccl", release)
            self.refused(2, f"KOLO_NCCL_VERSION {known}", "--topo", PCIE, KOLO_NCCL_VERSION=release)

    def test_usage(self):
        for args, want in (
            (["--nonsense"], "unknown option --nonsense"),
            (["word"], 'unexpected operand "word"'),
            (["--graph", "star"], 'no graph "star": ring, tree, collnet or nvls'),
            (["--graph", ""], "--graph needs a value, and was given an empty one"),
            (["--topo", ""], "--topo needs a value, and was given an empty one"),
            (["--machine="], "--machine needs a value, and was given an empty one"),
            (["--format", "dot"], 'no format "dot": text, json, xml, svg or html'),
            (["--hosts", "0"], '--hosts: "0" is not'),
            (["--hosts", "many"], '--hosts: "many" is not'),
            (["--ranks", "0"], '--ranks: "0" is not'),
            (["--topo"], "--topo needs a value"),
        ):
            self.refused(2, f"^kolo graph: {want}.*; see kolo graph --help", *args)
        self.refused(2, "^--constants gpu: expected reference or host", "--constants", "gpu")
        self.assertIn("--graph ring|tree|collnet|nvls", self.good("--help"))


if __name__ == "__main__":
    tool.main()
