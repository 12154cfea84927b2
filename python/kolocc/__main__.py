# SPDX-License-Identifier: Apache-2.0
"""`python -m kolocc ...` and the script `kolocc`: the tool kolo. `run` starts Python scripts as they are: kolocc run -n 4 script.py."""

from __future__ import annotations

import os
import sys

from ._paths import get_tool


def main() -> None:
    """Become the tool, with the arguments of this program."""
    tool, args = get_tool(), sys.argv[1:]
    if args[:1] == ["run"]:
        for i, word in enumerate(args):
            if word.endswith(".py") and "--" not in args[:i]:
                args[i:i] = ["--", sys.executable]
                break
    os.execv(tool, [tool, *args])


if __name__ == "__main__":
    main()
