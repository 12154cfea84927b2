/* SPDX-License-Identifier: Apache-2.0 */
/**
 * hang.h - how long a test waits for an event that is certain, before it reports a hang.
 *
 * Long enough for the busiest machine: no test fails because it is slow. $TEST_HANG_S is set by cmake/Kolo.cmake, below CTest's own limit.
 */
#ifndef KOLO_TEST_HANG_H
#define KOLO_TEST_HANG_H

#include <stdlib.h>

static inline unsigned kolo_test_hang_s(void)
{
    const char *text = getenv("TEST_HANG_S");

    return text ? (unsigned)strtoul(text, NULL, 10) : 900;
}

static inline unsigned kolo_test_hang_ms(void)
{
    return kolo_test_hang_s() * 1000;
}

#endif
