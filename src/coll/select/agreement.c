/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/select/agreement.h"

/* Asking costs all ranks a round: it pays while one in so many collectives is done directly. */
enum { WORTH = 8 };

void kl_agreement_init(struct kl_agreement *a, const struct kl_select_facts *facts)
{
    *a = (struct kl_agreement){.asks = facts->direct && !kl_select_says(facts, KL_SELECT_STAGED), .next = UINT64_MAX};
    kl_select_make(&a->select, facts);
}

static bool is_fixed(const struct kl_agreement *a)
{
    return kl_select_says(&a->select.facts, KL_SELECT_FIXED);
}

/* The first exchange begins the count: all ranks have shared memory for notices then. */
void kl_agreement_made(struct kl_agreement *a, enum kl_agreed agreed, uint64_t number)
{
    if (a->next == UINT64_MAX && !is_fixed(a)) a->next = number + KL_AGREEMENT_LEAST;
    a->direct += agreed == KL_AGREED_DIRECT;
    a->staged += agreed != KL_AGREED_DIRECT;
    a->over = agreed == KL_AGREED_STAGED || agreed == KL_AGREED_REFUSED;
    a->unreadable |= agreed == KL_AGREED_REFUSED || agreed == KL_AGREED_REPAIRED;
}

static bool should_ask(const struct kl_agreement *a, bool exported)
{
    if (!a->select.facts.direct || kl_select_says(&a->select.facts, KL_SELECT_STAGED)) return false;
    return exported || (a->direct && WORTH * (uint64_t)a->direct >= a->staged);
}

struct kl_agreement_notice kl_agreement_say(struct kl_agreement *a, bool exported, uint32_t line_ns, uint32_t number,
                                            uint64_t now)
{
    const uint32_t made_for = a->select.line_ns[0];

    if (kl_load_relaxed(&a->frozen)) return (struct kl_agreement_notice){.line_ns = made_for, .asks = a->asks};
    const bool replaces = kl_line_watch(&a->watch, made_for, line_ns, number, now);

    return (struct kl_agreement_notice){.line_ns = replaces ? line_ns : made_for, .asks = should_ask(a, exported)};
}

static uint64_t distance(size_t bytes)
{
    const uint64_t n = KL_AGREEMENT_BYTES / (bytes ? bytes : 1);

    return n < KL_AGREEMENT_LEAST ? KL_AGREEMENT_LEAST : n > KL_AGREEMENT_MOST ? KL_AGREEMENT_MOST : n;
}

bool kl_agreement_on_notice(struct kl_agreement *a, struct kl_agreement_notice notice, uint64_t number, size_t bytes)
{
    const bool replaced = notice.line_ns != a->select.line_ns[0];

    a->heard++;
    a->asks = notice.asks;
    a->direct = a->staged = 0;
    a->next = number + distance(bytes);
    if (replaced) kl_select_remake(&a->select, notice.line_ns, false);
    return replaced;
}
