#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the table of compat/cuda/include/kolo_cuda/xorwow_jumps.inc to stdout: x^(2^k) modulo the minimal polynomial of XORWOW's shifts.

The five words of a state are a vector of 160 bits, and a step is a linear map A. x^n modulo the minimal polynomial of A, with A put for x,
is A^n: 160 steps and sums of the states that they pass, instead of n steps.
"""

WORDS, BITS, POWERS = 5, 160, 131  # subsequences are 2^67 numbers long, and there are 2^64 of them
M32 = (1 << 32) - 1


def step(v):
    t = v[0] ^ v[0] >> 2
    last = (v[4] ^ v[4] << 4 ^ t ^ t << 1) & M32
    return [*v[1:], last]


def minimal_polynomial(bits):
    """Berlekamp and Massey: the shortest recurrence of a sequence of bits, as a polynomial whose bit i belongs to x^i."""
    c, b, length, since = 1, 1, 0, 1
    for n in range(len(bits)):
        d = 0
        for i in range(length + 1):
            d ^= (c >> i & 1) & bits[n - i]
        if not d:
            since += 1
            continue
        before = c
        c ^= b << since
        if 2 * length <= n:
            length, b, since = n + 1 - length, before, 1
        else:
            since += 1
    return sum((c >> i & 1) << length - i for i in range(length + 1))


def square(a, p):
    a = int(bin(a)[2:], 4)  # the square of a sum over GF(2): a zero between any two bits
    while a.bit_length() > BITS:
        a ^= p << a.bit_length() - 1 - BITS
    return a


def main():
    v, bits = [1, 2, 3, 4, 5], []
    for _ in range(4 * BITS):
        bits.append(v[0] & 1)
        v = step(v)
    p = minimal_polynomial(bits)
    assert p.bit_length() == BITS + 1
    a = 2  # x
    print("/* Written by tools/dev/xorwow_jumps.py: x^(2^k) modulo the minimal polynomial of XORWOW's shifts, k = 0, 1, ...; the lowest word first. */")
    for _ in range(POWERS):
        print("{" + ", ".join(f"0x{a >> 32 * i & M32:08x}u" for i in range(WORDS)) + "},")
        a = square(a, p)


main()
