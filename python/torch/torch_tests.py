# SPDX-License-Identifier: Apache-2.0
"""torch_tests.py - PyTorch's own distributed tests, from the installed wheel, against a backend.

    torch_tests.py list                              names of the tests that concern CPUs
    torch_tests.py run --backend kolo [NAME ...]     run them (all), in a group of --world ranks, and print the outcomes
    torch_tests.py record                            run all of them over gloo and over kolo, renew the records in upstream/, and compare
    torch_tests.py compare                           hold upstream/kolo.json against upstream/gloo.json and upstream/expected.json

Outcomes are `passed`, `skipped: WHY` or `failed: WHY`, by name. The exit status of `run` and `compare` is 1 if something failed, or differs
from gloo's without a reason in expected.json.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RECORDS = HERE / "upstream"


# ---- the tests; ranks are forked from here, which spares each of them the imports ----


def _use_kolo():
    import torch.distributed as dist

    import kolocc.torch

    dist.monitored_barrier = kolocc.torch.monitored_barrier  # torch's refuses backends of other names


def _test_class(backend, gate):
    """The tests, as far as they are open to `gate`: decorators look at the backend's name when the module is imported."""
    import multiprocessing

    from torch.testing._internal.common_distributed import DistTestCases

    if backend == "kolo":
        _use_kolo()
    for feature in ("ddp", "subgroup"):
        DistTestCases.backend_feature[feature].update((backend, gate))
    os.environ["BACKEND"] = gate
    from torch.testing._internal.distributed import distributed_test

    os.environ["BACKEND"] = distributed_test.BACKEND = backend

    class TestBackend(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(multiprocessing.get_context("fork").Process)

    return TestBackend


def run_one(tests, name):
    import unittest

    result = unittest.TestResult()
    with tempfile.TemporaryDirectory() as folder:
        for sub in ("barrier", "test_dir", "init_dir"):
            os.mkdir(f"{folder}/{sub}")
        os.environ["TEMP_DIR"] = folder
        unittest.TestSuite([tests(name)]).run(result)
    if result.skipped:
        return "skipped: " + result.skipped[0][1].strip().splitlines()[0]
    for _, text in result.failures + result.errors:
        return "failed: " + _cause(text)
    return "passed"


def _cause(text):
    """The line of a traceback that says most."""
    lines = [line.strip() for line in text.strip().splitlines()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Failure)\b", line)]
    named = [line for line in errors if not line.startswith("RuntimeError: Process")]
    return (named or errors or lines[-1:])[0][:200]


# ---- all tests ----


def names(tests):
    return [name for name in dir(tests) if name.startswith("test_")]


def needs_gpu():
    """Names of tests that a decorator keeps from machines without GPUs."""
    import ast
    import importlib.util

    spec = importlib.util.find_spec("torch.testing._internal.distributed.distributed_test")
    tree = ast.parse(pathlib.Path(spec.origin).read_text())
    marks = {"skip_if_no_gpu", "skip_if_lt_x_gpu", "skip_if_rocm_multiprocess"}
    return {
        f.name
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef) and any(marks & {n.id for n in ast.walk(d) if isinstance(n, ast.Name)} for d in f.decorator_list)
    }


def run(backend, gate, wanted, record):
    tests = _test_class(backend, gate)
    outcomes, gpu = {}, needs_gpu()
    for name in wanted or names(tests):
        outcomes[name] = "skipped: needs GPUs" if name in gpu else run_one(tests, name)
        print(f"{name}  {outcomes[name]}", flush=True)
        if record:
            RECORDS.mkdir(exist_ok=True)
            (RECORDS / f"{record}.json").write_text(json.dumps(outcomes, indent=1) + "\n")
    failed = sum(o.startswith("failed") for o in outcomes.values())
    skipped = sum(o.startswith("skipped") for o in outcomes.values())
    print(f"{len(outcomes) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def record_all(world):
    """All records anew, of one build. Those of tests that PyTorch runs for MPI only are of the names that the record has."""
    for options in (["--backend", "gloo", "--record", "gloo"], ["--record", "kolo"], ["--gate", "mpi", "--record", "kolo-mpi", *load("kolo-mpi")]):
        subprocess.run([sys.executable, __file__, "run", "--world", str(world), *options])  # failures are for compare to judge
    return compare()


# ---- comparison ----


def load(name):
    return json.loads((RECORDS / f"{name}.json").read_text())


def differences():
    """Names that gloo passes and kolo does not, and why that is expected, or None."""
    kolo, reasons = load("kolo"), load("expected")
    return {
        name: (kolo.get(name, "not run"), reasons.get(name))
        for name, outcome in load("gloo").items()
        if outcome == "passed" and kolo.get(name) != "passed"
    }


def compare():
    unexplained = 0
    for name, (outcome, reason) in differences().items():
        print(f"{name}\n  {outcome}\n  {reason or 'no reason'}")
        unexplained += reason is None
    gloo, kolo = load("gloo"), load("kolo")
    print(f"gloo passes {sum(o == 'passed' for o in gloo.values())}, kolo {sum(o == 'passed' for o in kolo.values())}; "
          f"{len(differences())} of gloo's not passed, {unexplained} of them without a reason")
    return 1 if unexplained else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("list", "run", "record", "compare"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--backend", default="kolo")
    parser.add_argument("--world", type=int, default=2, help="ranks of a test's process group")
    parser.add_argument("--gate", default="gloo", help="run tests that are open to this backend only, too (gloo, mpi)")
    parser.add_argument("--record", metavar="NAME", help="write upstream/NAME.json")
    args = parser.parse_intermixed_args()
    os.environ.update(WORLD_SIZE=str(args.world), OMP_NUM_THREADS="1", TEMP_DIR=tempfile.gettempdir())
    if args.command == "compare":
        return compare()
    if args.command == "record":
        return record_all(args.world)
    if args.command == "list":
        print("\n".join(names(_test_class(args.backend, args.gate))))
        return 0
    return run(args.backend, args.gate, args.names, args.record)


if __name__ == "__main__":
    sys.exit(main())
