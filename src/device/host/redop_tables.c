/* SPDX-License-Identifier: Apache-2.0 */
/* Architectures with one instruction set. */
#include "device/host/redop_table.h"

static bool always(void)
{
    return true;
}

const struct kl_redop_table kl_redop_tables[] = {
    {"baseline", always, kl_redop_baseline},
    {"smallfloat", always, kl_redop_smallfloat},
    {NULL, NULL, NULL},
};
