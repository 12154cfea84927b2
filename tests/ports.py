#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ports that are free here, and that the kernel does not give out by itself: those are 32768 and more, unless configured otherwise.

A test that asks the kernel for a free port, and closes it, may lose it before it is used: every connection takes one of those.
As a program it prints one.
"""
import random
import socket

LOWEST, HIGHEST = 20000, 32000


def is_free(port):
    with socket.socket() as s:
        try:
            s.bind(("", port))
        except OSError:
            return False
    return True


def free_port(count=1):
    """The first of `count` free ports in a row."""
    while True:
        port = random.randint(LOWEST, HIGHEST)
        if all(is_free(port + i) for i in range(count)):
            return port


if __name__ == "__main__":
    print(free_port())
