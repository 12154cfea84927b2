/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/notice.h"

#include "coll/gpu/gate.h"
#include "device/host/idle.h"

#include <stdlib.h>

/** Of a call, in one piece of memory: notices, tasks, operators. */
struct kl_gpu_notice_set {
    struct kl_gpu_notice_set *next;
    size_t bytes;
    _Atomic size_t left; /* of a call: notices without an answer */
    struct kl_gpu_notice *notice;
    struct kl_task *task;
    struct kl_redop *redop;
};

/* ---- making ---- */

static size_t align(size_t bytes)
{
    return (bytes + KL_LINE - 1) / KL_LINE * KL_LINE;
}

/* Sets their places in memory of bytes_of. */
static void place(struct kl_gpu_notice_set *s, const struct kl_gpu_rounds *rounds)
{
    char *at = (char *)s + align(sizeof *s);

    s->notice = (struct kl_gpu_notice *)(void *)at;
    at += align(rounds->nrounds * sizeof *s->notice);
    s->task = (struct kl_task *)(void *)at;
    s->redop = (struct kl_redop *)(void *)(at + align(rounds->ntravels * sizeof *s->task));
}

static size_t bytes_of(const struct kl_gpu_rounds *rounds)
{
    return align(sizeof(struct kl_gpu_notice_set)) + align(rounds->nrounds * sizeof(struct kl_gpu_notice)) +
           align(rounds->ntravels * sizeof(struct kl_task)) + align(rounds->ntravels * sizeof(struct kl_redop));
}

/* The oldest set of a call is the first one to have all answers. */
static struct kl_gpu_notice_set *reuse(struct kl_gpu_notices *b, size_t bytes)
{
    struct kl_gpu_notice_set *oldest = b->calls;

    if (!oldest || oldest->bytes < bytes || kl_load_acquire(&oldest->left))
        return NULL; /* pairs with kl_gpu_notice_answer */
    b->calls = oldest->next;
    return oldest;
}

static struct kl_gpu_notice_set *allocate(size_t bytes)
{
    struct kl_gpu_notice_set *s = aligned_alloc(KL_LINE, bytes);

    if (s) s->bytes = bytes;
    return s;
}

static void append(struct kl_gpu_notice_set **link, struct kl_gpu_notice_set *s)
{
    while (*link) link = &(*link)->next;
    s->next = NULL;
    *link = s;
}

/* The program may destroy its operators, and call again. */
static void copy_tasks(struct kl_gpu_notice_set *s, const struct kl_gpu_rounds *rounds)
{
    for (size_t i = 0; i < rounds->ntravels; i++) {
        s->task[i] = rounds->travel[i].task;
        if (!s->task[i].redop) continue;
        s->redop[i] = *s->task[i].redop;
        s->task[i].redop = &s->redop[i];
    }
}

static ncclResult_t fill(struct kl_gpu_gate *gate, struct kl_gpu_notice_set *s, struct kl_gpu_rounds *rounds,
                         const struct kl_gpu_call *call)
{
    for (size_t i = 0; i < rounds->nrounds; i++) {
        struct kl_gpu_round *r = &rounds->round[i];
        struct kl_gpu_notice *notice = r->notice = &s->notice[i];
        *notice = (struct kl_gpu_notice){.gate = gate,
                                         .set = s,
                                         .task = &s->task[r->travel],
                                         .ntasks = r->ntravels,
                                         .stream = rounds->travel[r->travel].op->stream};
        if (call->capture)
            KL_TRY(kl_gpu_words_take(&gate->notices.words, gate->context->driver, &notice->word, &notice->word_at));
    }
    return ncclSuccess;
}

ncclResult_t kl_gpu_notices_make(struct kl_gpu_gate *gate, struct kl_gpu_rounds *rounds, const struct kl_gpu_call *call)
{
    struct kl_gpu_notices *b = &gate->notices;
    const size_t bytes = bytes_of(rounds);
    struct kl_gpu_notice_set *s = call->capture ? NULL : reuse(b, bytes);

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
void kl_gpu_notice_give(void *arg)
{
    struct kl_gpu_notice *notice = arg;
    struct kl_gpu_notices *b = &notice->gate->notices;
    struct kl_gpu_notice *last = kl_load_relaxed(&b->given);

    if (!notice->word) kl_fetch_add_acq_rel(&notice->gate->arrived, 1);
    if (kl_load_seq_cst(&b->released)) {
        if (notice->word) kl_store_release(notice->word, 1);
        return;
    }
    do notice->next = last;
    while (!kl_cas_acq_rel(&b->given, &last, notice)); /* pairs with kl_gpu_notices_take */
    if (kl_load_seq_cst(&b->released) && notice->word) kl_store_release(notice->word, 1);
    kl_idle_notify();
}

struct kl_gpu_notice *kl_gpu_notices_take(struct kl_gpu_notices *b)
{
    if (!b->next && kl_load_relaxed(&b->given)) {
        struct kl_gpu_notice *last = kl_swap_acq_rel(&b->given, NULL); /* pairs with kl_gpu_notice_give */
        while (last) {
            struct kl_gpu_notice *before = last->next;
            last->next = b->next;
            b->next = last;
            last = before;
        }
    }
    struct kl_gpu_notice *first = b->next;
    if (first) b->next = first->next;
    return first;
}

/* A graph's notice may be given again at once, and a call's set be used again. */
uint64_t kl_gpu_notice_answer(struct kl_gpu_notice *notice)
{
    struct kl_gpu_notice_set *set = notice->set;
    const uint64_t number = notice->number;

    if (notice->word) {
        kl_store_release(notice->word, 1);
        return 0;
    }
    kl_fetch_sub_acq_rel(&set->left, 1); /* pairs with reuse */
    return number;
}

void kl_gpu_notices_release(struct kl_gpu_notices *b)
{
    (void)kl_swap_seq_cst(&b->released, true);
    kl_gpu_words_release(&b->words);
}

/* ---- the end ---- */

static void free_sets(struct kl_gpu_notice_set *s)
{
    for (struct kl_gpu_notice_set *next; s; s = next) {
        next = s->next;
        free(s);
    }
}

void kl_gpu_notices_free(struct kl_gpu_notices *b, const struct kl_cuda_driver *driver)
{
    free_sets(b->calls);
    free_sets(b->graphs);
    kl_gpu_words_free(&b->words, driver);
}
