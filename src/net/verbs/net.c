/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the RDMA net. It has NCCL's name, so that NCCL_NET=IB means the same. */
#include "net/net.h"

#include "net/socket/device.h"
#include "net/verbs/establish.h"
#include "net/verbs/post.h"
#include "net/verbs/progress.h"
#include "net/verbs/send.h"

#include <endian.h>

enum { MAX_COMMS = 65536 };

/* ---- devices ---- */

static ncclResult_t init(void)
{
    KL_TRY(kl_socket_devices_init()); /* connections begin there */
    if (kl_socket_devices()->params.crypt)
        return KL_FAIL(ncclInvalidUsage, "KOLO_NET_CRYPT=1 asks for encryption, which RDMA does not have: data go from "
                                         "card to card as they are; use NCCL_NET=Socket, or KOLO_NET_CRYPT=0");
    return kl_verbs_devices_init();
}

static ncclResult_t properties(int device, struct kl_net_properties *p)
{
    struct kl_verbs_device *d;

    KL_TRY(kl_verbs_device_find(device, &d));
    int most = d->card->attr.max_qp;
    *p = (struct kl_net_properties){.name = d->name,
                                    .pci_path = d->pci_path,
                                    .guid = be64toh(d->card->attr.sys_image_guid),
                                    .memory = KL_NET_HOST | kl_verbs_memory_of_gpus(d),
                                    .speed_mbps = d->speed_mbps,
                                    .port = d->port,
                                    .max_comms = most < MAX_COMMS ? most : MAX_COMMS,
                                    .max_recvs = KL_NET_RECVS,
                                    .max_bytes = (size_t)1 << 40};
    return ncclSuccess;
}

/* ---- connections ---- */

static ncclResult_t listen_on(int device, const struct kl_net_end *me, struct kl_net_handle *handle, void **listener)
{
    struct kl_verbs_listener *l;
    struct kl_verbs_device *d;

    KL_TRY(kl_verbs_device_find(device, &d));
    KL_TRY(kl_verbs_listen(d, me, handle, &l));
    *listener = l;
    return ncclSuccess;
}

static ncclResult_t connect_to(int device, const struct kl_net_end *me, const struct kl_net_handle *handle, void **send)
{
    struct kl_verbs_end *end = *send;
    struct kl_verbs_device *d;

    KL_TRY(kl_verbs_device_find(device, &d));
    ncclResult_t rc = kl_verbs_connect(d, me, handle, &end);
    *send = end;
    return rc;
}

static ncclResult_t accept_from(void *listener, const struct kl_net_end *me, void **recv)
{
    struct kl_verbs_end *end = NULL;
    ncclResult_t rc = kl_verbs_accept(listener, me, &end);

    *recv = end;
    return rc;
}

static bool may_go_both_ways(const struct kl_verbs_link *l, const struct kl_net_end *me)
{
    return l->both_ways && !l->failed && l->rank == me->rank && l->peer == me->peer;
}

static ncclResult_t send_back(void *recv, const struct kl_net_end *me, void **send)
{
    struct kl_verbs_link *l = ((struct kl_verbs_end *)recv)->link;
    struct kl_verbs_end *end;

    *send = NULL;
    if (!may_go_both_ways(l, me) || l->went_back) return ncclSuccess;
    KL_TRY(kl_verbs_end_create(l, true, &end));
    if (!kl_verbs_send_back(l, me->id)) {
        kl_verbs_end_free(end);
        return kl_verbs_report(l);
    }
    l->went_back = true;
    *send = end;
    return ncclSuccess;
}

static ncclResult_t recv_back(void *send, const struct kl_net_end *me, void **recv)
{
    struct kl_verbs_link *l = ((struct kl_verbs_end *)send)->link;
    struct kl_verbs_end *end;

    *recv = NULL;
    if (!may_go_both_ways(l, me) || l->went_back) return kl_verbs_report(l) ? l->failed : ncclInProgress;
    kl_verbs_progress(l);
    KL_TRY(kl_verbs_report(l));
    if (!l->called_back) return ncclInProgress;
    if (l->back != me->id)
        return kl_verbs_fail(l, ncclRemoteError, "rank %d at %s goes back with connection %u, and not %u", l->peer,
                             l->where, l->back, me->id);
    KL_TRY(kl_verbs_end_create(l, false, &end));
    l->went_back = true;
    *recv = end;
    return ncclSuccess;
}

