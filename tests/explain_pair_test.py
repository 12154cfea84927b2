#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo explain pair`: how two ends talk, and why not better."""
import json

import tool
from tool import EXAMPLES, machine


class Pair(tool.Case):
    words = ("explain", "pair")

    def answer(self, name, a, b, *args, **env):
        return self.json(a, b, "--topo", machine(name), *args, **env)

    def test_the_answer(self):
        for (name, *args), want in (
            (("a100-nvsw-8nic-200g", "0", "3"), ("P2P", 240)),
            (("a100-nvsw-8nic-200g", "0", "12", "--hosts", "2"), ("NET", 24)),
            (("h100-rail-8nic-400g", "0", "mlx5_3"), (None, 48)),
            (("pcie-2cpu-4gpu", "GPU/0", "GPU/3"), ("SHM", 10)),
            (("pcie-1cpu-2gpu-amd", "0", "1"), ("P2P", 24)),
            (("gb200-4gpu-4nic", "0", "5", "--hosts", "2"), ("NET", 48)),
            (("gb200-4gpu-4nic", "0", "5", "--hosts", "2", "--mnnvl"), ("P2P", 721.8)),
            (("gb200-4gpu-4nic", "0", "5", "--hosts", "2", "--mnnvl", "--nccl", "2.26.3"), ("P2P", 720)),
        ):
            o = self.answer(name, *args)
            self.assertEqual((o["transport"], o["bw"]), want, (name, args))

    def test_ends(self):
        o = self.answer("h100-rail-8nic-400g", "GPU/1", "GPU/9", "--hosts", "2")
        self.assertEqual([(o[e]["name"], o[e]["rank"], o[e]["host"], o[e]["dev"]) for e in "ab"],
                         [("GPU/1", 1, 0, 1), ("GPU/9", 9, 1, 1)])
        self.assertEqual(self.answer("h100-rail-8nic-400g", "0", "mlx5_3")["b"], {"name": "NET/3", "label": "mlx5_3"})

    def test_pxn_leads_to_the_receivers_rail(self):
        (r,) = self.answer("a100-nvsw-8nic-200g", "0", "12", "--hosts", "2")["routes"]
        self.assertEqual((r["for"], r["send"]["net"], r["send"]["proxy"], r["send"]["reason"]["code"]), ("send/recv", 4, 4, "rail"))
        self.assertEqual((r["recv"]["net"], r["recv"]["proxy"], r["recv"]["reason"]["code"]), (4, 12, "own_nic"))
        self.assertTrue(r["send"]["gdr"]["used"] and r["recv"]["gdr"]["used"])

    def test_a_gpu_and_a_nic(self):
        o = self.answer("a100-nvsw-8nic-200g", "0", "NET/4")
        self.assertEqual((o["nic"]["own"], o["nic"]["pxn"]["relay"], o["nic"]["pxn"]["reason"]["code"]), (False, 4, "used"))
        o = self.answer("h100-rail-8nic-400g", "3", "NET/3")
        self.assertEqual((o["nic"]["own"], o["nic"]["pxn"]["relay"], o["nic"]["pxn"]["reason"]["code"]), (True, 3, "own_nic"))

    def test_transports_and_what_refuses_them(self):
        sockets, ring, fast = (f"{EXAMPLES}/{n}.xml" for n in ("two-sockets", "nvlink-ring", "net-faster"))
        for args, env, chosen, codes in (
            ((sockets, "0", "3"), {}, "SHM", ["too_far", "allowed"]),
            ((sockets, "0", "3"), {"NCCL_P2P_LEVEL": "SYS"}, "P2P", ["allowed", "allowed"]),
            ((sockets, "0", "1"), {"NCCL_P2P_DISABLE": "1"}, "SHM", ["disabled", "allowed"]),
            ((ring, "0", "2"), {}, "P2P", ["allowed", "allowed"]),
            ((ring, "0", "2"), {"NCCL_P2P_USE_CUDA_MEMCPY": "1"}, "SHM", ["copy_engine", "allowed"]),
            ((fast, "0", "1"), {}, "NET", ["too_far", "network_faster", "allowed"]),
            ((fast, "0", "1"), {"NCCL_NET_DISABLE_INTRA": "1"}, "SHM", ["too_far", "allowed"]),
            ((machine("pcie-2cpu-4gpu"), "0", "3"), {"NCCL_SHM_DISABLE": "1"}, None, ["too_far", "disabled", "no_nic"]),
        ):
            o = self.json("--topo", args[0], args[1], args[2], **env)
            self.assertEqual(o["transport"], chosen, (args, env))
            self.assertEqual([t["reason"]["code"] for t in o["transports"]], codes, (args, env))
            self.assertEqual([t["name"] for t in o["transports"] if t["chosen"]], [chosen] if chosen else [])

    def test_another_gpu_in_between(self):
        o = self.json("0", "2", "--topo", f"{EXAMPLES}/nvlink-ring.xml")
        self.assertEqual((o["via"], o["path"][0]["type"]), (3, "NVB"))

    def test_the_first_line_is_the_summary(self):
        for args in (("0", "3"), ("0", "9", "--hosts", "2"), ("1", "NET/5"), ("NET/5", "1"), ("CPU/0-0", "NET/1")):
            args += ("--topo", machine("h100-nvsw-8nic-400g"))
            o = self.json(*args)
            self.assertEqual(self.good(*args).split("\n")[0], f"NCCL {o['nccl']}: {o['summary']}.")

    def test_nics_of_sends_are_those_of_the_graph(self):
        seen = 0
        for name in ("a100-nvsw-8nic-200g", "h100-nvsw-4nic-400g", "dgx1v-hcm-4nic", "gb200-4gpu-4nic"):
            plan = json.loads(tool.good("graph", "--topo", machine(name), "--hosts", "2", "--json"))
            gpus = plan["gpus_per_host"]
            for a, b in ((0, gpus), (0, gpus + 1), (1, 2 * gpus - 1), (gpus - 1, gpus)):
                o = self.json(str(a), str(b), "--topo", machine(name), "--hosts", "2")
                for r in o["routes"]:
                    for c in r["channels"]:
                        if r["for"] == "send/recv":  # the plan tells of two channels; here at most two NICs take turns
                            seen += 1
                            self.assertEqual([r["send"]["net"], r["send"]["proxy"]],
                                             plan["queries"]["p2p_net"][a][b - gpus][c % 2], (name, a, b, c))
        self.assertGreater(seen, 10)

    def test_nics_of_rings_are_those_of_the_graph(self):
        f = machine("a100-nvsw-8nic-200g")
        plan = json.loads(tool.good("graph", "--topo", f, "--hosts", "2", "--json"))
        for ends in plan["queries"]["ring_net"]:
            (last, out, proxy), (first, into, _) = ends["send"], ends["recv"]
            routes = self.json(str(last), str(8 + first), "--topo", f, "--hosts", "2")["routes"]
            ring = [r for r in routes if r["for"] == "ring" and ends["ch"] in r["channels"]]
            self.assertEqual([(r["send"]["net"], r["send"]["proxy"], r["recv"]["net"]) for r in ring],
                             [(out, proxy, into)])

    def edited(self, name, *changes):
        with open(machine(name), encoding="utf-8") as f:
            text = f.read()
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new, 1)
        return tool.written(text)

    def test_links_that_are_not_as_wide_both_ways(self):
        """A GPU can send as much as its own links carry, though NCCL's path has the width of the links back."""
        with self.edited("nvbridge-2x2-a40", ('target="0000:21:00.0" count="4"', 'target="0000:21:00.0" count="1"')) as t:
            o = self.json("0", "1", "--topo", t.name)
            back = self.json("1", "0", "--topo", t.name)
        link, path = o["path"][0]["links"][0]["bw"], o["path"][0]["bw"]
        self.assertEqual((o["bw"], path), (link, 4 * link))
        self.assertEqual((back["bw"], back["path"][0]["bw"]), (path, link))

    def test_bottlenecks_are_narrower_than_something(self):
        for b, n in (("3", 0), ("NET/3", 2)):
            links = self.json("0", b, "--topo", machine("a100-nvsw-8nic-200g"))["path"][0]["links"]
            self.assertEqual([l["bw"] for l in links if l["bottleneck"]], n * [24])

    def test_a_nic_is_seen_as_in_the_plan(self):
        """Ranks that only the network joins have a machine each, with one GPU: it needs no NVLink to send with GPUDirect."""
        args, alone = ("--topo", machine("dgx1p-hcm-4nic")), {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}
        nics = json.loads(tool.good("explain", "nics", *args, "--hosts", "1", "--json", **alone))
        for hosts in ("1", "2"):
            o = self.json("0", "NET/0", *args, "--hosts", hosts, **alone)
            self.assertEqual([o["nic"][k]["used"] for k in ("gdr_send", "gdr_recv")],
                             [nics["gpus"][0][k]["used"] for k in ("gdr_send", "gdr_recv")], hosts)

    def test_cpu_devices_say_what_happens_live(self):
        o = self.json("0", "1", "--ranks", "2")
        self.assertEqual((o["transport"], o["live"]), ("SHM", {"processes": "SHM", "threads": "P2P"}))
        self.assertEqual(o["transports"][0]["reason"]["code"], "not_mappable")
        o = self.json("0", "1", "--ranks", "2", NCCL_P2P_DISABLE="1")
        self.assertEqual(o["live"], {"processes": "SHM", "threads": "SHM"})

    def test_bad_ends(self):
        f = machine("pcie-2cpu-4gpu")
        for words, code in ((("0", "4"), 1), (("0", "0"), 1), (("0", "NET/9"), 1), (("0", "PCI/0-10000"), 1),
                            (("0", "-1"), 2), (("0", "99999999999999999999"), 1), (("0",), 2), (("0", "1", "2"), 2),
                            (("", "1"), 1)):
            self.refused(code, ".", "--topo", f, *words)

    def test_nics_of_several_hosts_are_named_as_they_are_written(self):
        self.refused(1, r"NICs \(NET/0-0, or by name\)", "0", "NET/0", "--topo", machine("gb200-4gpu-4nic"), "--hosts", "2",
                     "--mnnvl")

    def test_cpu_devices_stay_cpus_when_one_is_left_out(self):
        self.assertEqual(self.json("0", "1", "--ranks", "3", "--without", "GPU/2")["transport"], "SHM")

    def test_many_hosts(self):
        o = self.json("0", "4095", "--topo", machine("h100-rail-8nic-400g"), "--hosts", "512")
        self.assertEqual((o["transport"], o["b"]["host"], o["b"]["dev"]), ("NET", 511, 7))

    def test_every_machine_has_an_answer(self):
        answers = 0
        for f in tool.swept(tool.machines("synthetic", "random") + self.shared_machines("real", "derived", "from-public")):
            text = self.good_or_refused("0", "1", "--topo", f, "--json")
            answers += text is not None and bool(json.loads(text)["summary"])
        self.assertGreater(answers, 10 if tool.SANITIZE else 50)


if __name__ == "__main__":
    tool.main()
