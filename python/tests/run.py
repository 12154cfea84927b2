#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the tests of kolocc with pytest, as CTest runs it; exit 77 with the reason where pytest is missing."""
import os
import sys


def main():
    try:
        import pytest
    except ImportError:
        print(f"kolocc: {sys.executable} has no pytest; pip install pytest")
        return 77
    sys.dont_write_bytecode = True
    return pytest.main(["-q", "-p", "no:cacheprovider", os.path.dirname(os.path.abspath(__file__)), *sys.argv[1:]])


if __name__ == "__main__":  # ranks import the main module, too
    sys.exit(main())
