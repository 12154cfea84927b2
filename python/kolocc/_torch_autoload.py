# SPDX-License-Identifier: Apache-2.0
"""Called at `import torch` (entry point of the group torch.backends; TORCH_DEVICE_BACKEND_AUTOLOAD=0 turns it off): "kolo" is then a backend of its own accord."""

from __future__ import annotations

import warnings


def register() -> None:
    """Register the backend. A failure is a warning: it must not break `import torch`."""
    try:
        from . import torch as backend

        backend.register()
    except Exception as error:
        warnings.warn(f"kolocc: the backend \"kolo\" is not registered: {error}", stacklevel=2)
