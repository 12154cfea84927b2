/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/env.h"

#include <errno.h>
#include <stdlib.h>

static const char *text_of(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

static long number_of(const char *name, long least, long most, long otherwise)
{
    const char *text = text_of(name);
    char *end;

    if (!text) return otherwise;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || *end || value < least || value > most ? otherwise : value;
}

struct kl_bootstrap_env kl_bootstrap_env(void)
{
    return (struct kl_bootstrap_env){
        .comm_id = text_of("NCCL_COMM_ID"),
        .secret = text_of("KOLO_SECRET"),
        .ifname = text_of("NCCL_SOCKET_IFNAME"),
        .family = text_of("NCCL_SOCKET_FAMILY"),
        .retry = {.count = (int)number_of("NCCL_SOCKET_RETRY_CNT", 0, 1000000, 34),
                  .sleep_ms = (int)number_of("NCCL_SOCKET_RETRY_SLEEP_MSEC", 1, 60000, 100)},
        .timeout_ms = (uint64_t)number_of("KOLO_BOOTSTRAP_TIMEOUT", 1, 1000000, 60) * 1000,
    };
}
