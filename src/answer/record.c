/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/record.h"

#include "base/error.h"
#include "base/text.h"
#include "topo/xml.h"

#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

bool kl_record_answer_suits(const struct kl_named_text *t, int n)
{
    char *text = NULL;
    size_t bytes = t->bytes;
    bool suits = false;

    if (n < 1) return false;
    if (t->text) return kl_record_reads(kl_input_of(t->text, t->bytes).kind);
    const int quiet = kl_error_quiet(1);

    if (strcmp(t->name, "-") && !kl_xml_read(t->name, &text, &bytes))
        suits = kl_record_reads(kl_input_of(text, bytes).kind);
    kl_error_quiet(quiet);
    free(text);
    return suits;
}

static ncclResult_t read_text(struct kl_record *r, const struct kl_named_text *t)
{
    char *text;
    size_t bytes;

    if (t->text) return kl_record_add(r, t->name, t->text, t->bytes);
    KL_TRY(kl_xml_read(t->name, &text, &bytes));
    ncclResult_t rc = kl_record_add(r, kl_text_input(t->name), text, bytes);

    free(text);
    return rc;
}

/* ---- sums ---- */

/* Names are kept once each. */
static bool are_alike(const struct kl_record_call *a, const struct kl_record_call *b)
{
    return a->kind == b->kind && a->name == b->name && a->type == b->type && a->op == b->op &&
           a->algorithm == b->algorithm && a->protocol == b->protocol && a->bytes == b->bytes && a->in == b->in;
}

static struct kl_record_sum *sum_of(struct kl_record_answer *a, const struct kl_record_call *c)
{
    for (int i = a->nsum - 1; i >= 0; i--)
        if (are_alike(a->sum[i].like, c)) return &a->sum[i];
    if (a->nsum == KL_RECORD_SUMS) return NULL;
    a->sum[a->nsum] = (struct kl_record_sum){.like = c};
    return &a->sum[a->nsum++];
}

static void add_call(struct kl_record_answer *a, const struct kl_record_call *c)
{
    struct kl_record_sum *s = c->kind == KL_CALL_BATCH ? NULL : sum_of(a, c);

    if (!s) return;
    s->n++;
    if (c->took_us < 0) return;
    if (!s->timed || c->took_us < s->least_us) s->least_us = c->took_us;
    if (!s->timed || c->took_us > s->most_us) s->most_us = c->took_us;
    s->timed++;
    s->total_us += c->took_us;
}

static int by_time(const void *a, const void *b)
{
    const struct kl_record_sum *x = a, *y = b;

    if (x->total_us != y->total_us) return x->total_us > y->total_us ? -1 : 1;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return x->like < y->like ? -1 : x->like > y->like;
}

/* ---- all ---- */

ncclResult_t kl_record_answer_make(const struct kl_named_text *text, int n, struct kl_record_answer *a)
{
    memset(a, 0, sizeof *a);
    kl_record_init(&a->record);
    for (int i = 0; i < n; i++) KL_TRY(read_text(&a->record, &text[i]));
    KL_TRY(kl_record_judge(&a->record));
    for (int i = 0; i < a->record.ncall; i++) add_call(a, &a->record.call[i]);
    if (a->nsum) qsort(a->sum, (size_t)a->nsum, sizeof *a->sum, by_time);
    return ncclSuccess;
}

void kl_record_answer_fini(struct kl_record_answer *a)
{
    kl_record_fini(&a->record);
}
