/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void kl_levels_fini(struct kl_levels *v)
{
    free(v->next);
    free(v->value);
    free(v->slot);
    free(v->filled);
    memset(v, 0, sizeof *v);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static int32_t *slot_of(const struct kl_levels *v, float value)
{
    int i = (int)(bits_of(value) * 2654435761u >> 8) & (v->nslots - 1);

    while (v->slot[i] >= 0 && bits_of(kl_level_value(v, v->slot[i])) != bits_of(value)) i = (i + 1) & (v->nslots - 1);
    return &v->slot[i];
}

/* Make an array larger in place of the old one; false leaves it as it is. */
static bool resize(int32_t **array, size_t n)
{
    int32_t *more = realloc(*array, n * sizeof *more);

    if (more) *array = more;
    return more != NULL;
}

static bool grow(struct kl_levels *v)
{
    int max = v->max ? 2 * v->max : 32;
    size_t rows = (size_t)max, old = (size_t)v->max;
    float *value = realloc(v->value, rows * sizeof *value);

    if (value) v->value = value;
    if (!value || !resize(&v->slot, 2 * rows) || !resize(&v->next, rows * KL_LEVEL_STEP)) return false;
    v->max = max;
    v->nslots = 2 * max;
    for (size_t i = old * KL_LEVEL_STEP; i < rows * KL_LEVEL_STEP; i++) v->next[i] = KL_LEVEL_UNKNOWN;
    memset(v->slot, 0xff, 2 * rows * sizeof *v->slot);
    for (int l = 0; l < v->n; l++) *slot_of(v, v->value[l]) = l * KL_LEVEL_STEP;
    return true;
}

int kl_level_of(struct kl_levels *v, float value)
{
    int32_t *slot;

    if (v->n == v->max && !grow(v)) {
        v->nomem = true;
        return 0;
    }
    slot = slot_of(v, value);
    if (*slot < 0) {
        v->value[v->n] = value;
        v->next[v->n * KL_LEVEL_STEP + KL_LEVEL_WHOLE] = kl_whole(value);
        *slot = v->n++ * KL_LEVEL_STEP;
    }
    return *slot;
}

void kl_levels_begin(struct kl_levels *v)
{
    for (int i = 0; i < v->nfilled; i++) v->next[v->filled[i]] = KL_LEVEL_UNKNOWN;
    v->nfilled = 0;
}

/* Remember that an entry is to be forgotten. */
static void note(struct kl_levels *v, int entry)
{
    int max = v->max_filled ? 2 * v->max_filled : 128;

    if (v->nfilled == v->max_filled) {
        if (!resize(&v->filled, (size_t)max)) {
            v->nomem = true;
            return;
        }
        v->max_filled = max;
    }
    v->filled[v->nfilled++] = entry;
}

int kl_levels_fill(struct kl_levels *v, int entry)
{
    float left = v->value[entry / KL_LEVEL_STEP], need = v->need[entry % KL_LEVEL_STEP];
    int to = left < need ? KL_LEVEL_REFUSED : kl_level_of(v, roundf((left - need) * 1000) / 1000);

    note(v, entry);
    return v->next[entry] = to;
}
