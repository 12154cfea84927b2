# SPDX-License-Identifier: Apache-2.0
"""virtuals_test.py - every virtual function of the installed torch's c10d::Backend is overridden, or left as it is for a reason that stands here.

A name that is unknown fails the test: a new minor version of PyTorch brought it, and somebody has to decide.
"""

import pathlib
import re

import torch

INHERITED = {
    "supportsTimeEstimation": "no estimate of a group of calls is offered through c10d",
    "registerOnCompletionHook": "hooks are NCCL's alone; the default says so",
    "waitForPendingWorks": "belongs to the hooks",
    "enableCollectivesTiming": "belongs to NCCL's events",
    "setGroupUid": "the default keeps the name",
    "eagerConnectSingleDevice": "groups connect when they are made",
}
INHERITED_SINCE_2_14 = {
    "addEphemeralTimeout": "the default does nothing: timeouts belong to operations",
    "all_gather_single": "the default calls _allgather_base",
    "all_gather_single_coalesced": "the default calls allgather_into_tensor_coalesced",
    "all_to_all_single": "the default calls alltoall_base",
    "reduce_scatter_single": "the default calls _reduce_scatter_base",
    "reduce_scatter_single_coalesced": "the default calls reduce_scatter_tensor_coalesced",
    "gather_into_tensor": "the default calls gather_single",
    "clone": "of Options: the default copies them",
    "getBoundDeviceId": "groups of CPUs are bound to no device",
    "setBoundDeviceId": "groups of CPUs are bound to no device",
    "supportsWindow": "the default says no: windows are kolocc's",
    "new_window": "belongs to supportsWindow",
}
SOURCE = pathlib.Path(__file__).parent.parent / "backend.hpp"
HEADER = pathlib.Path(torch.__path__[0]) / "include/torch/csrc/distributed/c10d/Backend.hpp"


def virtuals():
    text = re.sub(r"//[^\n]*", "", HEADER.read_text())
    return {m for m in re.findall(r"virtual\s[^;{]*?\b(\w+)\s*\(", text)}


def overridden():
    return set(re.findall(r"\b(\w+)\s*\([^;{]*?\)\s*(?:const\s*)?override", SOURCE.read_text()))


def test_every_virtual_is_known():
    unknown = virtuals() - overridden() - set(INHERITED) - set(INHERITED_SINCE_2_14)
    assert not unknown, f"virtual functions of {HEADER} that are neither overridden nor listed in INHERITED: {sorted(unknown)}"


def test_the_list_of_inherited_ones_is_true():
    inherited = set(INHERITED) | set(INHERITED_SINCE_2_14)
    assert not inherited & overridden(), sorted(inherited & overridden())
    assert set(INHERITED) <= virtuals(), sorted(set(INHERITED) - virtuals())


def test_the_header_was_read():
    assert len(virtuals()) > 40 and {"allreduce", "split", "shutdown"} <= virtuals()
