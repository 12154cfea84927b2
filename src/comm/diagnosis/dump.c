/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/dump.h"

#include "base/log.h"
#include "comm/comm.h"
#include "comm/diagnosis/flight_file.h"
#include "event/loop.h"
#include "os/wakeup_fd.h"

#include <signal.h>
#include <unistd.h>

_Atomic uint32_t kl_dump_asked;

static struct {
    pthread_mutex_t lock;
    int users, number; /* of the signal; under lock, as the fields below but `wakeup_fd` */
    struct sigaction before;
    struct kl_loop *loop;
    struct kl_source *source;
    _Atomic int wakeup_fd; /* wakeup descriptor that the handler writes to; -1: none */
} armed = {.lock = PTHREAD_MUTEX_INITIALIZER, .wakeup_fd = -1};

/* ---- the signal ---- */

static void on_signal(int number)
{
    int wakeup_fd = kl_load_relaxed(&armed.wakeup_fd);

    (void)number;
    kl_fetch_add_relaxed(&kl_dump_asked, 1);
    if (wakeup_fd >= 0) kl_wakeup_signal(wakeup_fd);
}

static void answer(void *ctx, uint32_t events)
{
    (void)ctx, (void)events;
    kl_wakeup_clear(kl_load_relaxed(&armed.wakeup_fd));
    kl_log_asked("state of operations (NCCL_PROXY_DUMP_SIGNAL): communicators with waiting operations print the ranks "
                 "that they wait for");
    kl_flight_on_signal();
}

static ncclResult_t open_wakeup_fd(void)
{
    int wakeup_fd = kl_wakeup_open();

    if (wakeup_fd < 0) return KL_FAIL_ERRNO("cannot serve NCCL_PROXY_DUMP_SIGNAL");
    kl_store_relaxed(&armed.wakeup_fd, wakeup_fd);
    KL_TRY(kl_loop_ref(&armed.loop));
    return kl_loop_add(armed.loop, wakeup_fd, EPOLLIN, answer, NULL, &armed.source);
}

static void close_wakeup_fd(void)
{
    int wakeup_fd = kl_load_relaxed(&armed.wakeup_fd);

    kl_source_remove(armed.source);
    kl_loop_unref(armed.loop);
    kl_store_relaxed(&armed.wakeup_fd, -1);
    if (wakeup_fd >= 0) close(wakeup_fd);
    armed.source = NULL;
    armed.loop = NULL;
}

static ncclResult_t take_signal(int number)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    ncclResult_t rc = open_wakeup_fd();

    if (!rc && sigaction(number, &action, &armed.before))
        rc = KL_FAIL_ERRNO("NCCL_PROXY_DUMP_SIGNAL=%d is no signal that could be taken", number);
    if (rc) close_wakeup_fd();
    armed.number = number;
    return rc;
}

ncclResult_t kl_dump_arm(int number)
{
    ncclResult_t rc = ncclSuccess;

    pthread_mutex_lock(&armed.lock);
    if (!armed.users) rc = take_signal(number);
    if (!rc) armed.users++;
    pthread_mutex_unlock(&armed.lock);
    return rc;
}

void kl_dump_disarm(void)
{
    pthread_mutex_lock(&armed.lock);
    if (!--armed.users) {
        sigaction(armed.number, &armed.before, NULL);
        close_wakeup_fd();
    }
    pthread_mutex_unlock(&armed.lock);
}

/* ---- the state ---- */

static void print(void *ctx, const char *line)
{
    ncclComm_t comm = ctx;

    kl_log_asked("  rank %d: %s", comm->rank, line);
}

void kl_comm_dump(ncclComm_t comm)
{
    const struct kl_task *t = kl_comm_task(comm, comm->cursor);

    kl_log_asked("rank %d of %d: %s of %zu elements, operation %llu, launch %llu", comm->rank, comm->nranks,
                 kl_func_info[t->func].name, t->count, (unsigned long long)comm->cursor,
                 (unsigned long long)kl_load_relaxed(&comm->finished));
    kl_exec_print(comm->exec, &(struct kl_printer){.line = print, .ctx = comm});
}
