/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/refuse.h"

static _Thread_local koloReason_t last;

void kl_refuse(koloReason_t reason)
{
    last = reason;
}

koloReason_t kl_refuse_reason(void)
{
    koloReason_t reason = last;

    last = koloReasonNone;
    return reason;
}