static ncclResult_t sleep_on(void *connection, int *fd)
{
    struct kl_verbs_end *end = connection;

    return end->conn_request ? kl_verbs_conn_request_sleep_on(end->conn_request, fd) : kl_verbs_sleep_on(end->link, fd);
}

static ncclResult_t sleep_on_listener(void *listener, int *fd)
{
    return kl_verbs_listener_sleep_on(listener, fd);
}

static void cancel(void *connection)
{
    struct kl_verbs_end *end = connection;

    if (end->link) kl_verbs_give_up(end->link);
}

static void close_connection(void *connection)
{
    struct kl_verbs_end *end = connection;

    if (end) kl_verbs_conn_request_free(end->conn_request);
    kl_verbs_end_free(end);
}

static void close_listen(void *listener)
{
    kl_verbs_listener_free(listener);
}

/* ---- memory ---- */

static ncclResult_t register_gpu(const struct kl_verbs_device *d, void *data, size_t bytes, uint64_t offset, int fd,
                                 void **mr)
{
    struct kl_verbs_memory *m;

    if (!(kl_verbs_memory_of_gpus(d) & (fd < 0 ? KL_NET_CUDA : KL_NET_DMABUF)))
        return KL_FAIL(ncclInvalidArgument, "NET/IB: %s does not register memory of GPUs by its %s", d->name,
                       fd < 0 ? "address: load nvidia_peermem" : "DMA-BUF");
    KL_TRY(kl_verbs_memory_register_gpu(d, data, bytes, offset, fd, &m));
    *mr = m;
    return ncclSuccess;
}

static ncclResult_t reg_mr(void *connection, void *data, size_t bytes, enum kl_net_memory memory, void **mr)
{
    const struct kl_verbs_device *d = ((struct kl_verbs_end *)connection)->link->device;
    struct kl_verbs_memory *m;

    if (memory != KL_NET_HOST) return register_gpu(d, data, bytes, 0, -1, mr);
    KL_TRY(kl_verbs_memory_register(d, data, bytes, &m));
    *mr = m;
    return ncclSuccess;
}

static ncclResult_t reg_mr_dmabuf(void *connection, void *data, size_t bytes, uint64_t offset, int fd, void **mr)
{
    return register_gpu(((struct kl_verbs_end *)connection)->link->device, data, bytes, offset, fd, mr);
}

static ncclResult_t dereg_mr(void *connection, void *mr)
{
    if (mr) kl_verbs_memory_release(((struct kl_verbs_end *)connection)->link->device, mr);
    return ncclSuccess;
}

/* CUDA flushes data in memory of GPUs (cuFlushGPUDirectRDMAWrites). */
static ncclResult_t iflush(void *recv, int n, const struct kl_net_recv *recvs, void **request)
{
    (void)recv, (void)n, (void)recvs;
    *request = NULL;
    return ncclSuccess;
}

/* ---- messages ---- */

static ncclResult_t isend(void *send, const void *data, size_t bytes, int tag, void *mr, void **request)
{
    return kl_verbs_isend(send, data, bytes, tag, mr, request);
}

static ncclResult_t irecv(void *recv, int n, const struct kl_net_recv *recvs, void **request)
{
    return kl_verbs_irecv(recv, n, recvs, request);
}

static ncclResult_t test(void *request, bool *done, size_t *sizes)
{
    return kl_verbs_test(request, done, sizes);
}

const struct kl_net kl_net_verbs = {
    .name = "IB",
    .init = init,
    .devices = kl_verbs_devices,
    .properties = properties,
    .listen = listen_on,
    .connect = connect_to,
    .accept = accept_from,
    .send_back = send_back,
    .recv_back = recv_back,
    .reg_mr = reg_mr,
    .reg_mr_dmabuf = reg_mr_dmabuf,
    .dereg_mr = dereg_mr,
    .isend = isend,
    .irecv = irecv,
    .iflush = iflush,
    .test = test,
    .sleep_on = sleep_on,
    .sleep_on_listener = sleep_on_listener,
    .cancel = cancel,
    .close_send = close_connection,
    .close_recv = close_connection,
    .close_listen = close_listen,
};
