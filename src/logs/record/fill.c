/* SPDX-License-Identifier: Apache-2.0 */
/** fill.c - memory of a record: names, lists, groups, members. */
#include "logs/record/make.h"

#include "base/error.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 16, MOST = 1 << 23 };

/* ---- names ---- */

struct block {
    struct block *next;
    size_t used, size;
    char data[];
};

struct kl_record_names {
    struct block *block;
    const char **slot; /* open addressing; a power of two */
    size_t nslots, n;
};

static size_t hash_of(const char *text, size_t n)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return (size_t)(h ^ h >> 32);
}

static const char **slot_of(struct kl_record_names *names, const char *text, size_t n)
{
    size_t at = hash_of(text, n) & (names->nslots - 1);

    while (names->slot[at] && (strncmp(names->slot[at], text, n) || names->slot[at][n]))
        at = (at + 1) & (names->nslots - 1);
    return &names->slot[at];
}

static bool widen(struct kl_record_names *names)
{
    struct kl_record_names wider = {.nslots = names->nslots ? 2 * names->nslots : 256};

    wider.slot = calloc(wider.nslots, sizeof *wider.slot);
    if (!wider.slot) return false;
    for (size_t i = 0; i < names->nslots; i++)
        if (names->slot[i]) *slot_of(&wider, names->slot[i], strlen(names->slot[i])) = names->slot[i];
    free(names->slot);
    names->slot = wider.slot;
    names->nslots = wider.nslots;
    return true;
}

static const char *keep(struct kl_record_names *names, const char *text, size_t n)
{
    struct block *b = names->block;

    if (!b || b->size - b->used <= n) {
        size_t size = n < BLOCK ? BLOCK : n + 1;

        b = malloc(sizeof *b + size);
        if (!b) return NULL;
        *b = (struct block){.next = names->block, .size = size};
        names->block = b;
    }
    char *kept = b->data + b->used;

    memcpy(kept, text, n);
    kept[n] = 0;
    b->used += n + 1;
    return kept;
}

const char *kl_record_name_n(struct kl_record *r, const char *text, size_t n)
{
    struct kl_record_names *names = r->names;

    n = strnlen(text, n);
    if (!n) return "";
    if (!names) names = r->names = calloc(1, sizeof *names);
    if (!names || (2 * names->n >= names->nslots && !widen(names))) return "";
    const char **slot = slot_of(names, text, n);

    if (!*slot) {
        *slot = keep(names, text, n);
        names->n += *slot != NULL;
    }
    return *slot ? *slot : "";
}

const char *kl_record_name(struct kl_record *r, const char *text)
{
    return text ? kl_record_name_n(r, text, strlen(text)) : "";
}

static void free_names(struct kl_record_names *names)
{
    if (!names) return;
    for (struct block *b = names->block; b;) {
        struct block *next = b->next;

        free(b);
        b = next;
    }
    free(names->slot);
    free(names);
}

/* ---- lists ---- */

ncclResult_t kl_record_grow(void **list, int *n, int *max, size_t size)
{
    if (*n == *max) {
        int more = *max ? 2 * *max : 16;
        void *grown;

        if (more > MOST)
            return KL_FAIL(ncclInvalidUsage, "the records have more than %d entries: give fewer files", MOST / 2);
        grown = realloc(*list, (size_t)more * size);
        if (!grown) return KL_NOMEM("records");
        *list = grown;
        *max = more;
    }
    memset((char *)*list + (size_t)(*n)++ * size, 0, size);
    return ncclSuccess;
}

