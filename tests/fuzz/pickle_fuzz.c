/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a pickle: they are refused, or a value of bounded depth, which can be printed unless it repeats itself without end. */
#include "base/error.h"
#include "logs/record/pickle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int depth_of(const json_t *value, int most)
{
    const json_t *last = json_is_array(value) ? json_array_get(value, json_array_size(value) - 1) : NULL;

    return most && last ? 1 + depth_of(last, most - 1) : 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *copy = malloc(bytes ? bytes : 1); /* no more: nothing behind it may be read */
    json_t *value = NULL;

    kl_error_quiet(1);
    if (!copy) abort();
    if (bytes) memcpy(copy, data, bytes);
    const ncclResult_t rc = kl_pickle_read("fuzz", copy, bytes, &value);

    if (!rc != (value != NULL)) abort();
    if (rc && strncmp(kl_error_text(), "fuzz: offset ", 13)) abort();
    if (value && depth_of(value, 2 * KL_PICKLE_DEPTH) > KL_PICKLE_DEPTH + 1) abort(); /* leaves do not count */
    json_decref(value);
    free(copy);
    return 0;
}
