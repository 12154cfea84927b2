/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a table of nccl-tests, text or JSON: reading and judging must be safe, and keep the contract of
 * bench.h. */
#include "api/param_sets.h"
#include "base/error.h"
#include "logs/bench_file.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(const struct kl_bench *b)
{
    int rows = 0;

    for (int i = 0; i < b->ntable; i++) {
        if (b->table[i].n < 1 || b->table[i].first + b->table[i].n > b->nrow) abort();
        rows += b->table[i].n;
    }
    if (rows != b->nrow) abort();
    for (int i = 0; i < b->nrow; i++)
        if (b->row[i].size < 1) abort();
    for (int i = 0; i < b->nfinding; i++) {
        char text[1024];
        struct kl_text t = kl_text_in(text, sizeof text);

        if (b->finding[i].table < -1 || b->finding[i].table >= b->ntable) abort();
        kl_bench_finding_text(&b->finding[i], &t);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct kl_cluster_request none = {.edits = {.params = &kl_param_registry}};
    struct kl_bench b;

    kl_error_quiet(1);
    kl_bench_init(&b);
    if (!kl_bench_add_any(&b, "fuzz", (const char *)data, bytes)) {
        b.log.nsystem = 0; /* machines are log_fuzz's */
        if (!kl_bench_finish(&b, &none)) check(&b);
    }
    kl_bench_fini(&b);
    return 0;
}
