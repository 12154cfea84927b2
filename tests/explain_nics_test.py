#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain nics`: which NIC serves which GPU, and why some serve none.

Whole answers are in tests/data/explain/nics-*.txt; KOLO_RENEW=1 writes them anew, to be read before they are kept. With
KOLO_SHARED (else ../shared, where that exists) every machine of topologies/ is asked as well.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

KOLO = os.path.join(os.environ["KOLO_BUILD"], "kolo")
DATA = "tests/data/topologies/synthetic"
GOLDEN = "tests/data/explain"
SHARED = os.path.join(os.environ.get("KOLO_SHARED") or "../shared", "topologies")


def kolo(*args, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
    return subprocess.run([KOLO, *args], capture_output=True, text=True, timeout=60, env={**clean, **env}, check=False)


def machine(name):
    return f"{DATA}/{name}.xml"


class Nics(unittest.TestCase):
    maxDiff = None

    def good(self, *args, **env):
        p = kolo("explain", "nics", *args, **env)
        self.assertEqual(p.returncode, 0, f"{args}: {p.stderr}")
        return p.stdout

    def answer(self, file, *args, **env):
        return json.loads(self.good("--topo", file, "--json", *args, **env))

    def test_whole_answers(self):
        for name, file in (
            ("nics-a100", "a100-nvsw-8nic-200g"),
            ("nics-a100-rail", "a100-rail-8nic-200g"),
            ("nics-h100-rail", "h100-rail-8nic-400g"),
            ("nics-workstation", "pcie-1cpu-2sw-2gpu-2nic"),
            ("nics-workstation-without", "pcie-2cpu-4gpu"),
            ("nics-gb200", "gb200-4gpu-4nic"),
            ("nics-dualport", "dualport-2gpu"),
        ):
            file, text = machine(file), None
            text = self.good("--topo", file)
            golden = f"{GOLDEN}/{name}.txt"
            if os.environ.get("KOLO_RENEW"):
                with open(golden, "w", encoding="utf-8") as f:
                    f.write(text)
            with open(golden, encoding="utf-8") as f:
                self.assertEqual(text, f.read(), name)

    def test_the_first_line_answers(self):
        for file, args, env, want in (
            ("h100-rail-8nic-400g", (), {}, "8 of 8 NICs are used, each by its own GPU (rail-optimised), GDR everywhere."),
            ("h100-rail-8nic-400g", ("--hosts", "1"), {}, "None of 8 NICs is used: all ranks reach each other without the network."),
            ("gb200-4gpu-4nic", (), {"NCCL_NET_GDR_LEVEL": "PHB"}, "4 of 4 NICs are used, each by its own GPU (rail-optimised), GDR everywhere."),
            ("gb200-4gpu-4nic", ("--hosts", "2", "--mnnvl"), {}, "None of 4 NICs is used: all ranks reach each other without the network."),
            ("dgx1v-hcm-4nic", (), {}, "4 of 4 NICs are used, each by 2 GPUs, GDR everywhere."),
            ("single-gpu-1nic", (), {}, "1 of 1 NIC is used, by its own GPU (rail-optimised), GDR everywhere."),
            ("pcie-2cpu-4gpu", (), {}, "There is no NIC, and so nothing joins the hosts."),
        ):
            out = self.good("--topo", machine(file), *args, **env)
            self.assertEqual(out.splitlines()[0], want, (file, args, env))
            self.assertEqual(self.answer(machine(file), *args, **env)["summary"] + ".", want)

    def test_channels_are_those_of_the_graph(self):
        for name in ("a100-nvsw-8nic-200g", "a100-nvsw-4nic-200g", "dgx1v-hcm-4nic", "b200-nvsw-8nic-800g"):
            f = machine(name)
            plan = json.loads(kolo("graph", "--topo", f, "--hosts", "2", "--json").stdout)
            want = {}
            for ends in plan["queries"]["ring_net"]:
                for end in ("recv", "send"):
                    want.setdefault(ends[end][1], set()).add(ends["ch"])
            got = {n["net"]: set(n["ring_channels"]) for n in self.answer(f)["nics"] if n["ring_channels"]}
            self.assertEqual(got, want, name)

    def test_connections_that_change_rails_are_flagged(self):
        f = machine("dgx1v-hcm-4nic-missing-0-4")
        plan = json.loads(kolo("graph", "--topo", f, "--hosts", "2", "--json").stdout)
        o, text = self.answer(f), self.good("--topo", f)
        rings = [r for r in o["rails"] if r["for"] == "ring"]
        for e in plan["queries"]["ring_net"]:  # of host 0; on odd hosts pairs of channels are swapped
            here = [r for r in rings if e["ch"] in r["channels"]]
            self.assertIn(e["send"][1], [r["from"] for r in here])
            self.assertIn(e["recv"][1], [r["to"] for r in here])
        self.assertTrue(all(r["crosses"] == (r["from"] != r["to"]) for r in o["rails"]))
        self.assertIn("8 of 8 channels change rails", o["summary"])
        self.assertEqual(text.count("<- changes rails"), o["crossing"])
        self.assertIn("  ring NET/2 -> NET/0  channels 0, 4   <- changes rails\n", text)

    def test_own_nics_are_those_of_the_graph(self):
        f = machine("pcie-8gpu-4nic-100g")
        plan = json.loads(kolo("graph", "--topo", f, "--hosts", "2", "--json").stdout)
        want = [sorted(set(nets)) for nets in plan["queries"]["local_net"]]
        rows = self.answer(f)["gpus"]
        got = [sorted(r["net"] for r in rows if r["rank"] == g) for g in plan["queries"]["gpu_ranks"]]
        self.assertEqual(got, want)
        self.assertEqual({r["rank"] for r in rows}, set(range(8)))

    def fabric(self, nets):
        """Two GPUs below a switch each, with the given (bus id, attributes, link width) below the first."""
        gpu = ('<pci busid="0000:{0}0:00.0" class="0x0604" link_speed="16 GT/s" link_width="16">'
               '<pci busid="0000:{0}1:00.0" class="0x0302" link_speed="16 GT/s" link_width="16">'
               '<gpu dev="{1}" sm="80" rank="{1}" gdr="1"/></pci>{2}</pci>')
        nics = "".join(f'<pci busid="{bus}" class="0x0200" link_speed="16 GT/s" link_width="{width}"><nic><net {net} '
                       'gdr="1"/></nic></pci>' for bus, net, width in nets)
        t = tempfile.NamedTemporaryFile("w", suffix=".xml")
        t.write('<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">'
                + gpu.format(1, 0, nics) + gpu.format(2, 1, "") + "</cpu></system>")
        t.flush()
        return t

    def test_why_a_nic_is_left_out(self):
        with self.fabric([("0000:12:00.0", 'dev="0" name="good" speed="200000"', 16),
                          ("0000:13:00.0", 'dev="1" name="slow" speed="10000"', 16)]) as t:
            o = self.answer(t.name)
        self.assertEqual([(n["state"], n["reason"] and n["reason"]["code"]) for n in o["nics"]],
                         [("used", None), ("unused", "slower")])
        self.assertIn("NET/1 is left out: slower than others", o["summary"])

    def test_nics_that_look_like_one(self):
        """As in AWS' file of the p5: guids in decimal count as 0, and all NICs as one port."""
        nets = [(f"0000:1{i}:00.0", f'dev="{i - 2}" name="n{i}" speed="100000" port="1" guid="{i}"', 16) for i in range(2, 6)]
        with self.fabric(nets) as t:
            o, text = self.answer(t.name), self.good("--topo", t.name)
        self.assertIn("of 4 NICs are used, because all 4 count as one port", o["summary"].replace("is used", "are used"))
        self.assertIn("a guid counts only when written as 0x...", o["summary"])
        self.assertTrue(o["bad_guids"])
        self.assertEqual({n["same_port_as"] for n in o["nics"]}, {None, 0})
        self.assertIn("  NET/0-3: guid 0, port 1\n", text)
        with self.fabric([(b, n.replace('guid="', 'guid="0x'), w) for b, n, w in nets]) as t:
            o = self.answer(t.name)
        self.assertFalse(o["bad_guids"])
        self.assertNotIn("one port", o["summary"])

    def test_merging(self):
        ports = [("0000:12:00.0", 'dev="0" name="mlx5_0" speed="100000" guid="0x1" port="1"', 16),
                 ("0000:12:00.1", 'dev="1" name="mlx5_1" speed="100000" guid="0x1" port="2"', 16)]
        with self.fabric(ports) as t:
            o, apart = self.answer(t.name), self.answer(t.name, NCCL_NET_MERGE_LEVEL="LOC")
            text = self.good("--topo", t.name)
        self.assertEqual(o["mergeable"]["pairs"], [{"nets": [0, 1], "distance": "PORT"}])
        self.assertEqual(o["mergeable"]["reason"]["code"], "from_file")
        self.assertEqual(apart["mergeable"]["pairs"], [])
        self.assertIn("NET/0+1: ports of one card, near enough to be merged", text)
        with self.fabric([("0000:12:00.0", 'dev="0" name="mlx5_0+mlx5_1" speed="200000"', 16)]) as t:
            self.assertEqual(self.answer(t.name)["nics"][0]["members"], 2)
            self.assertIn("NET/0 is 2 NICs merged into one: mlx5_0+mlx5_1, 25 GB/s", self.good("--topo", t.name))

    def test_a_number_twice_counts_once(self):
        with self.fabric([("0000:12:00.0", 'dev="0" name="a" speed="100000"', 16),
                          ("0000:13:00.0", 'dev="0" name="a" speed="100000"', 16)]) as t:
            o = self.answer(t.name)
        self.assertEqual((o["total"], o["repeated"]), (1, 1))

    @unittest.skipUnless(os.path.isdir(SHARED), "skipped: the machines of KOLO_SHARED")
    def test_the_p5_has_equal_nics(self):
        for file, used in (("real/aws-p5.48xlarge-h100.xml", 2), ("derived/aws-p5-nvs18.xml", 8)):
            first = self.good("--topo", f"{SHARED}/{file}").splitlines()[0]
            self.assertEqual(first, f"{used} of 32 NICs are used, because all 32 count as one port: they have the same port "
                             "number and guid (0, for a guid counts only when written as 0x...).")

    def test_many_hosts(self):
        few, many = (self.answer(machine("h100-rail-8nic-400g"), "--hosts", n) for n in ("2", "512"))
        self.assertEqual(few["gpus"], many["gpus"])
        self.assertEqual((many["hosts"], many["used"], many["crossing"]), (512, 8, 0))

    def test_every_machine_has_an_answer(self):
        files = glob.glob(f"{DATA}/*.xml") + glob.glob("tests/data/topologies/random/*.xml")
        if os.path.isdir(SHARED):
            files += [f for d in ("real", "derived", "from-public") for f in glob.glob(f"{SHARED}/{d}/*.xml")]
        else:
            print("skipped: the machines of KOLO_SHARED", file=sys.stderr)
        answers = 0
        for f in sorted(files):
            p = kolo("explain", "nics", "--topo", f)
            if p.returncode:
                self.assertEqual((p.returncode, p.stdout, p.stderr.count("\n")), (1, "", 1), f"{f}: {p.stderr}")
            else:
                answers += p.stdout.endswith("\n")
        self.assertGreater(answers, 50)


if __name__ == "__main__":
    unittest.main()
