/* SPDX-License-Identifier: Apache-2.0 */
/**
 * at_exit.c - a process that ends leaves the communicators that it has not destroyed, if they are idle.
 *
 * Otherwise its connections would just break, as those of a rank that died: that would fail ranks that are still in the
 * last operation, although this rank has completed its part of it. With an operation in progress here, this rank does
 * count as dead.
 *
 * Deadline: other threads still run, and one may be stopped, or interrupted by the handler that has called exit, while
 *           it holds a lock. So a separate thread does it, and the exiting thread waits for that with a timeout.
 * Fork:     an ending child sends nothing: its communicators belong to the parent.
 */
#include "comm/comm.h"

#include "base/clock.h"
#include "os/thread.h"

#include <stdlib.h>
#include <unistd.h>

enum { TIMEOUT_MS = 3000 };

/* Static, as the thread may outlive the wait for it. */
static struct {
    struct kl_thread thread;
    ncclComm_t *handle;
    size_t n, room;
} leaving;

/* Is all requested work done? Called from inside; more may be requested a moment later. */
static bool is_idle(struct ncclComm *comm)
{
    uint32_t busy = kl_load_acquire(&comm->busy); /* pairs with kl_job_cancel: the communicator is complete */

    if (busy != KL_IDLE && busy != KL_SUSPENDED) return false;
    if (kl_load_acquire(&comm->failed) || kl_load_acquire(&comm->in_group) != KL_GROUP_NONE) return false;
    if (kl_load_acquire(&comm->joins_left)) return false;
    return kl_load_acquire(&comm->tasks_taken) == kl_load_acquire(&comm->tasks_done);
}

/* A child that was made without the handlers of fork(2) has them too. */
static bool is_ours(const struct ncclComm *comm)
{
    return comm->peers && comm->peers[comm->rank].pid == (int32_t)getpid();
}

static bool has_room(void)
{
    size_t room = leaving.room ? 2 * leaving.room : 16;

    if (leaving.n < leaving.room) return true;
    ncclComm_t *handle = realloc(leaving.handle, room * sizeof(ncclComm_t));
    if (!handle) return false;
    leaving.handle = handle;
    leaving.room = room;
    return true;
}

static void collect(struct ncclComm *comm, void *ctx)
{
    (void)ctx;
    if (is_idle(comm) && is_ours(comm) && has_room()) leaving.handle[leaving.n++] = comm->handle;
}

/* Once it is closed no call can enter; a thread that is inside may be stuck there. */
static void leave(ncclComm_t handle)
{
    struct ncclComm *comm = kl_handle_try(handle);

    if (!comm) return;
    bool mine = kl_handle_callers(handle) == 1 && kl_handle_close(comm);
    kl_handle_leave(comm);
    if (!mine) return;
    kl_handle_drain(comm);
    if (is_idle(comm)) kl_comm_destroy(comm);
}

static void leave_all(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < leaving.n; i++) leave(leaving.handle[i]);
}

__attribute__((destructor)) static void end_of_process(void)
{
    kl_handle_each(collect, NULL);
    if (!leaving.n) return;
    if (kl_thread_start(&leaving.thread, "kolo-exit", leave_all, NULL))
        return; /* it then looks like a rank that died */
    kl_thread_join_by(&leaving.thread, kl_deadline_in_ms(TIMEOUT_MS));
}
