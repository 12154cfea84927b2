# SPDX-License-Identifier: Apache-2.0
"""For tests of running jobs: `kolo perf` with its lines read while it runs, and ranks that can be stopped and killed."""
import os
import re
import signal
import subprocess
import threading
import time

import tool

BOUND_S = tool.HANG_S


def until(found, what, bound_s=BOUND_S):
    """Ask again and again until there is an answer."""
    deadline = time.monotonic() + bound_s
    while True:
        answer = found()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {bound_s} s: {what}")
        time.sleep(0.02)


class Job:
    """`with Job("all_reduce --np 3 ...", NCCL_DEBUG="INFO") as job:`; pids are there once the ranks run."""

    def __init__(self, words, **env):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "KOLO_"))}
        self.lines = []
        self.process = subprocess.Popen([tool.KOLO, "perf", *words.split()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, env={**clean, "HOME": "/nonexistent", **env})
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.stopped = set()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def find(self, pattern):
        return next((m for m in (re.search(pattern, line) for line in list(self.lines)) if m), None)

    def await_line(self, pattern):
        return until(lambda: self.find(pattern), f"a line \"{pattern}\" in:\n" + "\n".join(self.lines[-30:]))

    def pid(self, rank):
        return int(self.await_line(rf"#  Rank +{rank} .* Pid +(\d+)")[1])

    def kill(self, rank, number):
        pid = self.pid(rank)
        os.kill(pid, number)
        if number == signal.SIGSTOP:
            self.stopped.add(pid)

    def end(self):
        """Wait for the end that comes by itself; its exit code."""
        code = self.process.wait(timeout=BOUND_S)
        self.reader.join()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.stopped:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
