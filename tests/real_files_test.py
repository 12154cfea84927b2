#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Topology files as people have them: each real one gets an answer, the assumptions about it are listed, and processes that are started
on one see the machine that is planned for. docs/validation-files.md has the answers; KOLO_RENEW=1 writes it anew, to be read before
it is kept."""
import os
import tempfile

import tool

PAGE = "docs/validation-files.md"
RELEASE = "2.29.7"  # the page is about its rules

# Files without <gpu> elements: the machine they are taken for, and the machine after completion by hand. None: these differ on purpose.
PLACED = {
    "aws-g5.12xlarge-a10g-user": ("aws-g5.12xlarge", None),
    "aws-g5.48xlarge-a10g": ("aws-g5.48xlarge", None),  # by hand: Intel CPUs
    "aws-p4d.24xlarge-a100": ("aws-p4d.24xlarge", "aws-p4d-filled"),
    "aws-p4de.24xlarge-a100": ("aws-p4de.24xlarge", "aws-p4de-filled"),
    "azure-ndv2-healthcheck-variant": ("azure-nd40rs-v2", "azure-ndv2-filled"),
    "azure-ndv2-v100": ("azure-nd40rs-v2", "azure-ndv2-filled"),
    "azure-ndv4-a100": ("azure-nd96asr-v4", "azure-ndv4-a100-filled"),
    "azure-ndv4-a100-fairseq-variant": ("azure-nd96asr-v4", "azure-ndv4-a100-fairseq-variant-filled"),
    "azure-ndv4-healthcheck-variant": ("azure-nd96asr-v4", "azure-ndv4-healthcheck-variant-filled"),
    "azure-ndv5-h100": ("azure-nd96isr-h100-v5", "azure-ndv5-h100-filled"),
    "azure-ndv5-healthcheck-variant": ("azure-nd96isr-h100-v5", "azure-ndv5-healthcheck-variant-filled"),
    "flagcx-topo-dump": (None, None),  # by hand: without NVLinks
    "nccl-history-ndv5-topo-new": ("azure-nd96isr-h100-v5", "nccl-history-ndv5-topo-new-filled"),
    "oci-topo-flattened": ("oci-bm.gpu4.8", None),  # by hand: cards of one port
    "oci-topo-flattened-b4": ("oci-bm.gpu.b4.8", None),
}


def base(file):
    return os.path.basename(file).removesuffix(".xml")


def taken_for(answer):
    """The machine, or the kind of its GPUs, in a cell of the page."""
    assumed = {a["code"]: a for a in answer["assumed"]}
    if not assumed:
        return "as the file says"
    machine = assumed.get("machine")
    if not machine:
        return assumed["gpus"]["product"]
    return machine["machine"] + (f" (or {machine['or']})" if "or" in machine else "")


class Files(tool.Case):
    words = ("graph",)

    def files(self):
        return self.shared_machines("real")

    def plan(self, file, hosts=1):
        o = self.json("--topo", file, "--hosts", str(hosts), "--nccl", "2.26.3")
        keys = ("nChannels", "bwIntra", "bwInter", "typeIntra", "typeInter")
        return [g and [g[k] for k in keys] for g in (o["graphs"][kind] for kind in ("ring", "tree", "nvls"))]

    def test_files_without_gpus_are_completed(self):
        self.need_shared()
        for name, (machine, _) in PLACED.items():
            o = self.json("--topo", f"{tool.SHARED}/real/{name}.xml")
            got = {a["code"]: a for a in o["assumed"]}
            self.assertEqual(got.get("machine", {}).get("machine"), machine, name)
            self.assertIn("gpus", got, name)
            self.assertEqual(got["gpus"]["count"], o["gpus_per_host"], name)

    def test_they_are_planned_as_if_completed_by_hand(self):
        self.need_shared()
        for name, (_, by_hand) in PLACED.items():
            for hosts in (1, 2) if by_hand else ():
                self.assertEqual(self.plan(f"{tool.SHARED}/real/{name}.xml", hosts),
                                 self.plan(f"{tool.SHARED}/derived/{by_hand}.xml", hosts), (name, hosts))

    def test_files_with_gpus_are_taken_as_they_are(self):
        for f in self.files():
            if base(f) in PLACED or base(f) == "aws-p5.48xlarge-h100":
                continue
            self.assertEqual(self.json("--topo", f)["assumed"], [], f)

    def test_boards_without_nvlink_are_found_first(self):
        o = self.json("--topo", self.shared("real/aws-p5.48xlarge-h100"))
        f = o["finding"]
        self.assertEqual((f["code"], f["gpus"], f["links"], f["product"]), ("no_nvlinks", 8, 18, "H100 SXM5"))
        self.assertGreater(f["busbw_mended"], 5 * f["busbw"])
        mended = tool.good("explain", "all_reduce", "1G", "--topo", self.shared("derived/aws-p5-nvs18"), "--json")
        self.assertIn('"NVLS"', mended)  # the mended machine is the one that was completed by hand
        for words in (("graph",), ("topo",), ("explain", "search"), ("explain", "all_reduce"), ("explain", "nics"),
                      ("explain", "pair", "GPU/0", "GPU/1"), ("explain", "diff", "--with", "NCCL_PXN_DISABLE=1")):
            out = tool.good(*words, "--topo", self.shared("real/aws-p5.48xlarge-h100"))
            self.assertEqual(out.splitlines()[0], f"NCCL {tool.NCCL}: {f['text']}.", words)

    def test_formats_without_room_for_it_warn(self):
        for words in (("graph", "--format", "svg"), ("graph", "--format", "xml"), ("topo", "--format", "xml")):
            p = tool.run(*words, "--topo", self.shared("real/aws-p5.48xlarge-h100"))
            self.assertIn("warning: 8 SXM GPUs without NVLink in the file", p.stderr, words)
            self.assertIn("2 things are assumed", p.stderr, words)

    def test_links_that_no_product_has_are_found(self):
        f = self.json("--topo", self.shared("real/b200-8gpu-vm-13net"))["finding"]
        self.assertEqual((f["code"], f["gpus"], f["links"]), ("many_nvlinks", 8, 18))
        self.assertLess(f["busbw_mended"], f["busbw"])

    def test_amd_s_machines_are_read(self):
        for f in self.shared_machines("rccl-models"):
            o = self.json("--topo", f)
            self.assertEqual(o["finding"]["code"], "amd_gpus", f)
            self.assertEqual(o["finding"]["gpus"], o["gpus_per_host"], f)

    def test_a_name_says_what_a_file_is_of(self):
        f = self.shared("real/azure-ndv5-h100")
        o = self.json("--topo", f, "--machine", "azure-nd96isr-h200-v5")
        self.assertEqual((o["assumed"][0]["machine"], o["assumed"][0]["from"]), ("azure-nd96isr-h200-v5", "option"))
        self.refused(1, "machine nonsense: there is none", "--topo", f, "--machine", "nonsense")

    def test_known_machines_are_planned_for(self):
        for m in tool.json.loads(tool.good("topo", "--machines", "--json"))["machines"]:
            o = self.json("--machine", m["name"] + (":2" if m["trays"] > 1 else ""))
            self.assertEqual(o["gpus_per_host"], m["gpus"] * (2 if m["trays"] > 1 else 1), m)
            self.assertEqual((o["assumed"], o["finding"]), ([], None), m)

    def test_two_machines_are_compared(self):
        o = tool.json.loads(tool.good("explain", "diff", "--machine", "dgx-a100", "--machine", "dgx-h100", "--json"))
        self.assertEqual((o["a"]["topology"], o["b"]["topology"]), ("dgx-a100", "dgx-h100"))

    def test_known_machines_are_written(self):
        with tempfile.TemporaryDirectory() as d:
            tool.good("topo", "--machines", "--record", d)
            names = [m["name"] for m in tool.json.loads(tool.good("topo", "--machines", "--json"))["machines"]]
            self.assertEqual(sorted(os.listdir(d)), sorted(f"{n}.xml" for n in names))
            for name in ("dgx-h100", "gb200-nvl72", "aws-p5.48xlarge"):
                a, b = self.json("--machine", name), self.json("--topo", f"{d}/{name}.xml")
                self.assertEqual((a["graphs"], a["rings"]), (b["graphs"], b["rings"]), name)

    def processes_of(self, *machine, **env):
        """The topology that processes work with."""
        with tempfile.TemporaryDirectory() as d:
            p = tool.run("perf", "all_reduce", "--np", "8", "-b", "8", "-e", "8", "-n", "1", "-w", "0", *machine,
                         NCCL_TOPO_DUMP_FILE=f"{d}/dump.xml", **env)
            self.assertEqual(p.returncode, 0, p.stderr)
            with open(f"{d}/dump.xml", encoding="utf-8") as f:
                return f.read()

    def test_processes_see_the_machine_that_is_planned_for(self):
        planned = tool.good("topo", "--machine", "dgx-1v", "--format", "xml")
        self.assertEqual(self.processes_of("--machine", "dgx-1v"), planned)
        self.assertEqual(self.processes_of(KOLO_MACHINE="dgx-1v", KOLO_HOST_DEVICES="8"), planned)
        file = self.shared("real/azure-ndv2-v100")
        self.assertEqual(self.processes_of("--topo", file), tool.good("topo", "--topo", file, "--format", "xml"))

    def test_processes_are_refused_what_plans_are(self):
        for words in (("--machine", "nonsense"), ("--topo", tool.machine("bad-nogpu"))):
            p = tool.run("run", *words, "-n", "2", "true")
            self.assertEqual((p.returncode, p.stderr.count("\n")), (1, 1), p.stderr)

    def test_the_page_has_each_file(self):
        rows = []
        for f in self.files():
            answer = self.json("--topo", f, "--nccl", RELEASE)
            first = tool.good("explain", "search", "--topo", f, "--nccl", RELEASE).splitlines()[0].removeprefix(f"NCCL {RELEASE}: ")
            rows.append(f"| {base(f)} | {taken_for(answer)} | {answer['gpus_per_host']} | {first} |\n")
        if not rows:
            self.skipTest(tool.NO_SHARED)
        with open(PAGE, encoding="utf-8") as page:
            text = page.read()
        head, mark, old = text.partition("|---|---|---|---|\n")
        if os.environ.get("KOLO_RENEW"):
            with open(PAGE, "w", encoding="utf-8") as page:
                page.write(head + mark + "".join(rows))
        else:
            self.assertEqual(old, "".join(rows), "KOLO_RENEW=1 writes the page anew")


if __name__ == "__main__":
    tool.main()
