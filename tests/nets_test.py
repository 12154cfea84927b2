# SPDX-License-Identifier: Apache-2.0
"""The conformance of nets, with communicators: over each net, every collective between two and three emulated hosts has the same, right
result, and all data went over that net. Rows: sockets, RDMA over the stand-in of compat/verbs, and the example plugin, a net over sockets,
by each version of the ABI. `./dev rdma` does the same over Soft-RoCE; src/net/test_conformance.h has the behaviour of single connections."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, "tests")
import tool  # noqa: E402

BUILD = os.environ["KOLO_BUILD"]
COLLECTIVES = "all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather scatter sendrecv hypercube barrier".split()
PLACES = {2: "--np 2 --hosts 2 -b 40 -e 300K -f 87", 3: "--np 3 --hosts 3 -b 600K -e 600K"}
NETS = {
    "Socket": {"NCCL_NET": "Socket"},
    "IB": {"NCCL_IBVERBS_LIB": BUILD + "/lib/kolo/verbs/libibverbs.so.1"},
    **{f"ExampleTCP v{version}": {"NCCL_NET_PLUGIN": f"{BUILD}/plugins/libnccl-net-example{version}.so"} for version in tool.ends(range(6, 13))},
}


def run(collective, place, settings):
    """Its exit code and output, and the log of all ranks."""
    with tempfile.TemporaryDirectory() as logs:
        p = tool.run("perf", collective, *place.split(), "-n", "1", "-w", "0", NCCL_DEBUG="INFO", NCCL_DEBUG_FILE=logs + "/%h.%p", **settings)
        return p, "".join(f.read_text(encoding="utf-8") for f in pathlib.Path(logs).iterdir())


class Nets(tool.Case):
    def check(self, net, collective, place):
        p, log = run(collective, place, NETS[net])
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn("Out of bounds values : 0 OK", p.stdout)
        name = net.split(" ", maxsplit=1)[0]
        self.assertIn(f"via NET/{name}/0", log)
        for other in {n.split(" ", maxsplit=1)[0] for n in NETS} - {name}:
            self.assertNotIn(f"via NET/{other}/", log)

    def test_every_collective_over_every_net(self):
        for net in NETS:
            for collective in COLLECTIVES:
                for hosts, place in PLACES.items():
                    if collective == "hypercube" and hosts == 3:
                        continue  # of 2^k ranks
                    with self.subTest(net=net, collective=collective, hosts=hosts):
                        self.check(net, collective, place)


if __name__ == "__main__":
    tool.main()
