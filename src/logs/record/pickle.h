/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pickle.h - Python's pickle format, read as plain data: numbers, texts, lists, tuples and dictionaries become JSON values.
 *
 * Nothing is executed: opcodes that load or call code, and all others that plain data do not need, are refused. Tuples become
 * arrays, numbers as keys become texts. Protocols 0 to 5.
 *
 * Bounds:  depth KL_PICKLE_DEPTH; KL_PICKLE_CONTAINERS lists and dictionaries; memory is a small multiple of the bytes.
 * Errors:  ncclInvalidUsage: "NAME: offset N: opcode X ...". ncclSystemError: memory is short.
 * Threads: pure.
 * Source:  Python's documentation of pickle and pickletools.
 */
#ifndef KL_LOGS_RECORD_PICKLE_H
#define KL_LOGS_RECORD_PICKLE_H

#include "include/nccl.h"

#include <jansson.h>
#include <stddef.h>

enum { KL_PICKLE_DEPTH = 64, KL_PICKLE_CONTAINERS = 1 << 20 };

/** The value belongs to the caller (json_decref); NULL after a failure. */
ncclResult_t kl_pickle_read(const char *name, const char *bytes, size_t n, json_t **value);

#endif
