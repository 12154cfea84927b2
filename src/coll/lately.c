/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/lately.h"

/* Faster than what was found before: in less than 4/5 of the time; or in less than 19/20, so many times in a row. */
enum { CLEARLY = 4, OF = 5, A_LITTLE = 19, OF_A_LITTLE = 20, IN_A_ROW = 3 };

/* A block has so many uses, or as many as move so much: in the first comparison, and some time. Where ranks share cores, single uses vary most. */
enum { LEAST = 3, LEAST_CROWDED = 8, AT_FIRST = 32, AT_FIRST_BYTES = 4 << 20, MOST = 64, MOST_BYTES = 8 << 20 };

/* A use that takes more than so many times as long as the shortest has met a time slice of another program, or an interrupt. One of so many may. */
enum { STALLED = 4, MAY_STALL = 4 };

/* Bytes from which a use costs so much that both ways are not tried while what was found at another size can be relied on. */
enum { COSTLY = 4 << 20 };

/* Sizes up to so many powers of 2 away are alike; and those of costly uses. */
enum { REACH = 2, COSTLY_REACH = 4 };

/* Of uses before the first comparison those go the first way that move so much, at least one, and at most so many. */
enum { TOUCH_BYTES = KL_LATELY_WARM_BYTES / 2, MOST_TOUCH = KL_LATELY_MOST_WARM / 2 };

/* Of a cycle. Before the first comparison memory is touched for the first time, also all that is staged in (kl_cache_cycle): that is in nobody's time. */
enum part { WARM, FIRST, SECOND, OVER };

static enum part part_of(const struct kl_lately *l)
{
    const uint32_t block = l->block, at = l->uses - l->warm;

    if (l->uses < l->warm) return WARM;
    return at < block ? FIRST : at < 2 * block ? SECOND : OVER;
}

/* Does what was found there say something here? Where something else was guessed there, only if it was wrong, and what is guessed here right. */
static bool is_alike(const struct kl_lately *other, int guess)
{
    return other->compared && (other->guess == guess || other->better == guess);
}

/* The nearest size that tells which way is better at this one; NULL: none does. */
static const struct kl_lately *foreseen(const struct kl_lately *of, int nsizes, int size, struct kl_lately_use use)
{
    const int reach = use.bytes < COSTLY ? REACH : COSTLY_REACH;

    for (int away = 1; away <= reach; away++)
        for (int other = size - away; other <= size + away; other += 2 * away)
            if (other >= 0 && other < nsizes && is_alike(&of[other], use.guess)) return &of[other];
    return NULL;
}

/* Uses that move so many bytes. */
static uint32_t uses_of(size_t bytes, size_t least, size_t most, size_t most_bytes)
{
    const size_t n = most_bytes / bytes;

    return (uint32_t)(n < least ? least : n > most ? most : n);
}

/* Uses before a comparison with which the cycle ends, once all have heard of it. */
static uint32_t latest(const struct kl_lately *l)
{
    return (l->again - 2) * l->block - KL_LATELY_HEARS;
}

struct kl_lately *kl_lately_of(struct kl_lately *of, int nsizes, int size, struct kl_lately_use use)
{
    struct kl_lately *l = &of[size];
    const size_t bytes = use.bytes, least = use.crowded ? LEAST_CROWDED : LEAST;

    if (l->block) return l;
    *l = (struct kl_lately){.block = uses_of(bytes, least, AT_FIRST, AT_FIRST_BYTES),
                            .most = uses_of(bytes, least, MOST, MOST_BYTES),
                            .warm = uses_of(bytes, KL_LATELY_WARM, KL_LATELY_MOST_WARM, KL_LATELY_WARM_BYTES),
                            .touch = uses_of(bytes, 1, MOST_TOUCH, TOUCH_BYTES),
                            .again = KL_LATELY_SOON,
                            .guess = use.guess,
                            .crowded = use.crowded};
    const struct kl_lately *alike = foreseen(of, nsizes, size, use);
    l->better = alike ? alike->better : use.guess;
    if ((alike || use.sure) && bytes >= COSTLY) l->warm = latest(l);
    return l;
}

/* Does this use, or a later one before a comparison, go the first way whichever is better? */
static bool touches(const struct kl_lately *l, uint32_t use)
{
    return !l->compared && use + l->touch >= l->warm;
}

/* All ranks take the same way in a block, also while they do not agree which is better. The first one begins with a use of the second way. */
int kl_lately_way(const struct kl_lately *l)
{
    switch (part_of(l)) {
    case WARM:
        return touches(l, l->uses) ? 0 : l->better;
    case FIRST:
        return l->uses == l->warm;
    case SECOND:
        return 1;
    default:
        return l->better;
    }
}

