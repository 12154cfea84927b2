# SPDX-License-Identifier: Apache-2.0
"""`--link-rate` holds: the data that a host sends, and those that it receives from all others together, take at least their bytes at that rate, and
the output names it. Slow machines only take longer."""
import re

import tool

RATE, BYTES = 200e6, 6 << 20  # bits per second; moved by one operation
IN_BUCKETS = 1 << 20  # more than the buckets let pass at once
MISSING = "token bucket"


class Links(tool.Case):
    words = ("perf",)

    def job(self, collective, *words):
        p = self.run_tool(collective, "--netns", "--link-rate", f"{RATE / 1e6:.0f}M", "-b", str(BYTES), "-e", str(BYTES), "-n", "1", "-w",
                          "0", "-c", "0", "-a", "max", *words)
        if p.returncode and re.search(MISSING + "|not permitted|not supported", p.stderr):
            self.skipTest(p.stderr.strip())
        self.assertEqual((p.returncode, p.stderr), (0, ""), p.stdout)
        return p.stdout

    def check(self, collective, hosts, through):
        """`through`: the bytes that pass the busiest link in one direction."""
        out = self.job(collective, "--np", str(hosts), "--hosts", str(hosts))
        row = re.search(rf"^ +{BYTES} .*$", out, re.M)
        least_us = (through - IN_BUCKETS) * 8 / RATE * 1e6
        took = [float(row[0].split()[i]) for i in (5, 9)]
        self.assertGreater(min(took), least_us, out)
        return out

    def test_what_a_host_sends(self):
        out = self.check("scatter", 3, BYTES * 2 // 3)
        self.assertIn("# Emulated hosts: 3, each in a network namespace, with a link of 0.2 Gb/s in each direction\n", out)

    def test_what_a_host_receives_from_two(self):
        self.check("gather", 3, BYTES * 2 // 3)

    def test_there_and_back(self):
        self.check("sendrecv", 2, BYTES)

    def test_rates_without_links_are_refused(self):
        self.refused(2, "--link-rate is for links of network namespaces: add --netns", "all_reduce", "--hosts", "2", "--link-rate", "1G")
        self.refused(2, "is not a rate", "all_reduce", "--hosts", "2", "--netns", "--link-rate", "fast")


if __name__ == "__main__":
    tool.main()
