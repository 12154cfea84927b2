/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the socket net. */
#include "net/net.h"

#include "net/socket/establish.h"
#include "net/socket/receive.h"
#include "net/socket/send.h"
#include "net/socket/sleep.h"
#include "net/socket/duplex.h"

enum { MAX_COMMS = 65536 };

/* ---- devices ---- */

static int devices(void)
{
    return kl_socket_devices()->n;
}

static ncclResult_t properties(int device, struct kl_net_properties *p)
{
    const struct kl_socket_device *d;

    KL_TRY(kl_socket_device_find(device, &d));
    *p = (struct kl_net_properties){.name = d->netif.name,
                                    .pci_path = d->pci_path,
                                    .guid = (uint64_t)device,
                                    .memory = KL_NET_HOST,
                                    .speed_mbps = d->speed_mbps,
                                    .max_comms = MAX_COMMS,
                                    .max_recvs = KL_NET_RECVS,
                                    .max_bytes = KL_HEAD_MAX_BYTES};
    return ncclSuccess;
}

/* ---- connections ---- */

static ncclResult_t listen_on(int device, const struct kl_net_end *me, struct kl_net_handle *handle, void **listener)
{
    const struct kl_socket_device *d;
    union kl_address address;
    struct kl_net_listener *made;

    KL_TRY(kl_socket_device_find(device, &d));
    KL_TRY(kl_net_listener_create(d, me, kl_socket_devices()->params.crypt, &address, &made));
    kl_session_params_put_handle(&address, handle);
    *listener = made;
    return ncclSuccess;
}

static ncclResult_t connect_to(int device, const struct kl_net_end *me, const struct kl_net_handle *handle, void **send)
{
    struct kl_conn *c = *send;
    ncclResult_t rc = kl_establish_send(device, me, handle, &c);

    *send = c;
    return rc;
}

static ncclResult_t accept_from(void *listener, const struct kl_net_end *me, void **recv)
{
    struct kl_conn *c = NULL;
    ncclResult_t rc = kl_establish_recv(listener, me, &c);

    *recv = c;
    return rc;
}

static ncclResult_t send_back(void *recv, const struct kl_net_end *me, void **send)
{
    struct kl_conn *c;
    ncclResult_t rc = kl_duplex_send(recv, me, &c);

    *send = c;
    return rc;
}

static ncclResult_t recv_back(void *send, const struct kl_net_end *me, void **recv)
{
    struct kl_conn *c;
    ncclResult_t rc = kl_duplex_recv(send, me, &c);

    *recv = c;
    return rc;
}

static ncclResult_t sleep_on(void *connection, int *fd)
{
    return kl_conn_sleep_on(connection, fd);
}

static ncclResult_t sleep_on_listener(void *listener, int *fd)
{
    return kl_net_listener_watch(listener, fd);
}

static void cancel(void *connection)
{
    struct kl_conn *c = connection;
    int quiet = kl_error_quiet(1); /* the code that cancels has reported the reason */

    if (!c->connect_request)
        kl_conn_fail(c, ncclInternalError, "the connection of rank %d with rank %d was given up", c->rank, c->peer);
    kl_error_quiet(quiet);
}

static void close_connection(void *connection)
{
    kl_conn_free(connection);
}

static void close_listen(void *listener)
{
    kl_net_listener_free(listener);
}

/* ---- memory: the kernel copies, so no registration is needed ---- */

static ncclResult_t reg_mr(void *connection, void *data, size_t bytes, enum kl_net_memory memory, void **mr)
{
    (void)connection, (void)data, (void)bytes;
    if (memory != KL_NET_HOST)
        return KL_FAIL(ncclInvalidArgument, "NET/Socket sends from host memory only, not from kind %d", (int)memory);
    *mr = NULL;
    return ncclSuccess;
}

static ncclResult_t dereg_mr(void *connection, void *mr)
{
    (void)connection, (void)mr;
    return ncclSuccess;
}

static ncclResult_t iflush(void *recv, int n, const struct kl_net_recv *recvs, void **request)
{
    (void)recv, (void)n, (void)recvs;
    *request = NULL;
    return ncclSuccess;
}

/* ---- messages ---- */

static ncclResult_t isend(void *send, const void *data, size_t bytes, int tag, void *mr, void **request)
{
    struct kl_request *r;
    ncclResult_t rc = kl_send_post(send, data, bytes, tag, &r);

    (void)mr;
    *request = r;
    return rc;
}

static ncclResult_t irecv(void *recv, int n, const struct kl_net_recv *recvs, void **request)
{
    struct kl_request *r;
    ncclResult_t rc = kl_receive_post(recv, n, recvs, &r);

    *request = r;
    return rc;
}

static bool is_done(struct kl_request *r)
{
    return !kl_load_acquire(&r->left);
}

static void work(struct kl_conn *c)
{
    if (c->sends)
        kl_send_work(c);
    else
        kl_receive_work(c);
}

static ncclResult_t test(void *request, bool *done, size_t *sizes)
{
    struct kl_request *r = request;
    struct kl_conn *c = r->connection;

    if (!is_done(r)) work(c);
    *done = is_done(r);
    if (!*done) {
        KL_TRY(kl_conn_sleep_again(c));
        return kl_conn_report(c);
    }
    for (int i = 0; sizes && i < r->n; i++) sizes[i] = c->sends ? r->message[i].bytes : r->message[i].came;
    kl_conn_give(c, r);
    return ncclSuccess;
}

const struct kl_net kl_net_socket = {
    .name = "Socket",
    .init = kl_socket_devices_init,
    .devices = devices,
    .properties = properties,
    .listen = listen_on,
    .connect = connect_to,
    .accept = accept_from,
    .send_back = send_back,
    .recv_back = recv_back,
    .reg_mr = reg_mr,
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
