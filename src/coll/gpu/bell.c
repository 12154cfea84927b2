/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/bell.h"

#include "coll/gpu/gate.h"
#include "device/host/idle.h"

#include <stdlib.h>

/** Of a call, in one piece of memory: bells, tasks, operators. */
struct kl_gpu_bells {
    struct kl_gpu_bells *next;
    size_t bytes;
    _Atomic size_t left; /* of a call: bells that were not told */
    struct kl_gpu_bell *bell;
    struct kl_task *task;
    struct kl_redop *redop;
};

/* ---- making ---- */

static size_t align(size_t bytes)
{
    return (bytes + KL_LINE - 1) / KL_LINE * KL_LINE;
}

/* Sets their places in memory of bytes_of. */
static void place(struct kl_gpu_bells *s, const struct kl_gpu_rounds *rounds)
{
    char *at = (char *)s + align(sizeof *s);

    s->bell = (struct kl_gpu_bell *)(void *)at;
    at += align(rounds->nrounds * sizeof *s->bell);
    s->task = (struct kl_task *)(void *)at;
    s->redop = (struct kl_redop *)(void *)(at + align(rounds->ntravels * sizeof *s->task));
}

static size_t bytes_of(const struct kl_gpu_rounds *rounds)
{
    return align(sizeof(struct kl_gpu_bells)) + align(rounds->nrounds * sizeof(struct kl_gpu_bell)) +
           align(rounds->ntravels * sizeof(struct kl_task)) + align(rounds->ntravels * sizeof(struct kl_redop));
}

/* The oldest set of a call is the first one to be told. */
static struct kl_gpu_bells *reuse(struct kl_gpu_belfry *b, size_t bytes)
{
    struct kl_gpu_bells *oldest = b->calls;

    if (!oldest || oldest->bytes < bytes || kl_load_acquire(&oldest->left)) return NULL; /* pairs with kl_gpu_bell_tell */
    b->calls = oldest->next;
    return oldest;
}

static struct kl_gpu_bells *allocate(size_t bytes)
{
    struct kl_gpu_bells *s = aligned_alloc(KL_LINE, bytes);

    if (s) s->bytes = bytes;
    return s;
}

static void append(struct kl_gpu_bells **link, struct kl_gpu_bells *s)
{
    while (*link) link = &(*link)->next;
    s->next = NULL;
    *link = s;
}

/* The program may destroy its operators, and call again. */
static void copy_tasks(struct kl_gpu_bells *s, const struct kl_gpu_rounds *rounds)
{
    for (size_t i = 0; i < rounds->ntravels; i++) {
        s->task[i] = rounds->travel[i].task;
        if (!s->task[i].redop) continue;
        s->redop[i] = *s->task[i].redop;
        s->task[i].redop = &s->redop[i];
    }
}

static ncclResult_t fill(struct kl_gpu_gate *gate, struct kl_gpu_bells *s, struct kl_gpu_rounds *rounds,
                         const struct kl_gpu_call *call)
{
    for (size_t i = 0; i < rounds->nrounds; i++) {
        struct kl_gpu_round *r = &rounds->round[i];
        struct kl_gpu_bell *bell = r->bell = &s->bell[i];
        *bell = (struct kl_gpu_bell){.gate = gate,
                                     .set = s,
                                     .task = &s->task[r->travel],
                                     .ntasks = r->ntravels,
                                     .stream = rounds->travel[r->travel].op->stream};
        if (call->capture)
            KL_TRY(kl_gpu_words_take(&gate->belfry.words, gate->context->driver, &bell->word, &bell->word_at));
    }
    return ncclSuccess;
}

ncclResult_t kl_gpu_bells_make(struct kl_gpu_gate *gate, struct kl_gpu_rounds *rounds, const struct kl_gpu_call *call)
{
    struct kl_gpu_belfry *b = &gate->belfry;
    const size_t bytes = bytes_of(rounds);
    struct kl_gpu_bells *s = call->capture ? NULL : reuse(b, bytes);

    if (!s) s = allocate(bytes);
    if (!s) return KL_NOMEM("the rounds of a call on several hosts");
    place(s, rounds);
    copy_tasks(s, rounds);
    kl_store_relaxed(&s->left, call->capture ? 0 : rounds->nrounds);
    append(call->capture ? &b->graphs : &b->calls, s);
    return fill(gate, s, rounds, call);
}

/* ---- ringing ---- */

/* Behind a release nothing waits: it has set the words before, or is seen here. */
void kl_gpu_bell_ring(void *arg)
{
    struct kl_gpu_bell *bell = arg;
    struct kl_gpu_belfry *b = &bell->gate->belfry;
    struct kl_gpu_bell *last = kl_load_relaxed(&b->rung);

    if (!bell->word) kl_fetch_add_acq_rel(&bell->gate->arrived, 1);
    if (kl_load_seq_cst(&b->released)) {
        if (bell->word) kl_store_release(bell->word, 1);
        return;
    }
    do bell->next = last;
    while (!kl_cas_acq_rel(&b->rung, &last, bell)); /* pairs with kl_gpu_bells_take */
    if (kl_load_seq_cst(&b->released) && bell->word) kl_store_release(bell->word, 1);
    kl_idle_notify();
}

struct kl_gpu_bell *kl_gpu_bells_take(struct kl_gpu_belfry *b)
{
    if (!b->next && kl_load_relaxed(&b->rung)) {
        struct kl_gpu_bell *last = kl_swap_acq_rel(&b->rung, NULL); /* pairs with kl_gpu_bell_ring */
        while (last) {
            struct kl_gpu_bell *before = last->next;
            last->next = b->next;
            b->next = last;
            last = before;
        }
    }
    struct kl_gpu_bell *first = b->next;
    if (first) b->next = first->next;
    return first;
}

/* A graph's bell may ring again at once, and a call's set be used again. */
void kl_gpu_bell_tell(struct kl_gpu_bell *bell)
{
    struct kl_gpu_gate *gate = bell->gate;
    struct kl_gpu_bells *set = bell->set;
    const uint64_t number = bell->number;

    if (bell->word) {
        kl_store_release(bell->word, 1);
        return;
    }
    kl_fetch_sub_acq_rel(&set->left, 1); /* pairs with reuse */
    kl_gpu_gate_tell(gate, number);
}

void kl_gpu_bells_release(struct kl_gpu_belfry *b)
{
    (void)kl_swap_seq_cst(&b->released, true);
    kl_gpu_words_release(&b->words);
}

/* ---- the end ---- */

static void free_sets(struct kl_gpu_bells *s)
{
    for (struct kl_gpu_bells *next; s; s = next) {
        next = s->next;
        free(s);
    }
}

void kl_gpu_bells_free(struct kl_gpu_belfry *b, const struct kl_cuda_driver *driver)
{
    free_sets(b->calls);
    free_sets(b->graphs);
    kl_gpu_words_free(&b->words, driver);
}
