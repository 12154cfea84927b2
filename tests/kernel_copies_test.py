# SPDX-License-Identifier: Apache-2.0
"""Large messages and collectives between processes, staged, copied by the kernel, and now one, now the other: every element is right. Where
the kernel does not allow it, they are staged, and this is tested all the same."""
import sys

import matrix
import tool

COLLECTIVES = ("sendrecv", "alltoall", "alltoallv", "gather", "scatter", "allreduce", "allgather", "reducescatter", "broadcast", "reduce")
RANKS = (2, 5)
# AUTO tries both within the first 48 uses.
WORDS = {"NEVER": "-n 2", "ALWAYS": "-n 2", "AUTO": "-n 50"}
SIZES = "-b 300000 -e 8M -f 5 -w 0 -R 0"


def main():
    judge = matrix.Judge()
    for collective in COLLECTIVES:
        for ranks in RANKS:
            for copies, words in WORDS.items():
                all_words = f"--np {ranks} {SIZES} {words}".split()
                out = tool.run("perf", collective, *all_words, KOLO_KERNEL_COPIES=copies)
                label = f"KOLO_KERNEL_COPIES={copies} kolo perf {collective} {' '.join(all_words)}"
                judge.note(label, judge.fault(out, "", collective, None))
    return judge.report(len(COLLECTIVES))


if __name__ == "__main__":
    sys.exit(main())
