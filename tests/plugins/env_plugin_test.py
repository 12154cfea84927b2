# SPDX-License-Identifier: Apache-2.0
"""An environment plugin, in each version of its ABI, stands in place of the environment: its texts count, also over conf files; all others
are the environment's; one that fails is not used."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import tool  # noqa: E402

PLUGINS = os.path.join(os.environ["KOLO_BUILD"], "plugins")


def plugin(version):
    return os.path.join(PLUGINS, f"libnccl-env-example{version}.so")


class Plugin(unittest.TestCase):
    def run_with(self, *words, settings="NCCL_ALGO=Ring\nNCCL_NTHREADS=256\n", version=2, **env):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "settings").write_text(settings, encoding="utf-8")
            pathlib.Path(folder, "conf").write_text("NCCL_NTHREADS=128\nNCCL_BUFFSIZE=65536\n", encoding="utf-8")
            env = {"NCCL_ENV_PLUGIN": plugin(version), "EXAMPLE_ENV_FILE": folder + "/settings",
                   "NCCL_CONF_FILE": folder + "/conf", "NCCL_DEBUG_FILE": folder + "/log.%p", **env}
            out = tool.good(*words, **env)
            return out, "".join(f.read_text(encoding="utf-8") for f in pathlib.Path(folder).glob("log.*"))

    def origin(self, name, **env):
        out, _ = self.run_with("env", name, "--json", **env)
        found = json.loads(out)["parameters"][0]
        return found["value"], found["source"].split("/")[-1].split(":")[0]

    def test_its_texts_count(self):
        for version in (1, 2):
            with self.subTest(version=version):
                self.assertEqual(self.origin("NCCL_ALGO", NCCL_ALGO="Tree", version=version), ("Ring", "env plugin ExampleFile"))
                self.assertEqual(self.origin("NCCL_NTHREADS", version=version), ("256", "env plugin ExampleFile"))
                self.assertEqual(self.origin("NCCL_PROTO", NCCL_PROTO="LL", version=version), ("LL", "environment"))
                self.assertEqual(self.origin("NCCL_BUFFSIZE", version=version), ("65536", "conf"))

    def test_the_log_names_it(self):
        _, log = self.run_with("perf", "all_reduce", "--np", "1", "-b", "8", "-e", "8", NCCL_DEBUG="INFO")
        self.assertIn("ENV/Plugin: using ExampleFile (ncclEnvPlugin_v2 of ", log)
        self.assertIn("ENV/Plugin: 2 variables for version ", log)

    def test_one_that_fails_is_not_used(self):
        self.assertEqual(self.origin("NCCL_ALGO", NCCL_ALGO="Tree", EXAMPLE_ENV_FILE="/nowhere"), ("Tree", "environment"))
        _, log = self.run_with("perf", "all_reduce", "--np", "1", "-b", "8", "-e", "8", NCCL_DEBUG="INFO",
                               EXAMPLE_ENV_FILE="/nowhere")
        self.assertIn("init of v2 returned 2, and it is not used", log)
        self.assertIn("the plugin of NCCL_ENV_PLUGIN is not used", log)
        self.assertEqual(self.origin("NCCL_ALGO", NCCL_ALGO="Tree", NCCL_ENV_PLUGIN="none"), ("Tree", "environment"))


if __name__ == "__main__":
    unittest.main()
