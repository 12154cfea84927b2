/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cancel.h"

#include "base/error.h"
#include "os/wakeup_fd.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

ncclResult_t kl_cancel_init(struct kl_cancel *cancel)
{
    int fd = kl_wakeup_open();

    if (fd < 0) return KL_FAIL_ERRNO("cannot create an event descriptor");
    cancel->fd = fd;
    return ncclSuccess;
}

void kl_cancel_fini(struct kl_cancel *cancel)
{
    if (cancel->fd >= 0) close(cancel->fd);
    cancel->fd = -1;
}

void kl_cancel_raise(const struct kl_cancel *cancel)
{
    kl_wakeup_signal(cancel->fd);
}
