#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library has every host function of NCCL 2.32, and is loaded by Python."""
import ctypes
import os
import subprocess
import sys

# Since 2.28 or before.
HOST = """
ncclGetVersion ncclGetUniqueId ncclCommInitRank ncclCommInitRankConfig ncclCommInitRankScalable ncclCommInitAll
ncclCommFinalize ncclCommDestroy ncclCommAbort ncclCommRevoke ncclCommSplit ncclCommShrink ncclCommCount ncclCommCuDevice
ncclCommUserRank ncclCommGetAsyncError ncclGetErrorString ncclGetLastError ncclResetDebugInit ncclGroupStart ncclGroupEnd
ncclGroupSimulateEnd ncclAllReduce ncclReduce ncclBroadcast ncclBcast ncclAllGather ncclReduceScatter ncclAlltoAll
ncclGather ncclScatter ncclSend ncclRecv ncclRedOpCreatePreMulSum ncclRedOpDestroy ncclMemAlloc ncclMemFree
ncclCommRegister ncclCommDeregister ncclCommWindowRegister ncclCommWindowDeregister
""".split()

# Of the device API's host side, since 2.28.
DEVICE = """
ncclDevCommCreate ncclDevCommDestroy ncclTeamWorld ncclTeamLsa ncclTeamRail ncclTeamRankToWorld ncclTeamRankToLsa
ncclLsaBarrierCreateRequirement ncclGinBarrierCreateRequirement ncclLLA2ACreateRequirement ncclLLA2ACalcSlots
""".split()

# Since 2.29, 2.30, 2.31 and 2.32.
LATER = """
ncclCommGetUniqueId ncclCommGrow ncclCommSuspend ncclCommResume ncclCommMemStats ncclCommQueryProperties ncclWinGetUserPtr
ncclParamBind ncclParamGetI8 ncclParamGetI16 ncclParamGetI32 ncclParamGetI64 ncclParamGetU8 ncclParamGetU16
ncclParamGetU32 ncclParamGetU64 ncclParamGetStr ncclParamGet ncclParamGetParameter ncclParamGetAllParameterKeys
ncclParamDumpAll ncclPutSignal ncclSignal ncclWaitSignal ncclGetLsaDevicePointer ncclGetPeerDevicePointer
ncclGetLsaMultimemDevicePointer ncclGetMultimemDevicePointer
ncclAllReduceConfig ncclBroadcastConfig ncclReduceConfig ncclAllGatherConfig ncclReduceScatterConfig ncclAlltoAllConfig
ncclGatherConfig ncclScatterConfig ncclSetEncryption
""".split()


def main():
    library = os.path.join(os.environ["KOLO_BUILD"], "libkolo.so")
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1] for line in lines.splitlines()}
    wanted = [p + name for name in HOST + DEVICE + LATER for p in ("", "p")]
    absent = [name for name in wanted if name not in exported]
    for name in absent:
        print(f"{name}: missing")
    return bool(absent) or not loads_late(library)


def loads_late(library):
    """Into a process that runs already, where there is little room for variables of threads."""
    try:
        ctypes.CDLL(library)
    except OSError as e:
        print(e)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
