# SPDX-License-Identifier: Apache-2.0
"""Every example of docs/python.md runs."""
from __future__ import annotations

import re

import pytest

pytest.importorskip("numpy")
with open("docs/python.md", encoding="utf-8") as file:
    EXAMPLES = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example(example):
    exec(compile(example, "docs/python.md", "exec"), {"__name__": "example"})


def test_there_are_examples():
    assert len(EXAMPLES) >= 8
