/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a fault of a script, a line, and a status: the double of NCCL's RAS service refuses them, or writes a document. */
#include "answer/ras_nccl.h"
#include "base/error.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint8_t *stop = memchr(data, '\n', bytes);
    struct kl_ras_fault fault;
    char *line = strndup((const char *)data, stop ? (size_t)(stop - data) : bytes), *text = NULL;
    size_t printed = 0;

    kl_error_quiet(1);
    if (!line) abort();
    const int n = !kl_ras_fault_read(line, &fault);
    json_t *report = stop ? json_loadb((const char *)stop + 1, bytes - (size_t)(stop + 1 - data), 0, NULL) : NULL;
    FILE *to = open_memstream(&text, &printed);

    if (!to) abort();
    const ncclResult_t rc = kl_ras_nccl_print(report, &fault, n, 0, to);

    fclose(to);
    json_t *again = rc ? NULL : json_loads(text, 0, NULL);

    if (!rc && !again) abort();
    json_decref(again);
    json_decref(report);
    free(text);
    free(line);
    return 0;
}
