#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo topo` as its users meet it: every machine we have can be shown, written and read again; errors are one line."""
import os
import sys
import tempfile

import tool

A100 = tool.machine("a100-nvsw-8nic-200g")

# Files that are no machines with GPUs in NCCL's format, and why.
NO_GPU = "placement of PCI devices only, for NCCL to complete on such a machine"
REFUSED = {
    "aws-g5.12xlarge-a10g-user.xml": NO_GPU,
    "aws-g5.48xlarge-a10g.xml": NO_GPU,
    "aws-p4d.24xlarge-a100.xml": NO_GPU,
    "aws-p4de.24xlarge-a100.xml": NO_GPU,
    "azure-ndv2-healthcheck-variant.xml": NO_GPU,
    "azure-ndv2-v100.xml": NO_GPU,
    "azure-ndv4-a100-fairseq-variant.xml": NO_GPU,
    "azure-ndv4-a100.xml": NO_GPU,
    "azure-ndv4-healthcheck-variant.xml": NO_GPU,
    "azure-ndv5-h100.xml": NO_GPU,
    "azure-ndv5-healthcheck-variant.xml": NO_GPU,
    "nccl-history-ndv5-topo-new.xml": NO_GPU,
    "oci-topo-flattened-b4.xml": NO_GPU,
    "oci-topo-flattened.xml": NO_GPU,
    "flagcx-topo-dump.xml": "FlagCX's dialect: <apu> instead of <gpu>",
    "flagcx-topo-demo.xml": "FlagCX's dialect: only <gpu> elements, below the root",
    "bad-mismatch.xml": "malformed: an end tag without its start",
    "bad-truncated.xml": "malformed: ends within a tag",
    "bad-version2.xml": "version 2",
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
        for f in sound(self.machines()):
            self.assertIn("GPU to GPU", self.good("--topo", f))
            shown += 1
        print(f"{shown} machines shown", file=sys.stderr)
        self.assertGreater(shown, 60)

    def test_other_files_are_refused_in_one_line(self):
        for f in self.machines():
            if os.path.basename(f) in REFUSED:
                self.refused(1, f"^{f}:[0-9]+: .*; ", "--topo", f)

    def again(self, text):
        with tool.written(text) as t:
            return self.good("--topo", t.name, "--format", "xml")

    def test_xml_is_read_again_as_it_was_written(self):
        for f in sound(self.machines()):
            once = self.good("--topo", f, "--format", "xml")
            twice = self.again(once)
            if os.path.basename(f) in TWINS:
                once, twice = twice, self.again(twice)
            self.assertEqual(once, twice, f)

    def test_json_has_its_keys(self):
        o = self.json("--topo", A100)
        self.assertEqual(set(o), {"topology", "system", "max_bw", "total_bw", "paths", "queries", "warnings"})
        self.assertEqual(sum(n["type"] == "NET" for n in o["system"]), 8)  # before trimming
        self.assertEqual(o["paths"]["gpu_gpu"][0][7], {"type": "NVL", "bw": 240, "hops": 2})
        self.assertEqual(o["warnings"], [])

    def test_hosts_show_what_rank_0_works_with(self):
        nets = [sum(n["type"] == "NET" for n in self.json("--topo", A100, "--hosts", str(h))["system"]) for h in (1, 2)]
        self.assertEqual(nets, [0, 8])

    def test_part_of_a_machine(self):
        o = self.json("--topo", A100, "--gpus", "5,2")
        self.assertEqual({(n["rank"], n["dev"]) for n in o["system"] if n["type"] == "GPU"}, {(0, 5), (1, 2)})
        self.refused(1, "--gpus 0,8", "--topo", A100, "--gpus", "0,8")

    def test_dot_is_a_graph(self):
        out = self.good("--topo", "tests/data/examples/nvlink-ring.xml", "--format", "dot")
        self.assertRegex(out, r"^graph topology \{\n(.*\n)*\}\n$")
        self.assertEqual(out.count(" -- "), 4 + 4 + 2 + 1 + 1 + 1)  # NVLinks, GPUs, switches, sockets, card, port

    def test_a_path_is_explained(self):
        out = self.good("--topo", "tests/data/examples/nvswitch.xml", "--path", "GPU/0", "NET/3")
        lines = out.splitlines()
        self.assertEqual(lines[0], "GPU/0 to NET/3: PXN, 24 GB/s, 5 links")
        self.assertEqual([l.split()[0] for l in lines[1:6]], ["GPU/0", "NVS/0-0", "GPU/3", "PCI/0-81000", "NIC/0-85000"])
        self.assertEqual([i for i, l in enumerate(lines) if "bottleneck" in l], [3, 4])
        self.assertIn("PXN: yes, sending goes through GPU/3", lines)
        self.assertIn("GPUDirect for sending: yes, GPU/3 to the NIC is PIX and the limit is PXB (the default)", lines)

    def test_reasons_of_refusals(self):
        ring, sockets = "tests/data/examples/nvlink-ring.xml", "tests/data/examples/two-sockets.xml"
        for args, env, want in (
            ((sockets, "GPU/0", "GPU/3"), {}, "P2P: no, the path is SYS and the limit is PXB (the default); NCCL_P2P_LEVEL=SYS would allow it"),
            ((sockets, "GPU/0", "GPU/3"), {"NCCL_P2P_LEVEL": "SYS"}, "P2P: yes, the path is SYS and the limit is SYS (set by NCCL_P2P_LEVEL)"),
            ((sockets, "GPU/0", "GPU/1"), {"NCCL_P2P_DISABLE": "1"}, "P2P: no, NCCL_P2P_DISABLE=1 forbids it"),
            ((ring, "GPU/0", "GPU/2"), {}, "     through the GPU of rank 3"),
            ((ring, "GPU/3", "NET/0"), {"NCCL_PXN_DISABLE": "1"}, "PXN: no, NCCL_PXN_DISABLE=1 forbids it"),
            ((ring, "GPU/2", "NET/0"), {}, "PXN: no, NVLink does not lead to GPU/0 next to it"),
            ((ring, "GPU/0", "NET/0"), {"NCCL_NET_GDR_READ": "0"}, "GPUDirect for sending: no, NCCL_NET_GDR_READ=0 forbids it"),
            ((sockets, "NET/0", "GPU/0"), {}, "GPUDirect for receiving: no, GPU/0 to the NIC is PHB and the limit is PXB (the default); NCCL_NET_GDR_LEVEL=PHB would allow it"),
        ):
            f, a, b = args
            self.assertIn(want, self.good("--topo", f, "--path", a, b, **env).splitlines(), (args, env))

    def test_a_record_shows_the_same_machine(self):
        with tempfile.TemporaryDirectory() as d:
            self.good("--record", d)
            self.assertEqual(self.good("--format", "xml"), self.good("--sysfs", d, "--format", "xml"))

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
        for part in ("without a NUMA node", "0000:01:00.0: link width", "0000:01:00.0: link speed", "GPU/1 has no NVLink while 1 other GPU",
                     "a: speed is not known"):
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
