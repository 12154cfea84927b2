/* SPDX-License-Identifier: Apache-2.0 */
/** api_check.h - for tests of the public interface: calls that must work, and calls that must be refused in words. */
#ifndef KOLO_API_CHECK_H
#define KOLO_API_CHECK_H

#include "include/kolo.h"
#include "tests/kolo_test.h"

#include <sched.h>

#define ok(call) assert_int_equal((call), ncclSuccess)

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
