#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain nics`: which NIC serves which GPU, and why some serve none.

Whole answers are in tests/data/explain/nics-*.txt.
"""
import json

import tool
from tool import machine


class Nics(tool.Case):
    words = ("explain", "nics")

    def answer(self, file, *args, **env):
        return self.json("--topo", file, *args, **env)

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
            self.check_page(name, self.good("--topo", machine(file)))

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
            plan = json.loads(tool.good("graph", "--topo", f, "--hosts", "2", "--json"))
            want = {}
            for ends in plan["queries"]["ring_net"]:
                for end in ("recv", "send"):
                    want.setdefault(ends[end][1], set()).add(ends["ch"])
            got = {n["net"]: set(n["ring_channels"]) for n in self.answer(f)["nics"] if n["ring_channels"]}
            self.assertEqual(got, want, name)

    def test_connections_that_change_rails_are_flagged(self):
        f = machine("dgx1v-hcm-4nic-missing-0-4")
        plan = json.loads(tool.good("graph", "--topo", f, "--hosts", "2", "--json"))
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
        plan = json.loads(tool.good("graph", "--topo", f, "--hosts", "2", "--json"))
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
        return tool.written('<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">'
                            + gpu.format(1, 0, nics) + gpu.format(2, 1, "") + "</cpu></system>")

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

    def test_the_p5_has_equal_nics(self):
        for file, used in (("real/aws-p5.48xlarge-h100", 2), ("derived/aws-p5-nvs18", 8)):
            first = self.first("--topo", self.shared(file))
            self.assertEqual(first, f"{used} of 32 NICs are used, because all 32 count as one port: they have the same port "
                             "number and guid (0, for a guid counts only when written as 0x...).")

    def test_many_hosts(self):
        few, many = (self.answer(machine("h100-rail-8nic-400g"), "--hosts", n) for n in ("2", "512"))
        self.assertEqual(few["gpus"], many["gpus"])
        self.assertEqual((many["hosts"], many["used"], many["crossing"]), (512, 8, 0))

    def test_every_machine_has_an_answer(self):
        answers = 0
        for f in tool.machines("synthetic", "random") + self.shared_machines("real", "derived", "from-public"):
            answers += self.good_or_refused("--topo", f) is not None
        self.assertGreater(answers, 50)


if __name__ == "__main__":
    tool.main()
