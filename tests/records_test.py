#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`kolo graph --json` agrees with the recorded results of NCCL's own code in tests/data/golden/, key by key, and refuses the same
inputs. The records of others are compared by golden_test.sh."""
import glob
import json
import os
import re

import tool

REAL = {"bw", "lat", "latency", "time_us", "max_bw", "total_bw", "bwIntra", "bwInter", "latencyInter"}
INPUT = {"reference", "env", "defaults_applied", "rings_consistent"}  # of a record: keys that are not answers of the tool


def same_number(key, want, got):
    return abs(want - got) <= (1e-3 * abs(want) if key in REAL else 0)


def difference(key, want, got, where):
    """Where two values differ first, None where they agree. Keys that only Kolo prints are welcome."""
    if isinstance(want, dict) and isinstance(got, dict):
        found = (difference(k, want[k], got.get(k), f"{where}.{k}") for k in want)
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        found = (difference(key, w, g, f"{where}[{i}]") for i, (w, g) in enumerate(zip(want, got)))
    elif isinstance(want, (int, float)) and isinstance(got, (int, float)):
        found = [None if same_number(key, want, got) else f"{where}: {got}, recorded {want}"]
    else:
        found = [None if want == got else f"{where}: {got!r}, recorded {want!r}"]
    return next(filter(None, found), None)


class Records(tool.Case):
    words = ("graph",)

    def record(self, file):
        with open(file, encoding="utf-8") as f:
            r = json.load(f)
        topology = f"{tool.DATA}/{r.pop('topology')}"
        env = {k: f"{tool.DATA}/{v}" if k.endswith("_FILE") else str(v) for k, v in r.get("env", {}).items()}
        return r, topology, ("--topo", topology, "--hosts", str(r["hosts"]), "--nccl", self.release(r)), env

    def release(self, record):
        return re.search(r"NCCL (\d+\.\d+\.\d+)", record["reference"]).group(1)

    def test_every_record(self):
        agreed = 0
        for file in sorted(glob.glob("tests/data/golden/*.json")):
            with self.subTest(os.path.basename(file)):
                r, topology, args, env = self.record(file)
                if "error" in r:
                    self.refused(1, f"^{topology}:[0-9]+: ", *args, **env)
                    continue
                got = self.json(*args, **env)
                found = (difference(k, r[k], got.get(k), k) for k in r if k not in INPUT)
                self.assertIsNone(next(filter(None, found), None))
                agreed += 1
        self.assertGreater(agreed, 100)


if __name__ == "__main__":
    tool.main()
