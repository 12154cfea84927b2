# SPDX-License-Identifier: Apache-2.0
"""upstream_test.py - PyTorch's own tests: the records of all of them, and ten of them run."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import torch_tests  # noqa: E402

TEN = [
    "test_all_gather", "test_all_reduce_sum", "test_all_to_all_single_equal_split_full_group", "test_broadcast", "test_isend",
    "test_send_recv_any_source", "test_gather", "test_scatter", "test_DistributedDataParallelCPU", "test_monitored_barrier_gloo",
]


def test_every_difference_from_gloo_has_a_reason():
    missing = {name: outcome for name, (outcome, reason) in torch_tests.differences().items() if reason is None}
    assert not missing, missing


def test_every_reason_is_needed():
    unneeded = set(torch_tests.load("expected")) - set(torch_tests.differences())
    assert not unneeded, f"of upstream/expected.json: {sorted(unneeded)} pass, or gloo does not pass them"


def test_many_were_recorded():
    assert sum(outcome == "passed" for outcome in torch_tests.load("gloo").values()) > 80


def run(names, gate):
    command = [sys.executable, str(HERE.parent / "torch_tests.py"), "run", "--gate", gate, *names]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.count("  passed") == len(names), done.stdout


def test_ten_of_them():
    mpi_only = [n for n in TEN if "all_to_all" in n]
    run([n for n in TEN if n not in mpi_only], "gloo")
    run(mpi_only, "mpi")
