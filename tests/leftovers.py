# SPDX-License-Identifier: Apache-2.0
"""leftovers.py COMMAND...: run a test; when it has passed, does anything of it still run, or lie in shared memory?

Whatever processes the test leaves behind become children of this one, however they were started. It has a /dev/shm of its own, so that no
other job's files are blamed on it; where that is not allowed, files are not looked at. Resources that processes hold when they end are the
business of leftovers.c.
"""
import ctypes
import glob
import os
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER, CLONE_NEWNS, MS_REC, MS_PRIVATE = 36, 0x20000, 0x4000, 1 << 18
GRACE_S = int(os.environ.get("TEST_HANG_S", 900)) // 15  # for processes that are ending
libc = ctypes.CDLL(None, use_errno=True)


def have_own_shm():
    """True if this process and those it starts have a /dev/shm of their own from now on."""
    return (libc.unshare(CLONE_NEWNS) == 0 and libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) == 0
            and libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"mode=1777") == 0)


def running():
    """Names of the processes that still run; ended ones are reaped."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return []
        if not pid:
            break
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
        pids = children.read().split()
    names = []
    for pid in pids:
        with open(f"/proc/{pid}/cmdline", "rb") as line:
            names.append(f"process {pid}: " + line.read().replace(b"\0", b" ").decode(errors="replace").strip())
    return names


def files():
    """Shared memory with a name of the library's."""
    return ["file " + path for path in glob.glob("/dev/shm/kolo*")]


def run(command):
    """Its exit code. Whatever else ends meanwhile is buried, as the system's first process would."""
    test = subprocess.Popen(command)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == test.pid:
            test.returncode = os.waitstatus_to_exitcode(status)
            return test.returncode if test.returncode >= 0 else 128 - test.returncode


def main():
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    look_for_files = files if have_own_shm() else lambda: []
    code = run(sys.argv[1:])
    deadline = time.monotonic() + GRACE_S
    left = running() + look_for_files()
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        still = running() + look_for_files()
        left = [what for what in left if what in still]
    for what in left:
        print("left behind:", what, file=sys.stderr)
    return code if code or not left else 1


if __name__ == "__main__":
    sys.exit(main())
