# SPDX-License-Identifier: Apache-2.0
"""The index of the messages with which calls fail, from the sources: each with its result, and its values as blanks."""
import pathlib

import ctext

PARTS = {
    "api": "Calls of nccl.h and kolo.h", "comm": "Communicators", "rma": "One-sided operations", "tagged": "Messages with tags", "coll": "Operations", "channel": "Connections of operations",
    "transport": "Transports", "net": "Networks", "proxy": "The proxy", "bootstrap": "Joining a job", "device": "Devices, streams, memory", "event": "The event loop",
    "os": "The operating system", "base": "Settings, files, logs", "topo": "Machines and topology files", "graph": "Searches and tuning", "plan": "Clusters on paper",
    "logs": "Logs and tables", "answer": "Answers", "koloplan": "Calls of koloplan.h",
}


def index(root):
    """{folder of src/: [(message, result, place)]}, by message."""
    found = {}
    for path in ctext.sources(root, "src"):
        for line, result, message in ctext.failures(path.read_text(encoding="utf-8")):
            place = path.relative_to(root)
            found.setdefault(place.parts[1], set()).add((message, result, f"{place}:{line}"))
    return {folder: sorted(found[folder]) for folder in PARTS if folder in found}


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def page(root):
    out = ["# Index of messages", "", f"The messages with which calls fail, from the sources. `{ctext.BLANK}` stands for a value: a name, a number, the text of errno. "
           "A call names itself, the rank and the phase in front of the message where that helps. [Troubleshooting](../troubleshooting.md) has the remedies of the most "
           "frequent ones.", ""]
    for folder, rows in index(pathlib.Path(root)).items():
        out += [f"## {PARTS[folder]}", "", "| message | result | place |", "|---|---|---|"]
        out += [f"| `` {cell(message)} `` | `{result}` | `{place}` |" for message, result, place in rows]
        out.append("")
    return "\n".join(out)
