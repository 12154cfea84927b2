/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"
#include "comm/diagnosis/flight_file.h"
#include "comm/diagnosis/trace_file.h"

#include <stdio.h>
#include <string.h>

const char *kl_comm_describe(ncclComm_t comm, int rank, char *text, size_t size)
{
    const struct kl_peer *p = comm->peers && rank >= 0 && rank < comm->nranks ? &comm->peers[rank] : NULL;

    if (p)
        snprintf(text, size, "rank %d (host %s, pid %d)", rank, p->host_name, p->pid);
    else
        snprintf(text, size, "rank %d", rank);
    return text;
}

/* An error of this rank's system calls does not name the rank: tell the others. */
static void write_text(ncclComm_t comm, int culprit, ncclResult_t code, const char *text, char *to, size_t size)
{
    char me[128], rank[32];

    snprintf(rank, sizeof rank, "rank %d ", comm->rank);
    if (code == ncclSystemError && culprit == comm->rank && strncmp(text, rank, strlen(rank)))
        snprintf(to, size, "%s: %.*s", kl_comm_describe(comm, culprit, me, sizeof me), (int)(size - sizeof me - 4),
                 text);
    else
        snprintf(to, size, "%s", text);
}

/* Under lock. The thread that returns the failure to the program may be the last to run in this process: send and write
 * everything before. */
static bool record(ncclComm_t comm, int culprit, ncclResult_t code, const char *text, bool tell)
{
    if (kl_load_relaxed(&comm->failed)) return false;
    write_text(comm, culprit, code, text, comm->failure.text, sizeof comm->failure.text);
    kl_store_release(&comm->failure.is_written, 1); /* pairs with kl_comm_on_left */
    if (tell && comm->bootstrap) kl_bootstrap_report(comm->bootstrap, culprit, code, comm->failure.text);
    if (!kl_load_acquire(&comm->phase)) {
        kl_flight_on_failure(comm, code, comm->failure.text);
        kl_trace_write(comm);
    }
    kl_store_release(&comm->failed, (uint32_t)code); /* pairs with kl_comm_failure */
    return true;
}

/* Under its parent's lock, so that it stays. Waits for other ranks in it end. */
static void fail_child(struct ncclComm *child, ncclResult_t code, const char *text)
{
    pthread_mutex_lock(&child->failure.lock);
    record(child, child->rank, code, text, false);
    if (child->job.bootstrap) kl_bootstrap_abort(child->job.bootstrap);
    pthread_mutex_unlock(&child->failure.lock);
}

void kl_comm_fail(ncclComm_t comm, int culprit, ncclResult_t code, const char *text, bool tell)
{
    pthread_mutex_lock(&comm->failure.lock);
    bool first = record(comm, culprit, code, text, tell);
    if (first && comm->job.child && comm->job.child_follows) fail_child(comm->job.child, code, text);
    pthread_mutex_unlock(&comm->failure.lock);
    void (*end_waits)(struct ncclComm *) = kl_load_acquire(&comm->end_waits); /* pairs with kl_comm_join_gpus */
    if (first && end_waits) end_waits(comm);
    if (first && comm->tagged) kl_tagged_fail(comm->tagged);
}

ncclResult_t kl_comm_adopt_failure(ncclComm_t comm)
{
    kl_error_adopt(comm->failure.text); /* the text was stored before the failure: kl_comm_failure */
    return (ncclResult_t)kl_load_relaxed(&comm->failed);
}

ncclResult_t kl_comm_failure_unless_revoked(ncclComm_t comm)
{
    return kl_load_acquire(&comm->revoked) ? ncclSuccess : kl_comm_failure(comm); /* pairs with kl_comm_revoke */
}

const char *kl_comm_failure_text(ncclComm_t comm)
{
    return kl_load_acquire(&comm->failed) ? comm->failure.text : "";
}

/* ---- other ranks end the communicator ---- */

void kl_comm_set_abort_target(struct ncclComm *comm, struct kl_bootstrap *bootstrap)
{
    pthread_mutex_lock(&comm->failure.lock);
    comm->job.bootstrap = bootstrap;
    if (bootstrap && kl_load_relaxed(&comm->failed))
        kl_bootstrap_abort(bootstrap); /* the failure came before the
                                                                                     * bootstrap */
    pthread_mutex_unlock(&comm->failure.lock);
}

void kl_comm_set_child(struct ncclComm *parent, struct ncclComm *child, bool follows)
{
    pthread_mutex_lock(&parent->failure.lock);
    parent->job.child = child;
    parent->job.child_follows = follows;
    uint32_t failed = kl_load_relaxed(&parent->failed);
    if (failed && child && (follows || kl_load_relaxed(&parent->job.ended)))
        fail_child(child, (ncclResult_t)failed, parent->failure.text);
    pthread_mutex_unlock(&parent->failure.lock);
}

void kl_comm_stop(struct ncclComm *comm, const char *text)
{
    pthread_mutex_lock(&comm->failure.lock);
    if (comm->job.bootstrap) {
        kl_bootstrap_report(comm->job.bootstrap, comm->rank, ncclRemoteError, text);
        kl_bootstrap_abort(comm->job.bootstrap);
    }
    pthread_mutex_unlock(&comm->failure.lock);
}

void kl_comm_stop_children(struct ncclComm *comm, const char *text)
{
    pthread_mutex_lock(&comm->failure.lock);
    kl_store_release(&comm->job.ended, true);
    if (comm->job.child) fail_child(comm->job.child, ncclInternalError, text);
    pthread_mutex_unlock(&comm->failure.lock);
}
