# SPDX-License-Identifier: Apache-2.0
"""Where the package's libraries, headers and programs are."""

from __future__ import annotations

import os

_HERE = os.path.dirname(os.path.abspath(__file__))


def _found(*names: str) -> str:
    path = os.path.join(_HERE, *names)
    if not os.path.exists(path):
        raise FileNotFoundError(f"kolocc: {path} is missing: this package was not installed from a wheel")
    return path


def get_library() -> str:
    """The folder of libkolo.so.0 and libkoloplan.so.0."""
    return _found("lib")


def get_include() -> str:
    """The folder of kolo.h, koloplan.h and Kolo's nccl.h."""
    return _found("include")


def get_nccl() -> str:
    """The folder of libnccl.so.2, which is Kolo: for LD_LIBRARY_PATH of programs that were linked with NCCL."""
    return _found("lib", "kolo", "nccl")


def get_cuda() -> str:
    """The folder of the stand-in for CUDA, like CUDA_HOME, for programs that shall run without GPUs."""
    return _found("lib", "kolo", "cuda")


def get_tool() -> str:
    """The program `kolo`."""
    return _found("bin", "kolo")
