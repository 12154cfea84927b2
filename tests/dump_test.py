# SPDX-License-Identifier: Apache-2.0
"""NCCL_PROXY_DUMP_SIGNAL: at the signal a process prints the ranks that its operations wait for, and goes on. Rank 0 stands still, so that
rank 1 of another host waits for it on every channel."""
import os
import re
import signal
import subprocess
import sys
import threading
import time

import tool

BOUND_S = tool.HANG_S
lines, said = [], threading.Condition()


def read(stream):
    for line in stream:
        with said:
            lines.append(line.rstrip())
            said.notify_all()


def await_line(pattern):
    deadline = time.monotonic() + BOUND_S
    with said:
        while True:
            found = next((re.search(pattern, line) for line in lines if re.search(pattern, line)), None)
            if found:
                return found
            if time.monotonic() > deadline or not said.wait(deadline - time.monotonic()):
                sys.exit(f"nothing says \"{pattern}\":\n" + "\n".join(lines[-40:]))


pids = []
job = subprocess.Popen([tool.KOLO, *"perf all_reduce --hosts 2 --np 2 -b 1M -e 1M -n 1000000 -w 1".split()],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       env={**{k: v for k, v in os.environ.items() if not k.startswith("NCCL_")}, "NCCL_DEBUG": "INFO",
                            "NCCL_ALGO": "Ring", "NCCL_MAX_NCHANNELS": "1", "NCCL_PROXY_DUMP_SIGNAL": str(int(signal.SIGUSR1))})
threading.Thread(target=read, args=(job.stdout,), daemon=True).start()
try:
    pids = [int(await_line(rf"#  Rank +{rank} .* Pid +(\d+)")[1]) for rank in (0, 1)]
    for a, b in ((0, 1), (1, 0)):
        for end in ("send", "receive"):
            await_line(rf" {a}\[0\] -> {b}\[0\] \[{end}\] via NET/")  # all is connected: operations run
    deadline = time.monotonic() + BOUND_S
    while not any(": RING, waits for rank 0" in line for line in lines):  # between operations no rank waits
        if time.monotonic() > deadline:
            sys.exit("rank 1 never waits:\n" + "\n".join(lines[-40:]))
        os.kill(pids[0], signal.SIGCONT)
        with said:
            said.wait(0.05)  # wherever rank 0 gets meanwhile
        os.kill(pids[0], signal.SIGSTOP)
        os.kill(pids[1], signal.SIGUSR1)
        with said:
            said.wait_for(lambda: any(": RING, waits for rank 0" in line for line in lines), 0.5)
    await_line(r"state of operations")
    await_line(r"rank 1 of 2: AllReduce of 262144 elements, operation \d+")
    await_line(r"rank 1: channel 00: RING, waits for rank 0$")
    await_line(r"rank 1: channel 00: from rank 0 by NET: \d+ steps taken, the next one is not here$")
    await_line(r"rank 1: channel 00: to rank 0 by NET: \d+ steps published, \d+ of them gone$")
    os.kill(pids[0], signal.SIGCONT)
finally:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
    job.terminate()
    job.wait()
print("rank 1 has printed the rank that it waits for")
