/* SPDX-License-Identifier: Apache-2.0 */
/** log_fill.c - memory of a log: lists, texts, members. */
#include "logs/log_make.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

enum { BLOCK = 1 << 16 };

struct kl_log_block {
    struct kl_log_block *next;
    size_t used, size;
    char data[];
};

const char *kl_log_keep(struct kl_log *log, const char *text, size_t bytes)
{
    struct kl_log_block *b = log->strings;

    if (!b || b->size - b->used <= bytes) {
        size_t size = bytes < BLOCK ? BLOCK : bytes + 1;

        b = malloc(sizeof *b + size);
        if (!b) {
            log->full = true;
            return "";
        }
        *b = (struct kl_log_block){.next = log->strings, .size = size};
        log->strings = b;
    }
    char *kept = b->data + b->used;

    memcpy(kept, text, bytes);
    kept[bytes] = 0;
    b->used += bytes + 1;
    return kept;
}

void *kl_log_grow(struct kl_log *log, void **list, int *n, int *max, size_t size)
{
    if (*n == *max) {
        int more = *max ? 2 * *max : 16;
        void *grown = more > KL_LOG_FACTS ? NULL : realloc(*list, (size_t)more * size);

        if (!grown) {
            log->full = true;
            return NULL;
        }
        *list = grown;
        *max = more;
    }
    void *last = (char *)*list + (size_t)(*n)++ * size;

    memset(last, 0, size);
    return last;
}

void kl_log_init(struct kl_log *log)
{
    *log = (struct kl_log){.nfile = 0};
}

void kl_log_fini(struct kl_log *log)
{
    void *lists[] = {log->file,   log->origin, log->member,   log->comm,    log->setting, log->version,
                     log->graph,  log->ring,   log->hop,      log->tree,    log->link,    log->nic,
                     log->gdr,    log->system, log->node,     log->warning, log->device,  log->rank,
                     log->bucket, log->op,     log->progress, log->run,     log->gpu_path};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) free(lists[i]);
    for (struct kl_log_block *b = log->strings; b;) {
        struct kl_log_block *next = b->next;

        free(b);
        b = next;
    }
    kl_log_init(log);
}

/* ---- members ---- */

int kl_log_new_member(struct kl_log *log, int origin, struct kl_log_at at)
{
    struct kl_log_member *m = KL_LOG_NEW(log, member);

    if (!m) return -1;
    *m = (struct kl_log_member){.at = at,
                                .origin = origin,
                                .comm = -1,
                                .next = -1,
                                .earlier = log->origin[origin].last,
                                .rank = -1,
                                .nranks = -1,
                                .nnodes = -1,
                                .cuda = -1,
                                .nvml = -1,
                                .local_ranks = -1,
                                .coll = -1,
                                .collnet = -1,
                                .nvls = -1,
                                .p2p = -1,
                                .per_peer = -1,
                                .all_p2p = -1,
                                .nvls_support = -1,
                                .total = -1};
    return log->origin[origin].member = log->origin[origin].last = log->nmember - 1;
}

int kl_log_member_of(struct kl_log *log, int origin, struct kl_log_at at)
{
    int m = log->origin[origin].member;

    return m >= 0 ? m : kl_log_new_member(log, origin, at);
}

int kl_log_planning(struct kl_log *log, int origin, struct kl_log_at at)
{
    int m = kl_log_member_of(log, origin, at);

    return m >= 0 && log->member[m].completed ? kl_log_new_member(log, origin, at) : m;
}

void kl_log_reach(struct kl_log *log, int member, enum kl_log_step step, struct kl_log_at at)
{
    struct kl_log_member *m = member >= 0 ? &log->member[member] : NULL;

    if (!m || step < m->step) return;
    m->step = step;
    m->step_at = at;
}
