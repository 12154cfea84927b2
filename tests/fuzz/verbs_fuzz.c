/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a record of the RDMA net: one that is accepted has sensible parameters, and is the same when it is written and read again. */
#include "net/verbs/record.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) abort();                                                                                          \
    } while (0)

static const struct kl_key key = {{1, 2, 3}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char body[KL_VERBS_RECORD_BODY] = {0}, wire[KL_VERBS_RECORD];
    struct kl_verbs_record r, again;

    memcpy(body, data, size < sizeof body ? size : sizeof body);
    if (!kl_verbs_record_parse(body, &r)) return 0;
    if (r.type == KL_VERBS_PARAMS) CHECK(r.params.qps >= 1 && r.params.qps <= KL_VERBS_QPS_MAX && r.params.max_message);
    CHECK(memchr(r.reason, 0, sizeof r.reason) && memchr(r.params.device, 0, sizeof r.params.device));
    kl_verbs_record_encode(&r, &key, KL_CALLER, 7, wire);
    CHECK(kl_verbs_record_decode(wire, &key, KL_CALLER, 7, &again));
    CHECK(again.type == r.type && again.sent == r.sent && again.posted == r.posted);
    return 0;
}
