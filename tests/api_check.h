/* SPDX-License-Identifier: Apache-2.0 */
/** api_check.h - for tests of the public interface: calls that must succeed, and calls that must be refused with a
 * text. */
#ifndef KOLO_API_CHECK_H
#define KOLO_API_CHECK_H

#include "include/kolo.h"
#include "tests/kolo_test.h"

#include <sched.h>
#include <stdio.h>

#define ok(call) expect_success((call), #call, __FILE__, __LINE__)

/* On stderr as well: cmocka keeps the output of a child of the test, or of a thread. */
static inline void expect_success(ncclResult_t rc, const char *call, const char *file, int line)
{
    if (rc == ncclSuccess) return;
    fprintf(stderr, "%s:%d: %s: %s: %s\n", file, line, call, ncclGetErrorString(rc), ncclGetLastError(NULL));
    _assert_int_equal((uintmax_t)rc, ncclSuccess, file, line);
}

static inline void expect_refused(ncclResult_t rc, ncclResult_t want, const char *words)
{
    assert_int_equal(rc, want);
    if (!strstr(ncclGetLastError(NULL), words)) fail_msg("\"%s\" does not say \"%s\"", ncclGetLastError(NULL), words);
}

/* The state of a communicator that is not blocking, when nothing is in progress any more. */
static inline ncclResult_t await(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;

    while (state == ncclInProgress) {
        ok(ncclCommGetAsyncError(comm, &state));
        sched_yield();
    }
    return state;
}

#endif
