#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MkDocs builds the manual without a warning, where it is installed: by `./dev docs` in build/docs-tools, or on the system."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    own = os.path.join(ROOT, "build/docs-tools/bin/mkdocs")
    mkdocs = own if os.path.exists(own) else shutil.which("mkdocs")
    if not mkdocs:
        print("skipped: MkDocs is not installed; ./dev docs does that", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory(prefix="kolo-site.") as folder:
        for command in ([sys.executable, f"{ROOT}/tools/site/stage.py", f"{folder}/site"], [mkdocs, "build", "--strict", "-q", "-f", f"{folder}/site/mkdocs.yml"]):
            p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
            if p.returncode:
                print(p.stdout)
                return 1
        for page in ("index", "tour", "guide/nccl-guide", "reference/nccl", "reference/kolocc", "reference/messages"):
            if not os.path.exists(f"{folder}/docs/{page}.html"):
                print(f"there is no {page}.html")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
