/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/window.h"

#include <stdio.h>
#include <stdlib.h>

/* What a rank says of its buffer. */
struct offer {
    uint64_t bytes;
    int32_t flags;
    int32_t failed; /* an ncclResult_t */
};

static ncclResult_t check_offers(const struct ncclComm *comm, const struct offer *offers)
{
    const struct offer *mine = &offers[comm->rank];

    for (int r = 0; r < comm->nranks; r++) {
        if (offers[r].flags != mine->flags)
            return KL_FAIL(ncclInvalidUsage,
                           "ncclCommWindowRegister: rank %d has flags %d, rank %d has %d: they must agree", r,
                           offers[r].flags, comm->rank, mine->flags);
        if (offers[r].failed && r != comm->rank)
            return KL_FAIL(ncclRemoteError, "ncclCommWindowRegister: rank %d could not register its buffer", r);
    }
    return ncclSuccess;
}

static ncclResult_t meet(struct ncclComm *comm, const struct offer *mine)
{
    struct offer *offers = calloc((size_t)comm->nranks, sizeof *offers);

    if (!offers) return KL_NOMEM("a window");
    offers[comm->rank] = *mine;
    kl_bootstrap_phase(comm->bootstrap, "window");
    ncclResult_t rc = kl_bootstrap_allgather(comm->bootstrap, offers, sizeof *offers);
    if (!rc && !mine->failed) rc = check_offers(comm, offers);
    free(offers);
    return rc;
}

static ncclResult_t open_window(struct ncclComm *comm, void *ptr, size_t bytes, int flags, ncclWindow_t *window)
{
    char text[KL_ERROR_TEXT];
    uintptr_t handle = 0;
    ncclResult_t rc = kl_registry_add(&comm->windows, comm->devices, ptr, bytes, &handle);
    struct offer mine = {.bytes = bytes, .flags = flags, .failed = (int32_t)rc};

    snprintf(text, sizeof text, "%s", kl_error_text());
    ncclResult_t met = meet(comm, &mine);
    if (rc) kl_error_adopt(text);
    if (met && !rc) (void)kl_registry_remove(&comm->windows, comm->devices, kl_registry_find(&comm->windows, handle));
    if (!rc) rc = met;
    if (!rc) *window = (ncclWindow_t)handle;
    return rc;
}

ncclResult_t kl_comm_open_window(struct ncclComm *comm, void *ptr, size_t bytes, int flags, ncclWindow_t *window)
{
    return kl_job_end(comm, open_window(comm, ptr, bytes, flags, window));
}
