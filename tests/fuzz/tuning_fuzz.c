/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of measured times: reading it must be safe, and the result must keep the contract of
   tuning_measured.h. Texts that lack only a valid checksum get one, or nothing would be read. */
#include "base/hash.h"
#include "graph/tuning_measured.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) abort();                                                                                          \
    } while (0)

static const char machine[] = "fuzz, 2 CPUs";

static void check_promises(const struct kl_tuning_measured *m)
{
    static const int64_t sizes[] = {0, 1, 8, 9, 511, 1 << 20, 8 << 20, INT64_C(1) << 40};

    for (int f = 0; f < KL_FUNCS; f++)
        for (int a = 0; a < KL_ALGOS; a++)
            for (int n = 2; n <= 64; n *= 2) {
                float before = 0;
                for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                    float us = kl_tuning_measured_us(m, f, a, n, sizes[s]);
                    CHECK(isfinite(us) && us >= 0);
                    if (n <= 8) CHECK(us >= before);
                    before = us;
                }
            }
}

static void check_round_trip(const struct kl_tuning_measured *m)
{
    char text[KL_MEASURED_TEXT];
    struct kl_tuning_measured again;
    const char *why;
    size_t bytes = kl_tuning_measured_print(m, machine, text, sizeof text);

    CHECK(bytes);
    CHECK(!kl_tuning_measured_parse(text, bytes, machine, &again, &why));
    CHECK(kl_tuning_measured_mark(m) == kl_tuning_measured_mark(&again));
}

static void look_at(const char *text, size_t bytes)
{
    struct kl_tuning_measured m;
    const char *why;

    if (kl_tuning_measured_parse(text, bytes, machine, &m, &why)) {
        CHECK(why);
        return;
    }
    check_promises(&m);
    check_round_trip(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[KL_MEASURED_TEXT + 64];

    look_at((const char *)data, size);
    if (size >= KL_MEASURED_TEXT) return 0;
    memcpy(text, data, size);
    uint64_t sum = kl_hash_add(KL_HASH_START, text, size);
    int end = snprintf(text + size, 32, "end %016llx\n", (unsigned long long)sum);
    look_at(text, size + (size_t)end);
    return 0;
}
