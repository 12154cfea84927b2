# SPDX-License-Identifier: Apache-2.0
"""Messages with tags: their status, and the numbers for any source and any tag."""

from __future__ import annotations

import dataclasses
from typing import Final

ANY_SOURCE: Final = -1
ANY_TAG: Final = -1


@dataclasses.dataclass
class Status:
    """Of a message: source (of a send: its destination), tag, and bytes. recv(status=) fills in one that it is given."""

    source: int = ANY_SOURCE
    tag: int = ANY_TAG
    bytes: int = 0
