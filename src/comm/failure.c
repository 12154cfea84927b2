/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"
#include "comm/watch/flight_file.h"
#include "comm/watch/trace_file.h"

#include <stdio.h>

const char *kl_comm_describe(ncclComm_t comm, int rank, char *text, size_t size)
{
    const struct kl_peer *p = comm->peers && rank >= 0 && rank < comm->nranks ? &comm->peers[rank] : NULL;

    if (p)
        snprintf(text, size, "rank %d (host %s, pid %d)", rank, p->host_name, p->pid);
    else
        snprintf(text, size, "rank %d", rank);
    return text;
}

/* Whoever returns the failure to the program may be the last to run in this process: all has been told and written before. */
void kl_comm_fail(ncclComm_t comm, int culprit, ncclResult_t code, const char *text, bool tell)
{
    struct kl_failure *f = &comm->failure;

    pthread_mutex_lock(&f->lock);
    if (kl_load_relaxed(&comm->failed) == ncclSuccess) {
        snprintf(f->text, sizeof f->text, "%s", text);
        if (tell && comm->bootstrap) kl_bootstrap_report(comm->bootstrap, culprit, code, text);
        if (!kl_load_acquire(&comm->phase)) {
            kl_flight_on_failure(comm, code, f->text);
            kl_trace_write(comm);
        }
        kl_store_release(&comm->failed, (uint32_t)code); /* pairs with kl_comm_failure */
    }
    pthread_mutex_unlock(&f->lock);
}

ncclResult_t kl_comm_failure(ncclComm_t comm)
{
    ncclResult_t rc = (ncclResult_t)kl_load_acquire(&comm->failed); /* pairs with kl_comm_fail: the text is there */

    if (rc) kl_error_adopt(comm->failure.text);
    return rc;
}

const char *kl_comm_failure_text(ncclComm_t comm)
{
    return kl_load_acquire(&comm->failed) ? comm->failure.text : "";
}
