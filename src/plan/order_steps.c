/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/order_steps.h"

#include "base/error.h"

#include <stdlib.h>

/* Number the additions: operands come first in the list. */
static void number(struct kl_order_steps *steps, int *ready)
{
    for (int i = 0; i < steps->n; i++) {
        struct kl_order_step *s = &steps->step[i];
        int own = ready[s->by], other = ready[s->from];

        s->step = 1 + (own > other ? own : other);
        ready[s->by] = s->step;
    }
}

ncclResult_t kl_order_steps_of(const struct kl_order *o, const struct kl_order_range *range,
                               struct kl_order_steps *steps)
{
    const int n = o->rules.nranks;
    int *ready = calloc((size_t)n, sizeof *ready);

    *steps = (struct kl_order_steps){.step = malloc((size_t)n * sizeof *steps->step), .room = n};
    if (!ready || !steps->step) {
        free(ready);
        return KL_NOMEM("additions");
    }
    o->sums->steps = steps;
    int sum = kl_order_sum_at(&o->rules, &o->wires, o->sums, o->op->choice.algo, range->channel,
                              range->end < 0 ? 0 : range->end);

    o->sums->steps = NULL;
    number(steps, ready);
    free(ready);
    return sum < 0 ? KL_NOMEM("sums") : ncclSuccess;
}

void kl_order_steps_fini(struct kl_order_steps *steps)
{
    free(steps->step);
    *steps = (struct kl_order_steps){.n = 0};
}

bool kl_order_steps_of_nodes(const struct kl_order *o)
{
    return o->op->choice.algo == KL_ALGO_NVLS_TREE;
}