/* The first use of a cycle, and the one after a comparison, decide: what comes behind them is known when they have. */
bool kl_lately_stays(const struct kl_lately *l, int way, uint32_t later)
{
    const uint32_t use = l->uses + later, block = l->block;

    if (!l->uses || kl_lately_is_compared(l)) return false;
    switch (part_of(l)) {
    case WARM:
        return way == kl_lately_way(l) && use < l->warm && (way == 0 || !touches(l, use));
    case FIRST:
        return way == 0 && l->uses > l->warm && use < l->warm + block;
    case SECOND:
        return way == 1 && use < l->warm + 2 * block;
    default:
        return way == l->better && use < l->again * block;
    }
}

bool kl_lately_is_timed(const struct kl_lately *l)
{
    const enum part part = part_of(l);

    return (part == FIRST && l->uses > l->warm) || part == SECOND;
}

bool kl_lately_is_compared(const struct kl_lately *l)
{
    return l->uses == l->warm + 2 * l->block;
}

/*
 * A guess gives way to what the first comparison finds; what has been found, only if two of them say so clearly: one may have met a time slice of another
 * program. So it is doubted, and compared once more, at once, with as many uses. Or if several in a row say so a little.
 */
static void judge(struct kl_lately *l)
{
    const struct kl_lately_before *b = &l->before;
    const uint64_t better = l->slowest[b->better], other = l->slowest[!b->better];
    const bool clearly = OF * other < CLEARLY * better;

    l->ahead = OF_A_LITTLE * other < A_LITTLE * better ? b->ahead + 1 : 0;
    const bool often = l->ahead == IN_A_ROW, worse = b->compared ? clearly || often : other < better;
    l->doubted = worse && b->compared && !b->doubted && !often;
    l->better = worse && !l->doubted ? !b->better : b->better;
    if (l->better != b->better) l->ahead = 0;
    l->uses = (l->doubted ? 0 : b->uses) + l->since;
    l->warm = l->doubted ? KL_LATELY_WARM : b->warm;
}

void kl_lately_decide(struct kl_lately *l, const uint64_t ns[2])
{
    l->before = (struct kl_lately_before){.uses = l->uses,
                                          .warm = l->warm,
                                          .ahead = l->ahead,
                                          .better = l->better,
                                          .compared = l->compared,
                                          .doubted = l->doubted};
    l->slowest[0] = ns[0];
    l->slowest[1] = ns[1];
    l->compared = true;
    l->number++;
    l->since = 0;
    judge(l);
}

void kl_lately_hear(struct kl_lately *l, const uint64_t ns[2])
{
    if (ns[0] <= l->slowest[0] && ns[1] <= l->slowest[1]) return;
    for (int way = 0; way < 2; way++)
        if (ns[way] > l->slowest[way]) l->slowest[way] = ns[way];
    judge(l);
}

/* What `n` uses have taken; where a few have stalled, what they would have taken else. */
static uint64_t steady(const struct kl_lately_trial *t, uint32_t n)
{
    const uint32_t few = n < MAY_STALL ? 1 : n / MAY_STALL;

    return t->stalls <= few ? t->ns * n / (n - t->stalls) : t->ns + t->stalled;
}

static void count(struct kl_lately_trial *t, uint64_t ns, bool may_stall)
{
    const bool stalled = may_stall && ns > STALLED * t->least;

    t->stalls += stalled;
    if (stalled)
        t->stalled += ns;
    else
        t->ns += ns;
}

/* One use more. Of the first one it is known whether it has stalled when there is another one. */
static void add_use(struct kl_lately_trial *t, uint64_t ns, bool may_stall)
{
    if (ns < t->least) t->least = ns;
    if (!t->uses++) {
        t->first = ns;
        return;
    }
    if (t->uses == 2) count(t, t->first, may_stall);
    count(t, ns, may_stall);
}

/* A block of the first way, but for the use it begins with, and the use that ends it; and what so many of the second one take. */
static void add(struct kl_lately *l, uint32_t at, uint64_t ns)
{
    const uint32_t block = l->block, counted[] = {block, block - 1};
    struct kl_lately_trial *t = &l->trial[at > block];

    if (at == 1) l->trial[0] = l->trial[1] = (struct kl_lately_trial){.least = UINT64_MAX};
    add_use(t, ns, !l->crowded);
    if (at < 2 * block - 1) return;
    l->ns[0] = steady(&l->trial[0], counted[0]);
    l->ns[1] = steady(&l->trial[1], counted[1]) * counted[0] / counted[1];
}

static uint32_t at_most(uint32_t n, uint32_t most)
{
    return n < most ? n : most;
}

/* The next cycle is longer, and compares more. */
static void end_cycle(struct kl_lately *l)
{
    l->since = KL_LATELY_HEARS;
    l->uses = 0;
    l->warm = KL_LATELY_WARM;
    l->block = at_most(2 * l->block, l->most);
    l->again = at_most(2 * l->again, KL_LATELY_SELDOM);
}

void kl_lately_took(struct kl_lately *l, uint64_t ns)
{
    if (kl_lately_is_timed(l)) add(l, l->uses - l->warm, ns);
    if (kl_lately_hears(l)) l->since++;
    if (++l->uses >= l->again * l->block) end_cycle(l);
}
