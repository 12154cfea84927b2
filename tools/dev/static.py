#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that functions and variables are used, and not global without need.

usage: static.py BUILD      look at the objects of a build tree; one line per finding, exit 1 if there is one

Every name that a file of src/ or tools/kolo/ defines with external linkage must be used by another of these files: a name
that only its own file uses should be static, an unused one should go. Tests and benchmarks don't count as users, except of
the names in FOR_TESTS, which a test needs and the library does not. symbols.py checks the public functions.
"""
import collections
import pathlib
import re
import sys

import objects

FOR_TESTS = {
    "kl_bootstrap_id_format": "an id that travels as text",
    "kl_conf_parse": "a file's text without the file",
    "kl_connections_count": "how many connectors a first use makes",
    "kl_cpu_use_parse": "a text of /proc/stat without the file",
    "kl_expected_constant": "the terms of an expected time, one by one",
    "kl_idle_longest_ns": "sleeps so long that a missing wake-up hangs",
    "kl_loop_inside": "whether a callback runs where it should",
    "kl_netif_list": "an address of this host",
    "kl_netif_select": "a host with other interfaces than this one",
    "kl_nics_seen_fini": "memory of a test",
    "kl_order_add": "sums that are equal",
    "kl_order_wires_init": "rings and trees of a record, without a plan",
    "kl_order_wires_set_ring": "the same",
    "kl_pattern_at": "each row of the table of messages",
    "kl_patterns": "the same",
    "kl_settings_open": "another environment than the process's",
    "kl_settings_close": "the same",
    "kl_verbs_record_parse": "a record without its proof",
    "kl_smi_check": "a text without the file",
    "kl_smi_init": "texts without the files",
    "kl_smi_parse": "the same",
}
PUBLIC = re.compile(r"main$|p?nccl[A-Z]|kolo(plan)?[A-Z]|kolo_cuda_image$") # the last one: found by dlsym
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def used_at_home(text, name):
    """Does a source use a name that it defines?"""
    return len(re.findall(rf"\b{name}\b", COMMENT.sub(" ", text))) > 1


def finding(text, name, others):
    """The finding about a name that no other file of Kolo uses, but `others` do."""
    at_home = used_at_home(text, name)
    if others:
        return f"{name} is used by {', '.join(sorted(others))} only" + ("; its file uses it, too" if at_home else "")
    return f"{name} should be static" if at_home else f"nobody uses {name}"


def faults(symbols, text_of, for_tests):
    """Findings, as sentences. `text_of` gives a source's text."""
    users, listed = collections.defaultdict(set), set(for_tests)
    for source, known in symbols.items():
        for name in known.uses:
            users[name].add(source)
    for source in sorted(filter(objects.is_product, symbols)):
        for name in sorted(symbols[source].defines):
            if PUBLIC.match(name) or any(map(objects.is_product, users[name])):
                continue
            if name in listed and users[name]:
                listed.remove(name)
            else:
                yield f"{source.removeprefix('src/')}: {finding(text_of(source), name, users[name])}"
    for name in sorted(listed):
        known = any(name in known.defines for known in symbols.values())
        yield "tools/dev/static.py: " + (f"{name} is used, and need not be listed" if known else f"there is no {name}")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    symbols = objects.read(pathlib.Path(sys.argv[1]))
    found = list(faults(symbols, lambda source: (objects.ROOT / source).read_text(encoding="utf-8"), FOR_TESTS))
    print("\n".join(found) if found else "everything with external linkage is used by another file")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
