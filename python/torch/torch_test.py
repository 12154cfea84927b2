# SPDX-License-Identifier: Apache-2.0
"""torch_test.py - run the backend's tests (pytest) with the Python that has PyTorch; skipped, with the reason, where there is none.

    torch_test.py FILE ...     files of tests/

TORCH_PYTHON names the Python; KOLO_BUILD is the build tree, whose python/kolocc has the extension.
"""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def main():
    python = os.environ.get("TORCH_PYTHON", "")
    if not python:
        skip("no Python with PyTorch: ./dev setup --torch, or -DKOLO_TORCH_PYTHON=FILE")
    package = pathlib.Path(os.environ["KOLO_BUILD"], "python")
    if not list(package.glob("kolocc/_c10d_*.so")):
        skip("the target kolo_torch was not built")
    if subprocess.run([python, "-c", "import pytest, expecttest, numpy"], capture_output=True).returncode:
        skip(f"{python} lacks pytest, expecttest or numpy")
    env = dict(os.environ, PYTHONPATH=str(package), PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1")
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(HERE / "tests" / f) for f in sys.argv[1:])]
    sys.exit(subprocess.run(command, env=env).returncode)


main()
