# SPDX-License-Identifier: Apache-2.0
"""install_test.py - the package as a wheel lays it, where the extension is not there yet: the error's remedy makes it, and a group then runs."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import kolocc
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCES = re.search(r"set\(sources\s([^)]*)\)", (ROOT / "python/torch/CMakeLists.txt").read_text())[1].split()  # as the wheel has them
JOB = """
import torch, torch.distributed as dist
import kolocc.torch
dist.init_process_group("kolo", init_method="file://" + {store!r}, rank=0, world_size=1)
t = torch.ones(3)
dist.all_reduce(t)
print(t.tolist(), dist.get_backend())
dist.destroy_process_group()
"""


@pytest.fixture
def package(tmp_path):
    """A folder for PYTHONPATH with kolocc, its libraries and headers."""
    built = pathlib.Path(kolocc.__file__).parent
    to = tmp_path / "site" / "kolocc"
    shutil.copytree(built, to, ignore=shutil.ignore_patterns("_c10d_*", "__pycache__"))
    (to / "lib").mkdir()
    shutil.copy(built.parents[1] / "libkolo.so.0", to / "lib")
    shutil.copytree(ROOT / "include", to / "include/kolo")
    (to / "_torch_source").mkdir()
    for name in SOURCES:
        shutil.copy(ROOT / "python/torch" / name, to / "_torch_source")
    return to.parent


def run(package, tmp_path, *words, **variables):
    env = {k: v for k, v in os.environ.items() if k not in ("KOLO_TORCH_MODULE", "PYTHONPATH", "XDG_CACHE_HOME")}
    env.update(PYTHONPATH=str(package), XDG_CACHE_HOME=str(tmp_path / "cache"), **variables)
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=env)


def test_all_sources_are_installed():
    assert sorted(SOURCES) == sorted(p.name for p in (ROOT / "python/torch").iterdir() if p.suffix in (".cc", ".hpp"))


def test_the_extension_is_compiled_where_it_is_missing(package, tmp_path):
    job = JOB.format(store=str(tmp_path / "store"))
    before = run(package, tmp_path, "-c", job)
    assert before.returncode and f"{sys.executable} -m kolocc.torch" in before.stderr, before.stderr
    ccache = shutil.which("ccache")
    made = run(package, tmp_path, "-m", "kolocc.torch", **({"CXX": "ccache c++"} if ccache else {}))
    assert made.returncode == 0, made.stderr
    file = pathlib.Path(made.stdout.strip())
    assert file.is_file() and file.is_relative_to(tmp_path / "cache/kolo")
    (tmp_path / "store").unlink(missing_ok=True)
    after = run(package, tmp_path, "-c", job)
    assert after.returncode == 0 and after.stdout.strip() == "[1.0, 1.0, 1.0] kolo", after.stderr


def test_a_missing_compiler_is_named(package, tmp_path):
    done = run(package, tmp_path, "-m", "kolocc.torch", CXX="/nowhere/c++")
    assert done.returncode and "there is no C++ compiler /nowhere/c++" in done.stderr, done.stderr


def test_an_import_of_torch_registers_the_backend(package, tmp_path):
    """By the entry point of the wheel."""
    info = package / "kolo_collectives-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kolo-collectives\nVersion: 0\n")
    project = (ROOT / "pyproject.toml").read_text()
    line = next(text for text in project.split('[project.entry-points."torch.backends"]\n')[1].splitlines() if text)
    (info / "entry_points.txt").write_text("[torch.backends]\n" + line.replace('"', "") + "\n")
    done = run(package, tmp_path, "-c", "import torch.distributed as d; print(d.is_backend_available('kolo'))")
    assert done.returncode == 0 and done.stdout.strip() == "True", done.stderr
