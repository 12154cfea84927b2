/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/raw_net.h"

static struct kl_net_library library;

bool kl_raw_net_open(const char *file)
{
    if (!kl_net_library_open(&library, file)) return false;
    if (kl_net_library_init(&library)) return true;
    kl_net_library_close(&library);
    return false;
}

void kl_raw_net_close(void)
{
    kl_net_library_finalize(&library);
    kl_net_library_close(&library);
}

const struct kl_net_library *kl_raw_net_library(void)
{
    return &library;
}

/* ---- the table ---- */

static ncclResult_t init(void)
{
    return ncclSuccess;
}

static int devices(void)
{
    return library.ndevices;
}

static ncclResult_t properties(int device, struct kl_net_properties *p)
{
    *p = library.device[device];
    return ncclSuccess;
}

static ncclResult_t merge(const int *member, int n, int *device)
{
    return kl_net_library_merge(&library, member, n, device);
}

static ncclResult_t listen_on(int device, const struct kl_net_end *me, struct kl_net_handle *handle, void **listener)
{
    (void)me;
    return library.adapter->listen(&library, device, handle->bytes, listener);
}

static ncclResult_t not_yet(ncclResult_t rc, const void *comm)
{
    return rc || comm ? rc : ncclInProgress;
}

/* The plugin may keep its state in the handle. */
static ncclResult_t connect_to(int device, const struct kl_net_end *me, const struct kl_net_handle *handle, void **send)
{
    (void)me;
    const ncclResult_t rc = library.adapter->connect(&library, device, (void *)(uintptr_t)handle->bytes, send);
    return not_yet(rc, *send);
}

static ncclResult_t accept_from(void *listener, const struct kl_net_end *me, void **recv)
{
    (void)me;
    const ncclResult_t rc = library.adapter->accept(&library, listener, recv);
    return not_yet(rc, *recv);
}

static ncclResult_t reg_mr(void *comm, void *data, size_t bytes, enum kl_net_memory memory, void **mr)
{
    return library.adapter->reg_mr(&library, comm, data, bytes, (int)memory, mr);
}

static ncclResult_t dereg_mr(void *comm, void *mr)
{
    return kl_net_library_dereg_mr(&library, comm, mr);
}

static ncclResult_t isend(void *comm, const void *data, size_t bytes, int tag, void *mr, void **request)
{
    const struct kl_net_recv m = {.data = (void *)(uintptr_t)data, .bytes = bytes, .tag = tag, .mr = mr};

    *request = NULL;
    return library.adapter->isend(&library, comm, &m, request);
}

static ncclResult_t irecv(void *comm, int n, const struct kl_net_recv *recvs, void **request)
{
    *request = NULL;
    return library.adapter->irecv(&library, comm, n, recvs, request);
}

static ncclResult_t test(void *request, bool *done, size_t *sizes)
{
    int is_done = 0, came = 0;
    const ncclResult_t rc = kl_net_library_test(&library, request, &is_done, &came);

    *done = is_done;
    if (sizes && is_done) *sizes = (size_t)came;
    return rc;
}

static void close_send(void *comm)
{
    if (comm) kl_net_library_close_send(&library, comm);
}

static void close_recv(void *comm)
{
    if (comm) kl_net_library_close_recv(&library, comm);
}

static void close_listen(void *listener)
{
    if (listener) kl_net_library_close_listen(&library, listener);
}

const struct kl_net kl_net_raw = {
    .name = "plugin",
    .init = init,
    .devices = devices,
    .properties = properties,
    .merge = merge,
    .listen = listen_on,
    .connect = connect_to,
    .accept = accept_from,
    .reg_mr = reg_mr,
    .dereg_mr = dereg_mr,
    .isend = isend,
    .irecv = irecv,
    .test = test,
    .close_send = close_send,
    .close_recv = close_recv,
    .close_listen = close_listen,
};
