# SPDX-License-Identifier: Apache-2.0
"""One-sided operations over the example plugin: between emulated hosts all of one_sided_test, in each version of the ABI; where it is found, and why
it is not taken; ranks of which one has none."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import tool  # noqa: E402

BUILD = os.environ["KOLO_BUILD"]
PLUGINS = os.path.join(BUILD, "plugins")


def plugin(name):
    return os.path.join(PLUGINS, f"libnccl-{name}.so")


def ranks(**env):
    """The test's own processes on two hosts and three."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
    p = subprocess.run([os.path.join(BUILD, "bin", "one_sided_test"), "hosts"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                       timeout=tool.HANG_S, env={**clean, "NCCL_DEBUG": "INFO", **env}, check=False)
    if p.returncode:
        raise AssertionError(p.stdout)
    return p.stdout


class Hosts(unittest.TestCase):
    def test_each_version(self):
        for name, symbol in (("rma-example13", "ncclRmaPlugin_v13"), ("rma-example14", "ncclRmaPlugin_v14"),
                             ("rma-example15", "ncclRmaPlugin_v15"), ("gin-example13", "ncclGinPlugin_v13")):
            with self.subTest(symbol=symbol):
                log = ranks(NCCL_RMA_PLUGIN=plugin(name))
                self.assertIn(f"RMA/Plugin: using ExamplePut ({symbol} of {plugin(name)})", log)
                self.assertIn("RMA/ExamplePut: one-sided operations to other hosts go over the plugin", log)

    def test_a_library_of_another_kind_has_it(self):
        log = ranks(NCCL_GIN_PLUGIN=plugin("gin-example13"))
        self.assertIn("rma plugin: looked for libnccl-rma.so, not taken", log)
        self.assertIn("go over the plugin", log)

    def test_the_library_has_the_default_name(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(plugin("rma-example15"), folder + "/libnccl-rma.so")
            self.assertIn("RMA/Plugin: using ExamplePut (ncclRmaPlugin_v15 of libnccl-rma.so)", ranks(LD_LIBRARY_PATH=folder))


class Refused(unittest.TestCase):
    def refused(self, said, **env):
        log = ranks(**env)
        self.assertIn(said, log)
        self.assertNotIn("go over the plugin", log)

    def test_none(self):
        self.refused("NCCL_RMA_PLUGIN set by environment to none", NCCL_RMA_PLUGIN="none")

    def test_a_library_without_the_symbol(self):
        self.refused("looked for the symbols ncclRmaPlugin_v15 to ncclRmaPlugin_v13 and ncclGinPlugin_v13, and found none",
                     NCCL_RMA_PLUGIN=plugin("tuner-example4"))

    def test_a_table_without_a_function(self):
        self.refused("RMA/FaultyRma (ncclRmaPlugin_v14 of " + plugin("faulty21") + "): it has no function devices, and it is not taken",
                     NCCL_RMA_PLUGIN=plugin("faulty21"))

    def test_data_that_must_be_encrypted(self):
        self.refused("not looked for, as KOLO_NET_CRYPT=1", NCCL_RMA_PLUGIN=plugin("rma-example15"), KOLO_NET_CRYPT="1")

    def test_ranks_that_differ(self):
        self.refused('RMA/Plugin: not used, as rank 0 has "ExamplePut" (v15), and rank 1 "" (v0): all need the same',
                     NCCL_RMA_PLUGIN=plugin("rma-example15"), ONE_SIDED_ODD_PLUGIN="none")

    def test_a_connection_that_fails(self):
        self.refused("RMA/ExamplePut is not used, as rank 0 could not connect; one-sided operations go over NET",
                     NCCL_RMA_PLUGIN=plugin("rma-example15"), EXAMPLE_RMA_REFUSES="1")


if __name__ == "__main__":
    unittest.main()
