#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Output that cannot be written is a problem, said in one line, whatever the command and its format."""
import tool

MACHINE = ("--topo", tool.machine("a100-nvsw-8nic-200g"))

LOST = "^writing the output: (No space left on device|a part could not be written)$"


class FullDisk(tool.Case):
    def test_every_command_and_format(self):
        for words in (
            ("--help",), ("--version",), ("env", "--help"), ("topo", "--help"), ("graph", "--help"), ("explain", "--help"),
            ("env",), ("env", "--json"), ("env", "--markdown"),
            *(("topo", *MACHINE, "--format", f) for f in ("text", "xml", "json", "dot")),
            ("topo", *MACHINE, "--path", "GPU/0", "GPU/1"),
            *(("graph", *MACHINE, "--format", f) for f in ("text", "json", "xml", "svg", "html")),
            *(("explain", *question, *MACHINE, *form)
              for question in (("allreduce", "1M"), ("alltoall", "1M"), ("search",), ("pair", "0", "1"), ("nics",),
                               ("diff", "--without", "NET/3"))
              for form in ((), ("--json",))),
        ):
            with self.subTest(words), open("/dev/full", "w", encoding="utf-8") as full:
                self.refused(1, LOST, *words, stdout=full)

    def test_a_problem_that_env_found_does_not_hide_it(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.refused(1, LOST, "env", stdout=full, NCCL_NO_SUCH_NAME="1")


if __name__ == "__main__":
    tool.main()
