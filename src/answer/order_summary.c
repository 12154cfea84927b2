/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/order.h"
#include "base/text.h"

#include <stdlib.h>

const struct kl_order_range *kl_order_range_at(const struct kl_order *o, int block, int64_t element)
{
    for (int i = 0; i < o->ranges.n; i++) {
        const struct kl_order_range *r = &o->ranges.range[i];

        if (r->block == block && element >= r->first && element < r->first + r->count) return r;
    }
    return NULL;
}

char *kl_order_expression(const struct kl_order *o, int sum)
{
    size_t size = (size_t)o->rules.nranks * 12 + 64;
    char *buffer = malloc(size);
    struct kl_text text;

    if (!buffer) return NULL;
    text = kl_text_in(buffer, size);
    kl_order_sum_text(o->sums, sum, &text);
    return buffer;
}

void kl_order_summary(const struct kl_order *o, struct kl_text *to)
{
    const struct kl_tuning_choice *c = &o->op->choice;
    const enum kl_order_result counts = o->verdict[KL_ORDER_AT_COUNTS].answer;
    int used = o->op->last_channel - o->op->first_channel + 1;

    kl_text_add(to, "%s %s, %d channel%s", kl_algo_name[c->algo], kl_proto_name[c->proto], used, kl_plural(used));
    if (kl_order_undefined(c->algo)) {
        kl_text_add(to, ": the order is undefined here");
        return;
    }
    kl_text_add(to, ", %d %ssum%s; ", o->nsums, o->nsums > 1 ? "different " : "", kl_plural(o->nsums));
    if (o->exact || o->rules.nranks <= 2)
        kl_text_add(to, "the bits do not depend on the order");
    else if (counts == KL_ORDER_YES)
        kl_text_add(to, "an element's order is the same at all counts");
    else
        kl_text_add(to, "an element's order %s with the count", counts == KL_ORDER_NO ? "changes" : "may change");
}
