/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/device.h"

#include "base/atomic.h"
#include "base/threadlocal.h"

static KL_THREAD_LOCAL int asked = -1, chosen = -1;
static _Atomic int first_adopted = -1; /* for threads that never chose: where the process's work is */

void kl_device_set(int device)
{
    asked = chosen = device;
}

int kl_device_asked(void)
{
    return asked;
}

int kl_device_chosen(void)
{
    return chosen;
}

void kl_device_adopt(int device)
{
    int none = -1;

    if (chosen < 0) chosen = device;
    kl_cas_acq_rel(&first_adopted, &none, device);
}

int kl_device_current(void)
{
    int adopted = kl_load_relaxed(&first_adopted);

    if (chosen >= 0) return chosen;
    return adopted >= 0 ? adopted : 0;
}

int kl_device_node(int device, int count, const int *nodes, int nnodes)
{
    if (nnodes <= 1) return nnodes == 1 && nodes[0] > 0 ? nodes[0] : 0;
    return nodes[(long)(device % count) * nnodes / count];
}
