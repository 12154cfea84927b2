/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "rma/state.h"

#include <stdio.h>

void kl_rma_hold(struct kl_rma *r, int culprit, ncclResult_t rc, const char *about)
{
    struct kl_rma_held *h = &r->held;

    if (kl_swap_acquire(&h->taken, true)) return;
    h->rc = rc;
    h->culprit = culprit;
    snprintf(h->text, sizeof h->text, "%s%.900s", about, kl_error_text());
    kl_store_release(&h->since, kl_now_ns()); /* pairs with report_held */
}