#define NEW(record, list)                                                                                              \
    kl_record_grow((void **)&(record)->list, &(record)->n##list, &(record)->max##list, sizeof *(record)->list)

ncclResult_t kl_record_new_file(struct kl_record *r, const char *name, enum kl_input_kind kind, int *index)
{
    KL_TRY(NEW(r, file));
    *index = r->nfile - 1;
    r->file[*index] =
        (struct kl_record_file){.name = kl_record_name(r, name), .version = "", .kind = kind, .rank = -1, .ranks = -1};
    return ncclSuccess;
}

ncclResult_t kl_record_new_call(struct kl_record *r, int member, int *index)
{
    KL_TRY(NEW(r, call));
    *index = r->ncall - 1;
    r->call[*index] = (struct kl_record_call){.member = member,
                                              .number = -1,
                                              .name = "",
                                              .type = "",
                                              .op = "",
                                              .algorithm = "",
                                              .protocol = "",
                                              .where = "",
                                              .in = -1,
                                              .out = -1,
                                              .bytes = -1,
                                              .root = -1,
                                              .peer = -1,
                                              .begun_us = -1,
                                              .took_us = -1};
    return ncclSuccess;
}

ncclResult_t kl_record_new_count(struct kl_record *r, int member, const char *function, int64_t n)
{
    struct kl_record_member *m = &r->member[member];

    KL_TRY(NEW(r, count));
    if (!m->ncounts++) m->first_count = r->ncount - 1;
    r->count[r->ncount - 1] = (struct kl_record_count){kl_record_name(r, function), n};
    return ncclSuccess;
}

ncclResult_t kl_record_add_rank(struct kl_record *r, int rank)
{
    KL_TRY(NEW(r, list));
    r->list[r->nlist - 1] = rank;
    return ncclSuccess;
}

/* ---- groups and participants ---- */

static uint64_t key_of(const char *name)
{
    return (uint64_t)(uintptr_t)name;
}

ncclResult_t kl_record_group_of(struct kl_record *r, const char *id, const char *listed, int *index)
{
    const char *a = kl_record_name(r, id), *b = kl_record_name(r, listed);

    *index = kl_record_map_get(r, KL_KEY_GROUP, key_of(a), key_of(b));
    if (*index >= 0) return ncclSuccess;
    KL_TRY(NEW(r, group));
    *index = r->ngroup - 1;
    r->group[*index] = (struct kl_record_group){.id = a, .desc = "", .listed = b, .size = -1};
    return kl_record_map_put(r, KL_KEY_GROUP, key_of(a), key_of(b), *index);
}

ncclResult_t kl_record_proc_of(struct kl_record *r, const char *key, int *index)
{
    const char *kept = kl_record_name(r, key);

    *index = kl_record_map_get(r, KL_KEY_PROC, key_of(kept), 0);
    if (*index >= 0) return ncclSuccess;
    KL_TRY(NEW(r, proc));
    *index = r->nproc - 1;
    r->proc[*index] = (struct kl_record_proc){.key = kept, .host = "", .rank = -1, .pid = -1, .stall = -1};
    return kl_record_map_put(r, KL_KEY_PROC, key_of(kept), 0, *index);
}

static uint64_t place_of(int group, int file)
{
    return (uint64_t)(uint32_t)group << 32 | (uint32_t)file;
}

int kl_record_member_of(const struct kl_record *r, int group, int rank, int file)
{
    return kl_record_map_get(r, KL_KEY_MEMBER, place_of(group, file), (uint64_t)(uint32_t)rank);
}

int kl_record_member_of_id(struct kl_record *r, int file, const char *id)
{
    return kl_record_map_get(r, KL_KEY_ID, (uint64_t)file, key_of(kl_record_name(r, id)));
}

ncclResult_t kl_record_new_member(struct kl_record *r, int group, int rank, int file, int *index)
{
    KL_TRY(NEW(r, member));
    *index = r->nmember - 1;
    r->member[*index] = (struct kl_record_member){.group = group,
                                                  .rank = rank,
                                                  .proc = -1,
                                                  .file = file,
                                                  .failure = "",
                                                  .waits_for = -1,
                                                  .called = -1,
                                                  .ended = -1,
                                                  .oldest = -1,
                                                  .open = -1,
                                                  .last = -1};
    KL_TRY(kl_record_map_put(r, KL_KEY_ID, (uint64_t)file, key_of(r->group[group].id), *index));
    return kl_record_map_put(r, KL_KEY_MEMBER, place_of(group, file), (uint64_t)(uint32_t)rank, *index);
}

ncclResult_t kl_record_new_finding(struct kl_record *r, enum kl_record_code code, enum kl_log_weight weight, int *index)
{
    KL_TRY(NEW(r, finding));
    *index = r->nfinding - 1;
    r->finding[*index] = (struct kl_record_finding){.code = code,
                                                    .weight = weight,
                                                    .group = -1,
                                                    .call = -1,
                                                    .other_call = -1,
                                                    .first = r->nlist,
                                                    .first_other = r->nlist,
                                                    .file = -1,
                                                    .text = "",
                                                    .other = ""};
    return ncclSuccess;
}

void kl_record_end_ranks(struct kl_record *r, int finding)
{
    struct kl_record_finding *f = &r->finding[finding];

    f->n = r->nlist - f->first;
    f->first_other = r->nlist;
}

void kl_record_end_others(struct kl_record *r, int finding)
{
    struct kl_record_finding *f = &r->finding[finding];

    f->nothers = r->nlist - f->first_other;
}

int kl_record_find(const struct kl_record *r, int group, int rank)
{
    const struct kl_record_group *g = &r->group[group];
    int low = g->first, high = g->first + g->n;

    while (low < high) {
        const int middle = (low + high) / 2;

        if (r->member[r->by_group[middle]].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < g->first + g->n && r->member[r->by_group[low]].rank == rank ? r->by_group[low] : -1;
}

/* ---- life ---- */

void kl_record_init(struct kl_record *r)
{
    *r = (struct kl_record){.nfile = 0};
}

void kl_record_fini(struct kl_record *r)
{
    void *lists[] = {r->file, r->group, r->member, r->call, r->proc, r->count, r->finding, r->list, r->by_group};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) free(lists[i]);
    free_names(r->names);
    kl_record_map_free(r->map);
    kl_record_init(r);
}

static int by_weight(const void *a, const void *b)
{
    const struct kl_record_finding *x = a, *y = b;

    if (x->weight != y->weight) return x->weight < y->weight ? -1 : 1;
    if (x->code != y->code) return x->code < y->code ? -1 : 1;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->call != y->call) return x->call < y->call ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

void kl_record_sort(struct kl_record *r)
{
    if (r->nfinding) qsort(r->finding, (size_t)r->nfinding, sizeof *r->finding, by_weight);
}
