#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo topo` as its users meet it: every machine we have can be shown, written and read again; errors are one line."""
import json
import os
import sys
import tempfile
import xml.etree.ElementTree as ET

import tool

A100 = tool.machine("a100-nvsw-8nic-200g")

# Files that are no machines with GPUs in NCCL's format, and why.
REFUSED = {
    "flagcx-topo-demo.xml": "FlagCX's dialect: only <gpu> elements, below the root",
    "bad-mismatch.xml": "malformed: an end tag without its start",
    "bad-truncated.xml": "malformed: ends within a tag",
    "bad-version2.xml": "version 2 without AMD's GPUs",
    "bad-nogpu.xml": "no GPU",
}

# Machines with several switches of one bus id side by side: fusing the ranks' views makes one of them, as NCCL does, and
# the order below it is settled only when there is one.
TWINS = {"rccl-nvl-topo_4p4h.xml", "rccl-pci-topo_4p4h.xml"}


def sound(files):
    return [f for f in files if os.path.basename(f) not in REFUSED]


class Topo(tool.Case):
    words = ("topo",)

    def machines(self):
        return (tool.machines("synthetic", "random") +
                self.shared_machines("real", "derived", "synthetic", "random", "from-public"))

    def test_every_machine_is_shown(self):
        shown = 0
        for f in tool.swept(sound(self.machines())):
            o = self.json("--topo", f)
            gpus = sum(n["type"] == "GPU" for n in o["system"])
            self.assertEqual([len(row) for row in o["paths"]["gpu_gpu"]], gpus * [gpus], f)
            self.assertGreater(len(self.good("--topo", f).splitlines()), gpus, f)
            shown += 1
        print(f"{shown} machines shown", file=sys.stderr)
        self.assertGreater(shown, 12 if tool.SANITIZE else 60)

    def test_other_files_are_refused_in_one_line(self):
        for f in self.machines():
            if os.path.basename(f) in REFUSED:
                self.refused(1, f"^{f}:[0-9]+: .*; ", "--topo", f)

    def again(self, text):
        with tool.written(text) as t:
            return self.good("--topo", t.name, "--format", "xml")

    def test_xml_is_read_again_as_it_was_written(self):
        for f in tool.swept(sound(self.machines())):
            once = self.good("--topo", f, "--format", "xml")
            twice = self.again(once)
            if os.path.basename(f) in TWINS:
                once, twice = twice, self.again(twice)
            self.assertEqual(once, twice, f)

    def test_json_has_its_keys(self):
        o = self.json("--topo", A100)
        self.assertEqual(set(o), {"schema", "topology", "nccl", "assumed", "uncertain", "finding", "system", "max_bw", "total_bw", "paths", "queries", "nics_unused", "warnings"})
        self.assertEqual(sum(n["type"] == "NET" for n in o["system"]), 8)  # before trimming
        self.assertEqual(o["paths"]["gpu_gpu"][0][7], {"type": "NVL", "bw": 240, "hops": 4})  # from rank to rank
        self.assertEqual(o["warnings"], [])

    def test_hosts_show_what_rank_0_works_with(self):
        for nccl, want in (("2.26.3", [0, 8]), ("2.30.7", [8, 8])):
            systems = [self.json("--topo", A100, "--hosts", h, "--nccl", nccl)["system"] for h in ("1", "2")]
            self.assertEqual([sum(n["type"] == "NET" for n in s) for s in systems], want, nccl)

    def test_part_of_a_machine(self):
        o = self.json("--topo", A100, "--gpus", "5,2")
        self.assertEqual({(n["rank"], n["dev"]) for n in o["system"] if n["type"] == "GPU"}, {(0, 5), (1, 2)})
        self.refused(1, "--gpus 0,8", "--topo", A100, "--gpus", "0,8")

    def test_dot_is_a_graph(self):
        out = self.good("--topo", "tests/data/examples/nvlink-ring.xml", "--format", "dot")
        self.assertRegex(out, r"^graph topology \{\n(.*\n)*\}\n$")
        self.assertEqual(out.count(" -- "), 4 + 4 + 2 + 1 + 1 + 1)  # NVLinks, GPUs, switches, sockets, card, port

    def path(self, file, a, b, **env):
        return self.json("--topo", f"tests/data/examples/{file}.xml", "--path", a, b, **env)

    def test_a_path_is_explained(self):
        o = self.path("nvswitch", "GPU/0", "NET/3")
        self.assertEqual((o["from"], o["to"], o["type"], o["bw"], o["rule"]["code"]), ("GPU/0", "NET/3", "PXN", 24, "pxn"))
        self.assertEqual([l["from"] for l in o["links"]], ["GPU/0", "NVS/0-0", "GPU/3", "PCI/0-81000", "NIC/0-85000"])
        self.assertEqual([l["bottleneck"] for l in o["links"]], [False, False, True, True, False])
        self.assertEqual((o["pxn"]["relay"], o["pxn"]["reason"]["code"]), (3, "used"))
        self.assertEqual((o["gdr_send"]["used"], o["gdr_send"]["reason"]["code"]), (True, "allowed"))
        out = self.good("--topo", "tests/data/examples/nvswitch.xml", "--path", "GPU/0", "NET/3")
        self.assertEqual(sum("bottleneck" in line for line in out.splitlines()), 2)

    def test_reasons_of_refusals(self):
        for args, env, rule, want in (
            (("two-sockets", "GPU/0", "GPU/3"), {}, "p2p", (False, "too_far")),
            (("two-sockets", "GPU/0", "GPU/3"), {"NCCL_P2P_LEVEL": "SYS"}, "p2p", (True, "allowed")),
            (("two-sockets", "GPU/0", "GPU/1"), {"NCCL_P2P_DISABLE": "1"}, "p2p", (False, "disabled")),
            (("two-sockets", "GPU/0", "GPU/1"), {"NCCL_SHM_DISABLE": "1"}, "shm", (False, "disabled")),
            (("nvlink-ring", "GPU/0", "GPU/2"), {}, "p2p", (True, "allowed")),
            (("nvlink-ring", "GPU/3", "NET/0"), {"NCCL_PXN_DISABLE": "1"}, "pxn", (3, "disabled")),
            (("nvlink-ring", "GPU/2", "NET/0"), {}, "pxn", (2, "no_nvlink")),
            (("nvlink-ring", "GPU/0", "NET/0"), {"NCCL_NET_GDR_READ": "0"}, "gdr_send", (False, "read_disabled")),
            (("two-sockets", "NET/0", "GPU/0"), {}, "gdr_recv", (False, "too_far")),
        ):
            answer = self.path(*args, **env)[rule]
            got = next(answer[k] for k in ("allowed", "used", "relay") if k in answer)
            self.assertEqual((got, answer["reason"]["code"]), want, (args, env))
        self.assertEqual(self.path("nvlink-ring", "GPU/0", "GPU/2")["p2p"]["via"], 3)

    def test_a_record_shows_the_same_machine(self):
        with tempfile.TemporaryDirectory() as d:
            self.good("--record", d)
            self.assertEqual(self.good("--format", "xml"), self.good("--sysfs", d, "--format", "xml"))

    def test_rdma_ports_have_their_facts(self):
        with tool.recorded("two-sockets") as d:
            port = os.path.join(d, "class/infiniband/mlx5_0/ports/1")
            for name, text in (("gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001"), ("gids/1", "0000:" * 7 + "0000"),
                               ("gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001"), ("gid_attrs/types/3", "RoCE v2"),
                               ("gid_attrs/ndevs/0", "eth9"), (os.path.join(d, "class/net/eth9/mtu"), "9000")):
                path = os.path.join(port, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text + "\n")
            text = self.good("--sysfs", d)
        self.assertRegex(text, r"RDMA ports\n  mlx5_0:1  active, .*, 200 Gb/sec.*, MTU 4096 \(eth9: 9000\)")
        self.assertIn("    GID [0] fe80::1\n    GID [3] ::ffff:10.0.0.1  RoCE v2\n", text)
        self.assertNotIn("GID [1]", text)

    def test_ports_of_a_card_are_one_nic(self):
        with tool.recorded("two-sockets") as d:
            tool.second_port(d, "mlx5_0")
            for expected, *args in (
                ({"mlx5_0+mlx5_0:2": (3, 400000), "mlx5_1": (2, 200000)},),
                ({"mlx5_0+mlx5_0:2": (3, 400000), "mlx5_1": (4, 200000)}, "--with", "KOLO_NCCL_VERSION=2.26.3"),
                ({"mlx5_0": (0, 200000), "mlx5_0:2": (1, 200000), "mlx5_1": (2, 200000)}, "--with", "NCCL_IB_MERGE_NICS=0"),
                ({"mlx5_0": (0, 200000), "mlx5_0:2": (1, 200000), "mlx5_1": (2, 200000)}, "--with", "NCCL_NET_MERGE_LEVEL=LOC"),
            ):
                nets = ET.fromstring(self.good("--sysfs", d, "--format", "xml", *args)).iter("net")
                self.assertEqual({n.get("name"): (int(n.get("dev")), int(n.get("speed"))) for n in nets}, expected, args)
            self.refused(1, "NCCL_NET_FORCE_MERGE.*mlx5_0,mlx5_1", "--sysfs", d, "--format", "xml",
                         "--with", "NCCL_IB_MERGE_NICS=0", "--with", "NCCL_NET_FORCE_MERGE=mlx5_0,mlx5_1")
            self.refused(2, "mlx5_0.mlx5_1.*different NUMA domains", "--sysfs", d, "--format", "xml",
                         "--with", "NCCL_NET_FORCE_MERGE=mlx5_0,mlx5_1")

    def test_network_devices_that_are_not_used_have_reasons(self):
        with tool.recorded("cluster-node") as d:
            self.assertEqual(sum(n["type"] == "NET" for n in self.json("--sysfs", d)["system"]), 2)  # mlx5_2 has two ports
            o = self.json("--sysfs", d, "--with", "NCCL_NET_MERGE_LEVEL=LOC")
            self.assertEqual(sum(n["type"] == "NET" for n in o["system"]), 3)
            self.assertEqual({x["name"]: (x["kind"], x["reason"]["code"], x["operand"]) for x in o["nics_unused"]}, {
                "mlx5_1": ("rdma", "down", "DOWN"), "mlx5_3": ("rdma", "no_speed", None),
                "docker0": ("interface", "container", None), "eno1": ("interface", "rdma", "mlx5_0"),
                "ib0": ("interface", "rdma", "mlx5_0"), "lo": ("interface", "loopback", None),
                "virbr0": ("interface", "bridge", None), "wg0": ("interface", "tunnel", None)})
            self.assertIn("virbr0: ", self.good("--sysfs", d))
            filtered = self.json("--sysfs", d, "--with", "NCCL_IB_HCA=^mlx5_0,mlx5_2", NCCL_SOCKET_IFNAME="wg,virbr")
            self.assertEqual([n["id"] for n in filtered["system"] if n["type"] == "NET"], ["0-0"])
            why = {x["name"]: (x["reason"]["code"], x["operand"]) for x in filtered["nics_unused"]}
            self.assertEqual(why["mlx5_2:2"], ("ib_hca", "^mlx5_0,mlx5_2"))
            self.assertEqual(why["eno1"], ("socket_ifname", "wg,virbr"))
            self.assertNotIn("wg0", why)

    def with_gpus(self, machine, kind="lib"):
        return {"KOLO_NVML": "1", "FAKE_NVML": machine,
                "LD_LIBRARY_PATH": os.path.join(os.environ["KOLO_BUILD"], "fake_nvml", kind)}

    def test_gpus_of_this_machine_are_those_of_nvml(self):
        env = self.with_gpus("hopper")
        gpus = [n for n in self.json(**env)["system"] if n["type"] == "GPU"]
        self.assertEqual([(n["id"], n["sm"]) for n in gpus], [("0-1b000", 90), ("0-ab000", 90)])
        here = self.gpus()
        self.assertEqual(self.gpus("--ranks", "3", **env), 3)
        self.assertEqual(self.gpus(KOLO_HOST_DEVICES="4", **env), 4)
        self.assertEqual(self.gpus(**dict(env, KOLO_NVML="0")), here)
        self.assertEqual(self.gpus(**self.with_gpus("empty")), here)
        self.assertEqual(self.gpus(**self.with_gpus("hopper", "standin")), here)
        p = self.run_tool(**self.with_gpus("mismatch"))
        self.assertIn("warning: NVML does not start", p.stderr)
        p = self.run_tool("--nccl", "2.30.7", **env)
        self.assertRegex(p.stderr, "warning: 0000:1b:00.0 and others: PCIe generation 1 x16 at the moment, 5 x16 at best")

    def test_fabric_peers_and_gpudirect_are_shown(self):
        env = dict(self.with_gpus("fabric"), NCCL_IGNORE_DISABLED_P2P="1")
        gpus = [n for n in self.json(**env)["system"] if n["type"] == "GPU"]
        self.assertEqual([(n["no_p2p"], n["fabric"], n["clique"], n["gdr"]) for n in gpus], [("0x2", "ready", 7, 1), ("0x1", "ready", 7, 0)])
        self.assertIn("no GPUDirect, no peer access to devices of mask 0x1, fabric ready, clique 7", self.good(**env))
        plan = json.loads(tool.good("graph", "--json", **env))
        self.assertEqual(plan["queries"]["p2p"][0][1][0], 0)
        p = tool.run("graph", "--json", **dict(env, NCCL_IGNORE_DISABLED_P2P="0"))
        self.assertIn("P2P is disabled between the NVLink GPUs of ranks 1 and 0", p.stderr)

    def test_records_keep_gpus(self):
        env = dict(self.with_gpus("fabric"), NCCL_IGNORE_DISABLED_P2P="1")  # NCCL stops at such a pair
        ignore = {"NCCL_IGNORE_DISABLED_P2P": "1"}
        with tempfile.TemporaryDirectory() as d:
            self.good("--record", d, **env)
            self.assertEqual(self.good("--format", "xml", **env), self.good("--sysfs", d, "--format", "xml", **ignore))
            with tempfile.TemporaryDirectory() as e:
                self.good("--sysfs", d, "--record", e, **ignore)
                self.assertEqual(self.good("--sysfs", d, "--format", "xml", **ignore), self.good("--sysfs", e, "--format", "xml", **ignore))

    def test_a_folder_that_is_no_record_is_refused(self):
        with tempfile.TemporaryDirectory() as d:
            self.refused(1, f"^{d} is no recorded machine: ", "--sysfs", d)
            self.refused(1, f"^{d}/none: No such file", "--sysfs", f"{d}/none")
            self.refused(1, f"^{d}/none: No such file", "--sysfs", f"{d}/none", "--record", f"{d}/new")
            self.assertFalse(os.path.exists(f"{d}/new"))
        self.refused(1, "^/dev/null is a file", "--sysfs", "/dev/null")

    def test_this_machine_has_the_devices_of_a_process(self):
        job = ("KOLO_LOCAL_SIZE", "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
        if not any(name in os.environ for name in job):
            self.assertEqual(self.gpus(), max(8, len(os.sched_getaffinity(0))))
        self.assertEqual(self.gpus(LOCAL_WORLD_SIZE="3"), 3)
        self.assertEqual(self.gpus(KOLO_HOST_DEVICES="5"), 5)
        self.assertEqual(self.gpus("--ranks", "2", KOLO_HOST_DEVICES="5"), 2)

    def gpus(self, *args, **env):
        return sum(n["type"] == "GPU" for n in self.json(*args, **env)["system"])

    def test_the_library_s_file_is_used(self):
        f = tool.machine("pcie-2cpu-4gpu")
        self.assertEqual(self.good("--format", "xml", NCCL_TOPO_FILE=f), self.good("--topo", f, "--format", "xml"))
        here = self.good("--format", "xml")
        self.assertEqual(self.good("--format", "xml", NCCL_TOPO_FILE="/nonexistent"), here)
        self.assertEqual(self.good("--format", "xml", NCCL_TOPO_FILE=tool.machine("bad-nogpu")), here)
        bad = tool.machine("bad-truncated")
        self.refused(1, f"^{bad}:3: .*; ", NCCL_TOPO_FILE=bad)

    def test_facts_that_look_wrong_are_named(self):
        text = ('<system version="1"><cpu numaid="-1"><pci busid="0000:01:00.0" class="0x0302" link_speed="" link_width="0">'
                '<gpu sm="80"><nvlink target="f" count="4" tclass="0x0680"/></gpu></pci>'
                '<pci busid="0000:02:00.0" class="0x0302" link_speed="8 GT/s" link_width="16"><gpu sm="80"/></pci>'
                '<nic><net name="a" dev="0"/></nic></cpu></system>')
        with tool.written(text) as t:
            warnings = self.json("--topo", t.name)["warnings"]
        for part in ("0000:01:00.0", "GPU/1", "NUMA"):
            self.assertTrue(any(part in w for w in warnings), (part, warnings))
        self.assertEqual(len(warnings), 5, warnings)

    def test_usage(self):
        for args in (["--format", "png"], ["--path", "GPU/0"], ["--hosts", "0"], ["--nonsense"], ["word"]):
            self.refused(2, "^kolo topo: ", *args)
        self.assertIn("--record DIR", self.good("--help"))
        self.refused(1, "/nonexistent: No such file", "--topo", "/nonexistent")
        self.refused(1, "GPU/99: no such node", "--path", "GPU/0", "GPU/99")


if __name__ == "__main__":
    tool.main()
