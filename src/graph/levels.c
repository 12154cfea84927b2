/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void kl_levels_fini(struct kl_levels *v)
{
    for (int i = 0; i < v->ncolumns; i++) {
        free(v->column[i]->to);
        free(v->column[i]);
    }
    free(v->column);
    free(v->value);
    free(v->slot);
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
    uint32_t h = bits_of(value) * 2654435761u;

    for (int i = (int)(h >> 8) & (v->nslots - 1);; i = (i + 1) & (v->nslots - 1))
        if (v->slot[i] < 0 || bits_of(v->value[v->slot[i]]) == bits_of(value)) return &v->slot[i];
}

static bool grow_column(struct kl_column *c, int from, int max)
{
    int32_t *to = realloc(c->to, (size_t)max * sizeof *to);

    if (!to) return false;
    c->to = to;
    for (int i = from; i < max; i++) to[i] = KL_LEVEL_UNKNOWN;
    return true;
}

/* Room for twice the levels, in all tables that are indexed by level. */
static bool grow(struct kl_levels *v)
{
    int max = v->max ? 2 * v->max : 64, nslots = 2 * max;
    float *value = realloc(v->value, (size_t)max * sizeof *value);
    int32_t *slot = malloc((size_t)nslots * sizeof *slot);

    if (value) v->value = value;
    for (int i = 0; value && slot && i < v->ncolumns; i++)
        if (!grow_column(v->column[i], v->max, max)) value = NULL;
    if (!value || !slot) {
        free(slot);
        return false;
    }
    free(v->slot);
    v->slot = slot;
    v->nslots = nslots;
    v->max = max;
    memset(slot, 0xff, (size_t)nslots * sizeof *slot);
    for (int l = 0; l < v->n; l++) *slot_of(v, value[l]) = l;
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
        *slot = v->n++;
    }
    return *slot;
}

struct kl_column *kl_levels_column(struct kl_levels *v, float need)
{
    struct kl_column *c;

    for (int i = v->ncolumns - 1; i >= 0; i--)
        if (v->column[i]->need == need) return v->column[i];
    if (v->ncolumns == v->max_columns) {
        int max = v->max_columns ? 2 * v->max_columns : 16;
        struct kl_column **more = realloc(v->column, (size_t)max * sizeof(struct kl_column *));

        if (!more) return NULL;
        v->column = more;
        v->max_columns = max;
    }
    c = calloc(1, sizeof *c);
    if (!c || !grow_column(c, 0, v->max ? v->max : 1)) {
        free(c);
        return NULL;
    }
    c->need = need;
    return v->column[v->ncolumns++] = c;
}

int kl_levels_fill(struct kl_levels *v, struct kl_column *c, int level)
{
    float left = v->value[level];
    int to = left < c->need ? KL_LEVEL_REFUSED : kl_level_of(v, roundf((left - c->need) * 1000) / 1000);

    return c->to[level] = to;
}
