/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/names.h"

#include "compat/cuda/nvcc/text.h"
#include "src/base/hash.h"

#include <stdlib.h>
#include <string.h>

/* Where the name is, or would be. There is room. */
static uint32_t *place_of(const struct names *n, const char *name, size_t bytes)
{
    uint64_t at = kl_hash_add(KL_HASH_START, name, bytes);

    for (at ^= at >> 32;; at++) {
        uint32_t *place = &n->place[at & (n->room - 1)];
        const char *other = *place ? n->at[*place - 1] : NULL;

        if (!other || (!strncmp(other, name, bytes) && !other[bytes])) return place;
    }
}

size_t names_find(const struct names *n, const char *name, size_t bytes)
{
    uint32_t number = n->count ? *place_of(n, name, bytes) : 0;

    return number ? number - 1 : NO_NAME;
}

static void make_room(struct names *n)
{
    if (2 * (n->count + 1) <= n->room) return;
    n->room = n->room ? 2 * n->room : 64;
    free(n->place);
    n->place = must_have(n->room * sizeof *n->place);
    n->at = must_grow(n->at, n->room * sizeof *n->at);
    for (size_t i = 0; i < n->count; i++) *place_of(n, n->at[i], strlen(n->at[i])) = (uint32_t)i + 1;
}

size_t names_add(struct names *n, const char *name, bool *fresh)
{
    make_room(n);
    uint32_t *place = place_of(n, name, strlen(name));
    *fresh = !*place;
    if (*fresh) {
        n->at[n->count] = must_copy(name, strlen(name));
        *place = (uint32_t)++n->count;
    }
    return *place - 1;
}

void names_drop(struct names *n)
{
    for (size_t i = 0; i < n->count; i++) free(n->at[i]);
    free(n->at);
    free(n->place);
    *n = (struct names){0};
}
