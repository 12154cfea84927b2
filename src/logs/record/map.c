/* SPDX-License-Identifier: Apache-2.0 */
/** map.c - groups, participants and members by their keys, so that a record of many is read in linear time. */
#include "logs/record/make.h"

#include "base/error.h"

#include <stdlib.h>

struct entry {
    uint64_t a, b;
    int kind, value; /* value -1: free */
};

struct kl_record_map {
    struct entry *entry; /* open addressing; a power of two */
    size_t nentries, n;
};

static size_t hash_of(int kind, uint64_t a, uint64_t b)
{
    uint64_t h = (a + (uint64_t)kind) * UINT64_C(0x9e3779b97f4a7c15);

    h = (h ^ h >> 29 ^ b) * UINT64_C(0xbf58476d1ce4e5b9);
    return (size_t)(h ^ h >> 32);
}

static struct entry *entry_of(const struct kl_record_map *m, int kind, uint64_t a, uint64_t b)
{
    size_t at = hash_of(kind, a, b) & (m->nentries - 1);

    while (m->entry[at].value >= 0 && (m->entry[at].kind != kind || m->entry[at].a != a || m->entry[at].b != b))
        at = (at + 1) & (m->nentries - 1);
    return &m->entry[at];
}

static bool widen(struct kl_record_map *m)
{
    struct kl_record_map wider = {.nentries = m->nentries ? 2 * m->nentries : 256, .n = m->n};

    wider.entry = calloc(wider.nentries, sizeof *wider.entry);
    if (!wider.entry) return false;
    for (size_t i = 0; i < wider.nentries; i++) wider.entry[i].value = -1;
    for (size_t i = 0; i < m->nentries; i++)
        if (m->entry[i].value >= 0) *entry_of(&wider, m->entry[i].kind, m->entry[i].a, m->entry[i].b) = m->entry[i];
    free(m->entry);
    *m = wider;
    return true;
}

int kl_record_map_get(const struct kl_record *r, enum kl_record_key kind, uint64_t a, uint64_t b)
{
    return r->map ? entry_of(r->map, (int)kind, a, b)->value : -1;
}

ncclResult_t kl_record_map_put(struct kl_record *r, enum kl_record_key kind, uint64_t a, uint64_t b, int value)
{
    if (!r->map) r->map = calloc(1, sizeof *r->map);
    if (!r->map || (2 * r->map->n >= r->map->nentries && !widen(r->map))) return KL_NOMEM("records");
    struct entry *e = entry_of(r->map, (int)kind, a, b);

    r->map->n += e->value < 0;
    *e = (struct entry){a, b, (int)kind, value};
    return ncclSuccess;
}

void kl_record_map_free(struct kl_record_map *m)
{
    if (m) free(m->entry);
    free(m);
}
