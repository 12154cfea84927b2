/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning_ranges.h"

#include "base/error.h"

#include <stdlib.h>

struct list {
    const struct kl_tuning *t;
    struct kl_tuning_op op;
    struct kl_tuning_range *range;
    int n, room;
    bool full; /* out of memory */
};

static struct kl_tuning_choice choice_at(struct list *l, int64_t bytes)
{
    struct kl_tuning_choice c;

    l->op.bytes = bytes;
    return kl_tuning_choose(l->t, &l->op, &c, NULL) ? (struct kl_tuning_choice){.algo = -1} : c;
}

static bool alike(const struct kl_tuning_choice *a, const struct kl_tuning_choice *b)
{
    return a->algo == b->algo && a->proto == b->proto && a->nchannels == b->nchannels && a->nthreads == b->nthreads;
}

/* Sizes from `first` on are chosen like this; if they were already, nothing is new. */
static void begin(struct list *l, int64_t first, const struct kl_tuning_choice *c)
{
    if (l->n && alike(&l->range[l->n - 1].choice, c)) return;
    if (l->n == l->room) {
        int room = l->room ? 2 * l->room : 64;
        struct kl_tuning_range *r = realloc(l->range, (size_t)room * sizeof *r);

        l->full |= !r;
        if (!r) return;
        l->range = r;
        l->room = room;
    }
    l->range[l->n++] = (struct kl_tuning_range){.first = first, .choice = *c};
}

/* The changes above `lo` up to `hi`; `a` and `b` are the choices there. */
static void search(struct list *l, int64_t lo, const struct kl_tuning_choice *a, int64_t hi,
                   const struct kl_tuning_choice *b)
{
    if (alike(a, b)) return;
    if (hi - lo == 1) {
        begin(l, hi, b);
        return;
    }
    int64_t middle = lo + (hi - lo) / 2;
    struct kl_tuning_choice c = choice_at(l, middle);

    search(l, lo, a, middle, &c);
    search(l, middle, &c, hi, b);
}

static void close_ranges(struct list *l, int64_t last)
{
    for (int i = 0; i < l->n; i++) {
        l->range[i].last = i + 1 < l->n ? l->range[i + 1].first - 1 : last;
        l->range[i].last_time = choice_at(l, l->range[i].last).time;
    }
}

/* Where the piece of a straight line that begins at `lo` ends, and the next one begins. */
static int64_t next_piece(const struct kl_tuning *t, int64_t lo, int64_t asked)
{
    int64_t next = kl_tuning_next_step(t, lo);

    return lo < asked && asked < next ? asked : next;
}

ncclResult_t kl_tuning_ranges(const struct kl_tuning *t, const struct kl_tuning_op *op, int64_t first, int64_t last,
                              struct kl_tuning_range **range, int *nranges)
{
    struct list l = {.t = t, .op = *op};
    int quiet = kl_error_quiet(1); /* "nothing can do it" is an answer here */

    for (int64_t lo = first; lo <= last;) {
        int64_t next = next_piece(t, lo, op->bytes), hi = next > lo && next <= last ? next - 1 : last;
        struct kl_tuning_choice a = choice_at(&l, lo), b = choice_at(&l, hi);

        begin(&l, lo, &a);
        search(&l, lo, &a, hi, &b);
        if (hi == last) break;
        lo = next;
    }
    close_ranges(&l, last);
    kl_error_quiet(quiet);
    if (l.full) {
        free(l.range);
        return KL_NOMEM("ranges of sizes");
    }
    *range = l.range;
    *nranges = l.n;
    return ncclSuccess;
}
