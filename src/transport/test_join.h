/* SPDX-License-Identifier: Apache-2.0 */
/** test_join.h - for tests: run the steps of transport.h that may return ncclInProgress to their end. */
#ifndef KL_TRANSPORT_TEST_JOIN_H
#define KL_TRANSPORT_TEST_JOIN_H

#include "base/clock.h"
#include "transport/transport.h"

#include "tests/hang.h"

#include <sched.h>

__attribute__((unused)) static ncclResult_t test_connect(struct kl_connector *c, const struct kl_connect_info *info,
                                                         struct kl_connect_reply *reply)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    ncclResult_t rc;

    while ((rc = c->transport->connect(c, info, deadline, reply)) == ncclInProgress) sched_yield();
    return rc;
}

__attribute__((unused)) static ncclResult_t test_settle(struct kl_connector *c, const struct kl_connect_reply *reply)
{
    uint64_t deadline = kl_deadline_in_ms(kolo_test_hang_ms());
    ncclResult_t rc;

    while ((rc = c->transport->settle(c, deadline, reply)) == ncclInProgress) sched_yield();
    return rc;
}

#endif
