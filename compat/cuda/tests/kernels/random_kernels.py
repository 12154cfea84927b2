#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random_kernels.py SEED [KERNELS] - print a CUDA program with random kernels, and a hash of the results of each.

The kernels are right by CUDA's rules: all threads of a block meet each barrier alike, and all lanes of a warp each shuffle. Their functions,
methods and templates return early, on conditions that are the same for all threads where a barrier follows.
"""
import random
import sys

CLASSES = """
struct Op%(n)d {
    unsigned k;
    __host__ __device__ unsigned operator()(unsigned a, unsigned b) const { return %(op)s; }
};
"""


class Program:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.text = []
        self.functions = []  # name
        self.methods = []
        self.number = 0

    def fresh(self, prefix):
        self.number += 1
        return f"{prefix}{self.number}"

    # ---- expressions ----

    def value(self, v):
        """An expression of each thread."""
        r = self.r
        a, b = r.choice(v), r.choice(v)
        c = r.randrange(1, 30)
        return r.choice([f"{a} * {c}u + {b}", f"({a} ^ ({b} >> {c % 7}))", f"{a} + t * {c}u", f"({a} & 1u ? {b} : {a} + {c}u)",
                         f"in[({a} + {c}u) % 512u]", f"{a} - u"])

    def alike(self):
        """A condition that is the same in all threads of the block."""
        r = self.r
        c = r.randrange(4)
        return r.choice([f"u % 4u == {c}u", f"u % LIMIT == {c}u", f"u > {c}u", f"(blockIdx.x + u) & 1u", f"in[blockIdx.x] % 3u == {c % 3}u"])

    def own(self, v):
        return f"({self.r.choice(v)} >> {self.r.randrange(5)}) & 1u"

    # ---- statements ----

    def exchange(self, v, room):
        a = self.r.choice(v)
        return f"{room}[t] = {self.value(v)}; __syncthreads(); {a} += {room}[(t + {self.r.randrange(1, 40)}u) % blockDim.x]; __syncthreads();"

    def shuffle(self, v):
        a = self.r.choice(v)
        kind = self.r.choice(["__shfl_xor_sync", "__shfl_down_sync", "__shfl_up_sync"])
        return f"{a} += {kind}(0xffffffffu, {self.value(v)}, {self.r.choice([1, 2, 4, 8, 16, 5])});"

    def call(self, v, room):
        a = self.r.choice(v)
        calls = [f"{a} = {f}({self.value(v)}, u, {room});" for f in self.functions[-4:]]
        for name, kind in self.methods[-3:]:
            if kind == "static":
                calls.append(f"{a} += {name}<unsigned, {self.r.randrange(1, 5)}>::apart({self.value(v)}, {room});")
            else:
                o = self.fresh("o")
                calls.append(f"{name}<unsigned, {self.r.randrange(1, 5)}> {o}({room}, u); {a} = {o}.step({self.value(v)}, u); "
                             f"{self.r.choice(v)} ^= {o}.get(); {self.r.choice(v)} += {o}.step({a}, u + 1u);")
                calls.append(f"{a} += {name}<unsigned, 3>({room}, u + 1u).step({self.value(v)}, u);")
        return self.r.choice(calls) if calls else self.exchange(v, room)

    def leaf(self, v):
        a, b = self.r.choice(v), self.r.choice(v)
        i = self.fresh("i")
        c = self.r.randrange(40)
        return self.r.choice([
            f"if (t == {c}u) {a} += {self.value(v)}; {b} ^= {a};",
            f"const int {i} = blockIdx.x * blockDim.x + t; {a} += in[{i} % 512] * 3u; if (threadIdx.x == {c}) {b} += {i}; {a} ^= {b} >> 3;",
            f"size_t {i} = {c}u + threadIdx.x + u * blockDim.x; unsigned {i}b = {a}; if (t == LIMIT) {a} = in[{i} % 512u]; {a} += {i}b + in[{i} % 64u];",
            f"{a} = {self.value(v)};",
            f"if ({self.own(v)}) {a} += {self.value(v)}; else {a} ^= {self.value(v)};",
            f"for (unsigned {i} = 0; {i} < 5u; {i}++) {{ {a} += {i} * {self.value(v)}; if ({self.own(v)}) break; }}",
            f"{a} = op(a0, {self.value(v)});" if "a0" in v else f"{a} = {self.value(v)};",
        ])

    def statement(self, v, room, depth, loops=0):
        r = self.r
        pick = r.randrange(11)
        if pick < 3:
            return self.leaf(v)
        if pick < 5:
            return self.exchange(v, room)
        if pick < 7:
            return self.shuffle(v)
        if pick < 8:
            return self.call(v, room)
        if depth > 2:
            return self.leaf(v)
        if pick < 10:
            other = f" else {{ {self.block(v, room, depth + 1)} }}" if r.randrange(2) else ""
            return f"if ({self.alike()}) {{ {self.block(v, room, depth + 1)} }}{other}"
        i = self.fresh("i")
        end = f" if ({self.alike()}) break;" if r.randrange(3) == 0 else ""
        return f"for (unsigned {i} = 0; {i} < {r.choice(['u % 3u', '2u'])}; {i}++) {{ {self.block(v, room, depth + 1)}{end} }}"

    def block(self, v, room, depth):
        return " ".join(self.statement(v, room, depth) for _ in range(self.r.randrange(1, 4)))

    # ---- functions ----

    def leaving(self, v, room, depth):
        """Statements, some of which return. After a return of some threads only there is no barrier: it ends the function."""
        r = self.r
        text = []
        for _ in range(r.randrange(1, 4)):
            text.append(self.statement(v, room, 2))
            pick = r.randrange(5)
            if pick == 0:
                text.append(f"if ({self.alike()}) return {self.value(v)};")
            elif pick == 1:
                text.append(f"if ({self.alike()}) {{ {self.statement(v, room, 2)} return {self.value(v)}; }} else {{ {self.statement(v, room, 2)} }}")
            elif pick == 2 and depth < 2:
                text.append(f"if ({self.alike()}) {{ {self.leaving(v, room, depth + 1)} }}")
            elif pick == 3:
                i = self.fresh("i")
                text.append(f"for (unsigned {i} = 0; {i} < u % 4u; {i}++) {{ {self.statement(v, room, 2)} "
                            f"if (({i} + {self.r.randrange(3)}u) * u % 5u == 2u) return {self.value(v)} + {i}; {self.exchange(v, room)} }}")
        return " ".join(text)

    def ending(self, v):
        r = self.r
        i = self.fresh("i")
        return r.choice([
            f"return {self.value(v)};",
            f"if ({self.own(v)}) return {self.value(v)}; return {self.value(v)};",
            f"for (unsigned {i} = 0; {i} < 6u; {i}++) {{ if ({self.own(v)}) return {self.value(v)} + {i}; {r.choice(v)} += {i}; }} return {self.value(v)};",
            f"if ({self.own(v)}) {{ if ({self.own(v)}) return {self.value(v)}; {r.choice(v)} ^= 5u; }} return {self.value(v)};",
        ])

    def function(self):
        name = self.fresh("function")
        v = ["v", "w"]
        self.text.append(f"__device__ unsigned {name}(unsigned v, unsigned u, unsigned *room)\n{{\n"
                         f"    const unsigned t = threadIdx.x; unsigned w = v * 3u + t;\n"
                         f"    {self.leaving(v, 'room', 0)}\n    {self.ending(v)}\n}}\n")
        self.functions.append(name)

    def method(self):
        name = self.fresh("Class")
        v = ["v", "w"]
        self.text.append(f"template <class T, int N> class {name} {{\n    T *room, base; T count;\n    static constexpr unsigned STEPS = N + 1;\n"
                         f"  public:\n    __device__ {name}(T *r, T n) : room(r), base(n), count(0) {{}}\n    __device__ T get() const {{ return count; }}\n"
                         f"    __device__ T step(T v, T u)\n    {{\n        const unsigned t = threadIdx.x; T w = v + STEPS + base; count += N;\n"
                         f"        {self.leaving(v, 'room', 1)}\n        count++;\n        {self.ending(v)}\n    }}\n"
                         f"    static __device__ T apart(T v, T *s) {{ s[threadIdx.x] = v * N; __syncthreads(); T r = s[blockDim.x - 1 - threadIdx.x]; "
                         f"__syncthreads(); return r + STEPS; }}\n}};\n")
        self.methods.append((name, "object"))
        self.methods.append((name, "static"))

    def kernel(self, n):
        op = self.r.choice(["a * 3u + b * k", "a > b ? a - k : b", "(a ^ b) + k"])
        v = ["a0", "a1", "a2"]
        self.text.append(CLASSES % {"n": n, "op": op})
        body = "\n    ".join(self.statement(v, "room", 0) for _ in range(self.r.randrange(4, 8)))
        early = f"if (t >= p.n) return;\n    " if self.r.randrange(4) == 0 else ""
        self.text.append(f"template <class F> __global__ void kernel{n}(Parameters p, F op)\n{{\n    __shared__ unsigned room[256];\n"
                         f"    const unsigned t = threadIdx.x, u = p.u;\n"
                         f"    unsigned a0 = p.in[t] + p.u, a1 = t * 7u, a2 = in[blockIdx.x + t];\n    room[t] = 0; __syncthreads();\n    {early if not any(word in body for word in ('sync(', 'function', 'Class')) else ''}"
                         f"{body}\n    p.out[blockIdx.x * blockDim.x + t] = a0 + a1 * 5u + a2 * 11u;\n}}\n")


def main():
    p = Program(int(sys.argv[1]))
    kernels = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    p.text.append('#include "check.h"\n\nstruct Parameters {\n    unsigned *in, *out;\n    unsigned u, n;\n};\n\nenum : unsigned { LIMIT = 3, OTHER };\n__constant__ unsigned in[1024];\n')
    for n in range(kernels):
        p.function()
        if n % 2 == 0:
            p.method()
        p.kernel(n)
    calls = "\n".join(f"    for (unsigned u = 0; u < 6; u++) for (int threads : {{64, 96, 256, 40}}) {{\n"
                      f"        kernel{n}<<<3, threads>>>(Parameters{{data, out, u, 50}}, Op{n}{{u + 1}}); tell({n}, u, threads, out);\n    }}"
                      for n in range(kernels))
    p.text.append(f"""
static void tell(int kernel, unsigned u, int threads, unsigned *out)
{{
    unsigned hash = 0;

    DONE();
    for (int i = 0; i < 3 * threads; i++) hash = hash * 31 + out[i];
    std::printf("kernel%d %u %d %08x\\n", kernel, u, threads, hash);
}}

int main()
{{
    unsigned *data = managed<unsigned>(1024), *out = managed<unsigned>(1024);

    for (unsigned i = 0; i < 1024; i++) data[i] = i * 2654435761u >> 16;
    CUDA(cudaMemcpyToSymbol(in, data, sizeof in));
{calls}
    return 0;
}}""")
    print("\n".join(p.text))


main()
