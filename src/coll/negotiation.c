/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/negotiation.h"

#include "base/clock.h"

enum { STAGED, READ }; /* ways, as kl_lately has them */

static int size_of(size_t bytes)
{
    int size = 0;

    while (size < KL_NEGOTIATION_SIZES - 1 && (size_t)KL_NEGOTIATION_LEAST << size < bytes) size++;
    return size;
}

/* Two ranks that reduce read as much as they would stage. */
static bool reads_less(const struct kl_negotiation *n, int func)
{
    return n->nranks > 2 || !kl_func_info[func].reduces;
}

static struct kl_lately *times_of(struct kl_negotiation *n, int func, size_t bytes)
{
    const bool less = reads_less(n, func);
    const struct kl_lately_use use = {.bytes = bytes,
                                      .guess = less && kl_lending_guess(n->nranks, bytes),
                                      .sure = less && kl_lending_is_sure(n->nranks, bytes),
                                      .crowded = n->lending.crowded};

    return kl_lately_of(n->reads[func], KL_NEGOTIATION_SIZES, size_of(bytes), use);
}

static void begin(struct kl_negotiation *n, int func, size_t bytes)
{
    n->times = times_of(n, func, bytes);
    n->began = kl_lately_is_timed(n->times) ? kl_now_ns() : 0;
}

/* Has it been said that the kernel copies here? */
static bool reads(const struct kl_negotiation *n)
{
    return n->settled || kl_lately_way(n->times) == READ;
}

/* Is there something to agree on? A guess, or what has been compared. */
static bool is_new(const struct kl_negotiation *n)
{
    return !n->times->uses || kl_lately_is_compared(n->times);
}

bool kl_negotiation_due(struct kl_negotiation *n, int func, size_t bytes)
{
    if (!n->times) begin(n, func, bytes);
    if (n->over) return false;
    if (kl_first_try_due(&n->maps)) return true;
    return !n->unreadable && (is_new(n) || reads(n));
}

bool kl_negotiation_stages(const struct kl_negotiation *n, int func, size_t bytes, uint32_t later)
{
    if (!kl_first_try_passes(&n->maps, later)) return false;
    return n->unreadable || (!n->settled && kl_lately_stays(&n->reads[func][size_of(bytes)], STAGED, later));
}

struct kl_negotiation_word kl_negotiation_word(const struct kl_negotiation *n)
{
    const bool settled = n->lending.copies != KL_KERNEL_COPIES_AUTO;

    return (struct kl_negotiation_word){
        .reads = !n->unreadable && (settled ? n->lending.copies == KL_KERNEL_COPIES_ALWAYS : reads(n)),
        .settled = settled,
        .ns = {n->times->ns[STAGED], n->times->ns[READ]},
    };
}

void kl_negotiation_gather(struct kl_negotiation_word *all, int rank, const struct kl_negotiation_word *word)
{
    if (!rank) {
        all->reads = word->reads;
        all->settled = word->settled;
    }
    for (int way = STAGED; way <= READ; way++)
        if (word->ns[way] > all->ns[way]) all->ns[way] = word->ns[way];
}

static void note_maps(struct kl_negotiation *n, bool mapped)
{
    if (mapped)
        kl_first_try_ended(&n->maps, true);
    else if (kl_first_try_due(&n->maps))
        kl_first_try_declined(&n->maps);
}

/* The first rank's guess counts, and later all their times. */
static void hear(struct kl_negotiation *n, struct kl_negotiation_word word)
{
    if (!n->times->uses) n->times->better = word.reads ? READ : STAGED;
    if (kl_lately_is_compared(n->times)) kl_lately_decide(n->times, word.ns);
    n->settled |= word.settled;
    n->unreadable |= word.settled && !word.reads;
}

/* What was asked for and is not done never will be. */
void kl_negotiation_held(struct kl_negotiation *n, struct kl_negotiation_outcome outcome)
{
    hear(n, outcome.word);
    note_maps(n, outcome.end == KL_NEGOTIATED_MAPPED);
    n->over = outcome.end == KL_NEGOTIATED_DECLINED;
    n->unreadable |= (n->over && outcome.word.reads) || outcome.end == KL_NEGOTIATED_REPAIRED;
    if (outcome.end == KL_NEGOTIATED_MAPPED) n->times = NULL;
}

void kl_negotiation_ended(struct kl_negotiation *n)
{
    kl_lately_took(n->times, n->began ? kl_now_ns() - n->began : 0);
    kl_first_try_ended(&n->maps, false);
    n->over = false;
    n->times = NULL;
}

void kl_negotiation_reset(struct kl_negotiation *n)
{
    n->over = false;
    n->maps.declined = false;
    n->times = NULL;
}
