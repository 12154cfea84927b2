# SPDX-License-Identifier: Apache-2.0
"""The exceptions: one class for each kind of failure, with the library's sentence."""

from __future__ import annotations


class KoloError(Exception):
    """A failure of the library.

    result: the number of NCCL's ncclResult_t. message: the library's sentence. rank: of the communicator, -1 if none is concerned.
    """

    def __init__(self, result: int, message: str, rank: int = -1) -> None:
        super().__init__(message)
        self.result = result
        self.message = message
        self.rank = rank

    def __reduce__(self) -> tuple[type[KoloError], tuple[int, str, int]]:
        return type(self), (self.result, self.message, self.rank)


class SystemError_(KoloError, OSError):
    """A call of the operating system failed, or memory is short (ncclSystemError)."""

    def __str__(self) -> str:
        return self.message


class InternalError(KoloError):
    """A text is malformed, or something cannot be (ncclInternalError)."""


class InvalidArgument(KoloError, ValueError):
    """An argument is not understood (ncclInvalidArgument)."""


class InvalidUsage(KoloError):
    """The call does not fit the state, or the cluster (ncclInvalidUsage)."""


class RemoteError(KoloError, ConnectionError):
    """Another rank failed or is gone (ncclRemoteError)."""

    def __str__(self) -> str:
        return self.message


class Timeout(KoloError, TimeoutError):
    """An operation stood still for longer than its timeout (ncclRemoteError or ncclTimeout, by the library's sentence)."""

    def __str__(self) -> str:
        return self.message


_CLASSES: dict[int, type[KoloError]] = {
    2: SystemError_,
    3: InternalError,
    4: InvalidArgument,
    5: InvalidUsage,
    6: RemoteError,
    8: Timeout,
}


def make(result: int, message: str, rank: int) -> KoloError:
    """The exception of a result; not raised."""
    return _CLASSES.get(result, KoloError)(result, message, rank)
