/* SPDX-License-Identifier: Apache-2.0 */
/** test_loop.h - for the tests of this folder: a test that holds the event loop, and must leave no more descriptors open. */
#ifndef KL_BOOTSTRAP_TEST_LOOP_H
#define KL_BOOTSTRAP_TEST_LOOP_H

#include "bootstrap/test_jobs.h"

static struct kl_loop *loop;

static inline int hold_loop(void **state)
{
    note_fds(state);
    return kl_loop_ref(&loop) != ncclSuccess;
}

static inline int drop_loop(void **state)
{
    kl_loop_unref(loop);
    return expect_no_more_fds(state);
}

#endif
