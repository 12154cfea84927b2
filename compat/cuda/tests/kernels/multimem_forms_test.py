#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""multimem_forms_test.py - does kolo-nvcc take the forms of multimem that NVIDIA's assembler takes, and no others?

Reads KOLO_BUILD. Every combination of words is assembled for sm_100a, one instruction in a line, and translated.
"""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

REGISTERS = {"u32": "b32", "s32": "b32", "b32": "b32", "u64": "b64", "s64": "b64", "b64": "b64", "f32": "f32", "f64": "f64",
             "f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32", "e4m3": "b8", "e5m2": "b8", "e4m3x2": "b16",
             "e5m2x2": "b16", "e4m3x4": "b32", "e5m2x4": "b32"}
OPERATIONS = ("add", "min", "max", "and", "or", "xor")
VECTORS = {"": 1, ".v2": 2, ".v4": 4, ".v8": 8}


def operand(elements):
    names = ", ".join(f"t{n}" for n in range(elements))
    return f"{{{names}}}" if elements > 1 else names


def forms():
    """All instructions, with the registers that they need."""
    kinds = itertools.product(REGISTERS, VECTORS.items(), ("", ".relaxed.sys.global"))
    for kind, (vector, elements), access in kinds:
        value = operand(elements)
        yield kind, f"multimem.st{access}{vector}.{kind} [a], {value};"
        for operation, precision in itertools.product(OPERATIONS, ("", ".acc::f32", ".acc::f16")):
            yield kind, f"multimem.ld_reduce{access}.{operation}{precision}{vector}.{kind} {value}, [a];"
        for operation in OPERATIONS:
            yield kind, f"multimem.red{access}.{operation}{vector}.{kind} [a], {value};"
    for order in ("weak", "acquire", "release"):
        yield "u32", f"multimem.ld_reduce.{order}{'' if order == 'weak' else '.gpu'}.add.u32 t0, [a];"
        yield "u32", f"multimem.st.{order}{'' if order == 'weak' else '.cta'}.u32 [a], t0;"
        yield "u32", f"multimem.red.{order}{'' if order == 'weak' else '.cluster'}.add.u32 [a], t0;"


def assembled(all_forms, ptxas, folder):
    """For each form: does the assembler take it?"""
    source = pathlib.Path(folder) / "forms.ptx"
    head = [".version 9.0", ".target sm_100a", ".address_size 64", ".visible .entry k(.param .u64 p) {", ".reg .b64 a;"]
    lines = [f"{{ .reg .{REGISTERS[kind]} t<8>; {text} }}" for kind, text in all_forms]
    source.write_text("\n".join([*head, *lines, "ret;", "}"]) + "\n")
    run = subprocess.run([ptxas, "-arch=sm_100a", source, "-o", os.devnull], capture_output=True, text=True)
    bad = {int(n) - len(head) - 1 for n in re.findall(r"line (\d+); error", run.stderr)}
    return [n not in bad for n in range(len(lines))]


def translated(all_forms, folder):
    """For each form: does kolo-nvcc have a translation?"""
    source = pathlib.Path(folder) / "forms.cu"
    source.write_text("".join(
        f'__device__ void form_{n}() {{ asm volatile("{{ .reg .b64 a; .reg .{REGISTERS[kind]} t<8>; {text} }}"); }}\n'
        for n, (kind, text) in enumerate(all_forms)))
    nvcc = pathlib.Path(os.environ["KOLO_BUILD"]) / "kolo-nvcc"
    out = subprocess.run([nvcc, "--translate", source], capture_output=True, text=True, check=True).stdout
    functions = {int(n): body for n, body in re.findall(r"\bform_(\d+)\(\)(.*)", out)}
    return ["__kolo_refused" not in functions[n] for n in range(len(all_forms))]


def main():
    nvcc = pathlib.Path(os.environ.get("KOLO_NVIDIA_NVCC", "/usr/local/cuda/bin/nvcc"))
    ptxas = nvcc.parent / "ptxas"
    if not os.access(ptxas, os.X_OK):
        print(f"skipped: no {ptxas}")
        return 77
    all_forms = list(forms())
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = assembled(all_forms, ptxas, folder), translated(all_forms, folder)
    assert len(theirs) == len(ours) == len(all_forms), (len(theirs), len(ours), len(all_forms))
    wrong = 0
    for (_, text), their, our in zip(all_forms, theirs, ours):
        if their != our:
            wrong += 1
            print(f"{'taken' if our else 'refused'}, but not by ptxas: {text}" if our else f"refused, but taken by ptxas: {text}")
    print(f"{len(all_forms)} forms, {sum(theirs)} of them valid, {wrong} wrong")
    return 1 if wrong or sum(theirs) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
