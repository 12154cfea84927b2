# SPDX-License-Identifier: Apache-2.0
"""The releases of NCCL that Kolo follows, and which of them stands for another one."""

FOLLOWED = ("2.26.3", "2.26.6", "2.27.3", "2.27.5", "2.27.6", "2.27.7", "2.28.3", "2.28.7", "2.28.9", "2.29.2", "2.29.3", "2.29.7",
            "2.30.3", "2.30.4", "2.30.7", "2.31.2", "2.32.3")
THEN = "2.30.7"  # the newest release when bandwidths were published whose own is not known


def numbers(release):
    return tuple(map(int, release.split(".")))


def followed(release):
    """The release whose rules stand for this one: the newest that is not newer, else the oldest."""
    if not release:
        return THEN
    return max((r for r in FOLLOWED if numbers(r) <= numbers(release)), key=numbers, default=FOLLOWED[0])
