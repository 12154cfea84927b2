#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain nics`: which NIC serves which GPU, and why some serve none."""
import json

import tool
from tool import machine


class Nics(tool.Case):
    words = ("explain", "nics")

    def answer(self, file, *args, **env):
        return self.json("--topo", file, *args, **env)

    def test_how_many_serve_how_many(self):
        for file, args, env, used, total, owned_by, gdr in (
            ("h100-rail-8nic-400g", (), {}, 8, 8, {1}, {True}),
            ("h100-rail-8nic-400g", ("--hosts", "1"), {}, 0, 8, {1}, {True}),
            ("gb200-4gpu-4nic", (), {"NCCL_NET_GDR_LEVEL": "PHB"}, 4, 4, {1}, {True}),
            ("gb200-4gpu-4nic", (), {}, 4, 4, {1}, {True}),
            ("gb200-4gpu-4nic", ("--nccl", "2.26.3"), {}, 4, 4, {1}, {False}),
            ("gb200-4gpu-4nic", ("--hosts", "2", "--mnnvl"), {}, 0, 4, {1}, {True}),
            ("dgx1v-hcm-4nic", (), {}, 4, 4, {2}, {True}),
            ("single-gpu-1nic", (), {}, 1, 1, {1}, {True}),
            ("pcie-2cpu-4gpu", (), {}, 0, 0, set(), set()),
        ):
            o = self.answer(machine(file), *args, **env)
            self.assertEqual((o["used"], o["total"], {n["owned_by"] for n in o["nics"]}), (used, total, owned_by), (file, args))
            self.assertEqual({g["gdr_send"]["used"] for g in o["gpus"] if g["net"] is not None}, gdr, (file, args))
            for n in o["nics"]:
                self.assertEqual(n["reason"] and n["reason"]["code"], None if used else "one_host")
            self.assertEqual(self.good("--topo", machine(file), *args, **env).split("\n")[0], f"NCCL {o['nccl']}: {o['summary']}.")

    def test_a_gpu_without_a_nic(self):
        self.assertEqual([g["net"] for g in self.answer(machine("pcie-2cpu-4gpu"))["gpus"]], 4 * [None])

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
        o = self.answer(f)
        rings = [r for r in o["rails"] if r["for"] == "ring"]
        for e in plan["queries"]["ring_net"]:  # of host 0; on odd hosts pairs of channels are swapped
            here = [r for r in rings if e["ch"] in r["channels"]]
            self.assertIn(e["send"][1], [r["from"] for r in here])
            self.assertIn(e["recv"][1], [r["to"] for r in here])
        self.assertTrue(all(r["crosses"] == (r["from"] != r["to"]) for r in o["rails"]))
        self.assertEqual(sum(r["crosses"] for r in o["rails"]), o["crossing"])
        self.assertEqual(set().union(*(r["channels"] for r in o["rails"] if r["crosses"])), set(range(o["channels"])))
        self.assertEqual([r["channels"] for r in rings if (r["from"], r["to"]) == (2, 0)], [[0, 4]])

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

    def test_nics_that_look_like_one(self):
        """As in AWS' file of the p5: before 2.28.7 guids in decimal counted as 0, and all NICs as one port."""
        nets = [(f"0000:1{i}:00.0", f'dev="{i - 2}" name="n{i}" speed="100000" port="1" guid="{i}"', 16) for i in range(2, 6)]
        with self.fabric(nets) as t:
            o = self.answer(t.name, "--nccl", "2.28.3")
            now = self.answer(t.name)
        self.assertTrue(o["bad_guids"])
        self.assertEqual([n["same_port_as"] for n in o["nics"]], [None, 0, 0, 0])
        self.assertEqual({(n["guid"], n["port"]) for n in o["nics"]}, {("0x0", 1)})
        self.assertEqual({n["reason"]["code"] for n in o["nics"] if n["state"] != "used"}, {"same_port"})
        with self.fabric([(b, n.replace('guid="', 'guid="0x'), w) for b, n, w in nets]) as t:
            o = self.answer(t.name, "--nccl", "2.28.3")
        for o in (o, now):
            self.assertFalse(o["bad_guids"])
            self.assertEqual([n["same_port_as"] for n in o["nics"]], 4 * [None])

    def test_merging(self):
        ports = [("0000:12:00.0", 'dev="0" name="mlx5_0" speed="100000" guid="0x1" port="1"', 16),
                 ("0000:12:00.1", 'dev="1" name="mlx5_1" speed="100000" guid="0x1" port="2"', 16)]
        with self.fabric(ports) as t:
            o, apart = self.answer(t.name), self.answer(t.name, NCCL_NET_MERGE_LEVEL="LOC")
        self.assertEqual(o["mergeable"]["pairs"], [{"nets": [0, 1], "distance": "PORT"}])
        self.assertEqual(o["mergeable"]["reason"]["code"], "from_file")
        self.assertEqual(apart["mergeable"]["pairs"], [])
        with self.fabric([("0000:12:00.0", 'dev="0" name="mlx5_0+mlx5_1" speed="200000"', 16)]) as t:
            nic = self.answer(t.name)["nics"][0]
        self.assertEqual((nic["members"], nic["label"], nic["bw"]), (2, "mlx5_0+mlx5_1", 25))

    def test_a_number_twice_counts_once(self):
        with self.fabric([("0000:12:00.0", 'dev="0" name="a" speed="100000"', 16),
                          ("0000:13:00.0", 'dev="0" name="a" speed="100000"', 16)]) as t:
            o = self.answer(t.name)
        self.assertEqual((o["total"], o["repeated"]), (1, 1))

    def test_the_p5_has_equal_nics(self):
        for file, used in (("real/aws-p5.48xlarge-h100", 2), ("derived/aws-p5-nvs18", 8)):
            o = self.answer(self.shared(file), "--nccl", "2.26.3")
            self.assertEqual((o["used"], o["total"], o["bad_guids"]), (used, 32, True))
            self.assertEqual([n["same_port_as"] for n in o["nics"]], [None] + 31 * [0])

    def test_many_hosts(self):
        few, many = (self.answer(machine("h100-rail-8nic-400g"), "--hosts", n) for n in ("2", "512"))
        self.assertEqual(few["gpus"], many["gpus"])
        self.assertEqual((many["hosts"], many["used"], many["crossing"]), (512, 8, 0))

    def test_every_machine_has_an_answer(self):
        answers = 0
        for f in tool.swept(tool.machines("synthetic", "random") + self.shared_machines("real", "derived", "from-public")):
            answers += self.good_or_refused("--topo", f) is not None
        self.assertGreater(answers, 10 if tool.SANITIZE else 50)


if __name__ == "__main__":
    tool.main()
