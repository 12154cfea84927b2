/* SPDX-License-Identifier: Apache-2.0 */
/** api_comms.h - for tests of the interface with all ranks in one thread: the communicators that each test starts with.
 * Include it after `enum { RANKS = n }`. */
#ifndef KOLO_API_COMMS_H
#define KOLO_API_COMMS_H

#include "tests/api_check.h"

static ncclComm_t comms[RANKS];

/* Setup and teardown of a test. */
static inline int create_comms(void **state)
{
    (void)state;
    return ncclCommInitAll(comms, RANKS, NULL) != ncclSuccess;
}

static inline int destroy_comms(void **state)
{
    (void)state;
    for (int r = 0; r < RANKS; r++)
        if (ncclCommDestroy(comms[r])) return 1;
    return 0;
}

/* The default stream of a device. */
static inline ncclResult_t synchronize_device(int device)
{
    ok(koloSetDevice(device));
    return koloStreamSynchronize(NULL);
}

static inline void synchronize_all(void)
{
    for (int r = 0; r < RANKS; r++) ok(synchronize_device(r));
}

#endif
