# SPDX-License-Identifier: Apache-2.0
"""Where the package's libraries, headers and programs are."""

from __future__ import annotations

import os

from . import _layout

_HERE = os.path.dirname(os.path.abspath(__file__))


def _found(place: str) -> str:
    path = os.path.normpath(os.path.join(_HERE, place))
    if not os.path.exists(path):
        raise FileNotFoundError(f"kolocc: {path} is missing: install kolocc from its wheel, or all of Kolo's packages of this distribution")
    return path


def get_library() -> str:
    """The folder of libkolo.so.0 and libkoloplan.so.0."""
    return _found(_layout.LIBRARY)


def get_include() -> str:
    """The folder of kolo.h, koloplan.h and Kolo's nccl.h."""
    return _found(_layout.INCLUDE)


def get_nccl() -> str:
    """The folder of libnccl.so.2, which is Kolo: for LD_LIBRARY_PATH of programs that were linked with NCCL."""
    return _found(_layout.NCCL)


def get_cuda() -> str:
    """The folder of the stand-in for CUDA, like CUDA_HOME, for programs that shall run without GPUs."""
    return _found(_layout.CUDA)


def get_tool() -> str:
    """The program `kolo`."""
    return _found(_layout.TOOL)
