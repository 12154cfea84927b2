/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/refusals.h"

#include "compat/cuda/nvcc/text.h"

#include <stdlib.h>
#include <string.h>

const char *refusal_of(const struct refusals *r, const char *place)
{
    for (size_t i = 0; i < r->count; i++)
        if (!strcmp(r->at[i].place, place)) return r->at[i].why;
    return NULL;
}

void refuse_kernel(struct refusals *r, const char *place, const char *why)
{
    if (refusal_of(r, place)) return;
    r->at = must_grow(r->at, (r->count + 1) * sizeof *r->at);
    r->at[r->count++] = (struct refusal){.place = must_copy(place, strlen(place)), .why = must_copy(why, strlen(why))};
}

void refusals_drop(struct refusals *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->at[i].place);
        free(r->at[i].why);
    }
    free(r->at);
    *r = (struct refusals){0};
}
