/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/options.h"
#include "compat/cuda/nvcc/text.h"

#include <stdlib.h>
#include <string.h>

void words_add(struct words *w, const char *word)
{
    w->at = must_grow(w->at, (w->count + 2) * sizeof *w->at);
    w->at[w->count++] = must_copy(word, strlen(word));
    w->at[w->count] = NULL;
}

void words_add_all(struct words *w, const struct words *more)
{
    for (size_t i = 0; i < more->count; i++) words_add(w, more->at[i]);
}

void words_drop(struct words *w)
{
    for (size_t i = 0; i < w->count; i++) free(w->at[i]);
    free(w->at);
    *w = (struct words){0};
}
