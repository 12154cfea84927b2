# SPDX-License-Identifier: Apache-2.0
"""leftovers.py COMMAND...: run a test; when it has passed, does anything of it still run, or lie in shared memory?

Whatever processes the test leaves behind become children of this one, however they were started. What they hold themselves when they end
is the business of leftovers.c.
"""
import ctypes
import glob
import os
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 3  # for what is ending, and for files of tests that run beside this one


def running():
    """Names of what still runs; what has ended is buried."""
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


def files(since):
    """Shared memory with a name of the library's that was made since then."""
    found = []
    for path in glob.glob("/dev/shm/kolo*"):
        try:
            if os.stat(path).st_ctime >= since:
                found.append("file " + path)
        except FileNotFoundError:
            pass
    return found


def main():
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.time()
    code = subprocess.run(sys.argv[1:], check=False).returncode
    deadline = time.monotonic() + GRACE_S
    left = running() + files(began)
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        still = running() + files(began)
        left = [what for what in left if what in still]
    for what in left:
        print("left behind:", what, file=sys.stderr)
    return code if code or not left else 1


if __name__ == "__main__":
    sys.exit(main())
