# SPDX-License-Identifier: Apache-2.0
"""metadata.py - the folder NAME-VERSION.dist-info of an installation without pip, out of pyproject.toml.

    metadata.py PYPROJECT FOLDER     writes FOLDER/METADATA and FOLDER/entry_points.txt

By it importlib.metadata finds the version, and PyTorch the entry point that registers the backend.
"""

import pathlib
import sys
import tomllib


def entry_points(project):
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    return "\n".join(f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in rows.items()) for group, rows in groups.items())


def metadata(project):
    return (f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\nSummary: {project['description']}\n"
            f"Requires-Python: {project['requires-python']}\n")


def main():
    source, folder = map(pathlib.Path, sys.argv[1:])
    project = tomllib.loads(source.read_text())["project"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text(metadata(project))
    (folder / "entry_points.txt").write_text(entry_points(project))


main()
