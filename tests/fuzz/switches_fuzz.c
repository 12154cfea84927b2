/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a tree of switches: reading it must be safe, and every host of a tree has a place. */
#include "base/error.h"
#include "plan/switches.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct kl_switches s;

    kl_error_quiet(1);
    if (!kl_switches_read("fuzz", (const char *)data, bytes, &s))
        for (int i = 0; i < s.nhosts; i++)
            if (s.by_place[i] < 0 || s.by_place[i] >= s.nhosts || s.host[i].pod >= s.npods) abort();
    kl_switches_fini(&s);
    return 0;
}
