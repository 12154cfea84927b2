/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/net/context.h"

#include "base/error.h"

#include <stdlib.h>
#include <unistd.h>

ncclResult_t kl_net_context_listen(struct kl_net_context *home, int device, const struct kl_net_handle **handle)
{
    const struct kl_net_end me = {.secret = home->secret, .rank = home->rank, .peer = -1};

    if (device < 0 || device >= KL_NET_DEVICES)
        return KL_FAIL(ncclInternalError, "network device %d: at most %d are used", device, KL_NET_DEVICES);
    if (!home->device[device].listener)
        KL_TRY(home->net->listen(device, &me, &home->device[device].handle, &home->device[device].listener));
    *handle = &home->device[device].handle;
    return ncclSuccess;
}

void kl_net_context_fini(struct kl_net_context *home)
{
    for (int i = 0; i < KL_NET_DEVICES; i++)
        if (home->device[i].listener) home->net->close_listen(home->device[i].listener);
    for (int i = 0; i < home->nwakeups; i++) close(home->wakeup[i].fd);
    free(home->wakeup);
    kl_key_wipe(&home->secret);
    *home = (struct kl_net_context){.net = NULL};
}
