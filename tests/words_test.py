#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Words that people try first: other spellings of collectives, types and sizes, PCI addresses, help, files in place of options."""
import unittest

import tool

A100 = tool.machine("a100-nvsw-8nic-200g")


class Words(tool.Case):
    def test_collectives_have_several_spellings(self):
        want = self.json("explain", "all_reduce", "64M", "--topo", A100)
        for name in ("allreduce", "AllReduce", "all-reduce", "ncclAllReduce"):
            self.assertEqual(self.json("explain", name, "64M", "--topo", A100), want, name)
        self.assertIn("all_reduce", self.good("perf", "allreduce", "-b", "1.5K", "-e", "2KB", "-f", "2", "-n", "1", "-d", "bf16",
                                              "--np", "2"))
        self.assertIn('no collective "allreduced"', self.run_tool("perf", "allreduced").stderr)

    def test_sizes_and_types_have_several_spellings(self):
        for a, b in (("1G", "1GB"), ("1536", "1.5K"), ("1K-1G", "1KiB-1GB")):
            self.assertEqual(self.json("explain", "all_reduce", a, "--topo", A100),
                             self.json("explain", "all_reduce", b, "--topo", A100), b)
        for a, b in (("float", "fp32"), ("bfloat16", "bf16"), ("half", "ncclFloat16"), ("uint8", "u8"), ("int32", "int")):
            self.assertEqual(self.json("explain", "all_reduce", "1M", "--type", a, "--topo", A100),
                             self.json("explain", "all_reduce", "1M", "--type", b, "--topo", A100), b)

    def test_pci_addresses_name_gpus_and_nics(self):
        system = self.json("topo", "--topo", A100)["system"]
        first = {kind: next(n for n in system if n["type"] == kind) for kind in ("GPU", "NIC")}

        def address(node):
            value = int(node["id"].split("-")[1], 16)
            return f"{value >> 20:04x}:{value >> 12 & 0xff:02x}:{value >> 4 & 0xff:02x}.{value & 15:x}"

        gpu, nic = address(first["GPU"]), address(first["NIC"])
        want = self.json("explain", "pair", "0", "NET/0", "--topo", A100)
        for a in (gpu, gpu[5:], gpu.upper(), "0000" + gpu):
            self.assertEqual(self.json("explain", "pair", a, nic, "--topo", A100), want, a)
        p = self.run_tool("explain", "pair", "0", "0000:ff:1f.7", "--topo", A100)
        self.assertEqual((p.returncode, "no such end" in p.stderr), (1, True), p.stderr)

    def test_nvidia_smi_describes_a_machine(self):
        with tool.written("\tGPU0\tGPU1\tNIC0\nGPU0\tX\tNV18\tPIX\nGPU1\tNV18\tX\tSYS\nNIC0\tPIX\tSYS\tX\n") as matrix, \
                tool.written("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n") as products:
            o = self.json("topo", "--smi", matrix.name, "--smi", products.name)
        self.assertEqual([n["sm"] for n in o["system"] if n["type"] == "GPU"], [90, 90])
        self.assertEqual(sum(n["type"] == "NVS" for n in o["system"]), 1)
        self.assertEqual(o["paths"]["gpu_net"][0][0]["type"], "PIX")
        p = self.run_tool("topo", "--smi", "/dev/null")
        self.assertEqual((p.returncode, "no matrix with GPUs" in p.stderr), (1, True))

    def test_hosts_of_one_nvlink_domain_are_told(self):
        for hosts, words in ((18, "1 NVLink domain of 18 hosts with 72 GPUs"), (36, "2 NVLink domains of 18 hosts with 72 GPUs each")):
            where = ("--machine", "gb200-nvl72", "--hosts", str(hosts))
            self.assertIn(f": {words}\n", self.good("graph", *where))
            self.assertIn(f", {words}\n", self.good("explain", "search", *where))

    def test_times_have_the_unit_that_suits(self):
        for size, unit in (("1K", "us"), ("1G", "ms"), ("4000G", "s")):
            self.assertRegex(self.good("explain", "all_reduce", size, "--topo", A100).split("\n")[0], rf": [\d.]{{1,5}} {unit} predicted")

    def test_help_and_version_are_commands_too(self):
        self.assertEqual(self.good("help"), self.good("--help"))
        self.assertEqual(self.good("version"), self.good("--version"))
        for command in ("env", "topo", "graph", "explain", "perf", "ras", "plugin", "trace", "tune", "run"):
            self.assertEqual(self.good("help", command), self.good(command, "--help"))
        p = self.run_tool("help", "elephants")
        self.assertEqual((p.returncode, p.stderr), (2, 'kolo: no command "elephants"; `kolo --help` lists them\n'))

    def test_files_are_told_their_option(self):
        for words in (["topo"], ["graph"], ["explain", "search"], ["perf", "all_reduce"]):
            p = self.run_tool(*words, A100)
            self.assertEqual(p.returncode, 2, words)
            self.assertIn(f"use --topo {A100}", p.stderr, words)


if __name__ == "__main__":
    tool.main()
