/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input from a client that asks about the state of the job: its lines, in pieces of any size, and records of other
 * ranks, which are reported as text and as JSON. The first byte selects the kind.
 */
#include "comm/watch/protocol.h"
#include "comm/watch/report.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) abort();                                                                                          \
    } while (0)

static void talk(const uint8_t *data, size_t size)
{
    struct kl_ras_session s = {0};
    char reply[KL_RAS_REPLY];
    size_t piece = size ? data[0] + 1u : 1;

    for (size_t taken; size; data += taken, size -= taken) {
        size_t n = size < piece ? size : piece;
        enum kl_ras_turn turn = kl_ras_hear(&s, (const char *)data, n, &taken, reply);
        CHECK(taken && taken <= n && strlen(reply) < KL_RAS_REPLY);
        CHECK(turn != KL_RAS_MORE || (taken == n && !*reply));
        CHECK(turn != KL_RAS_ANSWER || reply[strlen(reply) - 1] == '\n');
        CHECK(s.timeout_s >= 0 && s.timeout_s <= KL_RAS_TIMEOUT_MAX);
        if (turn == KL_RAS_LEAVE || turn == KL_RAS_REPORT) return;
    }
}

static const char *describe(uint64_t communicator, int rank, char who[KL_REPORT_WHO])
{
    (void)communicator;
    snprintf(who, KL_REPORT_WHO, "rank %d", rank);
    return who;
}

static int by_rank(const void *a, const void *b)
{
    const struct kl_status *x = a, *y = b;

    if (x->communicator != y->communicator) return x->communicator < y->communicator ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* As gather.c passes them: by communicator and rank, each once. */
static size_t in_order(struct kl_status *s, size_t n)
{
    size_t kept = 0;

    qsort(s, n, sizeof *s, by_rank);
    for (size_t i = 0; i < n; i++)
        if (!kept || by_rank(&s[kept - 1], &s[i])) s[kept++] = s[i];
    return kept;
}

static void report(const uint8_t *data, size_t size)
{
    struct kl_status s[8];
    struct kl_reader r = kl_reader_on(data, size);
    struct kl_gathered g = {.status = s};
    struct kl_report report = {.gathered = &g, .verbose = size & 1, .describe = describe};
    char *text;
    size_t bytes;

    while (g.n < 8 && kl_status_get(&r, &s[g.n])) g.n++;
    g.n = in_order(s, g.n);
    for (int json = 0; json < 2; json++) {
        FILE *to = open_memstream(&text, &bytes);
        CHECK(to);
        (json ? kl_report_json : kl_report_text)(&report, to);
        CHECK(!fclose(to) && strlen(text) == bytes);
        for (size_t i = 0; i < bytes; i++) CHECK(text[i] == '\n' || (unsigned char)text[i] >= 0x20);
        free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) return 0;
    (*data & 1 ? report : talk)(data + 1, size - 1);
    return 0;
}
