/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/multicast_setting.h"

#include "base/atomic.h"
#include "compat/cuda/core/device.h"

#include <stdlib.h>
#include <string.h>

enum setting { BY_MACHINE, OFF, ON, UNREADY };

static enum setting setting(void)
{
    static _Atomic int known = -1;
    int value = kl_load_relaxed(&known);

    if (value >= 0) return (enum setting)value;
    const char *text = getenv("KOLO_CUDA_MULTICAST");
    value = !text || !*text ? BY_MACHINE : !strcmp(text, "0") ? OFF : !strcmp(text, "unready") ? UNREADY : ON;
    kl_store_relaxed(&known, value);
    return (enum setting)value;
}

static bool has_switches(const struct kl_cuda_device *d)
{
    int n = 0;

    while (n < d->nlinks && d->link[n].end != KL_CUDA_LINK_SWITCH) n++;
    return n < d->nlinks;
}

bool kl_cuda_multicast_supported(const struct kl_cuda_device *d)
{
    if (setting() == BY_MACHINE) return d->sm >= 90 && has_switches(d);
    return setting() != OFF;
}

bool kl_cuda_multicast_ready(void)
{
    return setting() != UNREADY;
}
