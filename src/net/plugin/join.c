/* SPDX-License-Identifier: Apache-2.0 */
#include "net/plugin/join.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTROL_DEVICE = 0, OFFER_TAG = 1, WATCH_TAG = 2, PROOF_TAG = 0 };

static const char label[] = "kolo net plugin";

/** From the receiver, over the control connection. */
struct offer {
    char name[KL_NET_PLUGIN_NAME + 1];
    unsigned char nonce[KL_KEY_BYTES];
    unsigned char handle[KL_NET_HANDLE];
};

/** The data of a proof. */
struct claim {
    unsigned char nonce[KL_KEY_BYTES];
    int32_t sender, receiver;
    uint32_t id;
};

/* The stages, in order. */
enum stage { DIAL, BACK, OFFER, JOIN, PROOF, DONE };

/* `conn` comes first: a connect request is freed as a connection, and is one once it is DONE. */
struct conn_request {
    struct kl_plugin_conn conn;
    enum stage stage;
    uint32_t id;
    uint64_t deadline;
    struct offer offer;
    void *offered;  /* request on the control connection */
    void *listener; /* the plugin's, for this connection */
    unsigned char proof[KL_PROOF_BYTES], expected[KL_PROOF_BYTES];
    struct kl_plugin_request *proving;
    struct conn_request *next; /* of the listener */
};

struct kl_plugin_listener {
    const struct kl_net_library *library;
    int device;
    void *control; /* the socket net's */
    struct conn_request *conn_requests;
};

static struct conn_request *conn_request_create(const struct kl_net_library *l, int device, const struct kl_net_end *me,
                                                bool sends)
{
    struct conn_request *a = calloc(1, sizeof *a);

    if (!a) return NULL;
    a->conn.library = l;
    a->conn.sends = sends;
    a->conn.device = device;
    a->conn.rank = me->rank;
    a->conn.peer = me->peer;
    a->id = me->id;
    a->deadline = me->deadline;
    return a;
}

static ncclResult_t in_time(const struct conn_request *a)
{
    static const char *const waits_for[] = {"the peer", "the peer's answer", "the peer's address",
                                            "the plugin to connect", "the peer's proof"};

    if (!kl_deadline_passed(a->deadline)) return ncclInProgress;
    return KL_FAIL(ncclRemoteError, "NET/%s: rank %d has no connection with rank %d in time: it waited for %s",
                   a->conn.library->name, a->conn.rank, a->conn.peer, waits_for[a->stage]);
}

static void prove(const struct conn_request *a, const struct kl_net_end *me, unsigned char proof[KL_PROOF_BYTES])
{
    const bool sends = a->conn.sends;
    struct claim claim;

    memset(&claim, 0, sizeof claim);
    memcpy(claim.nonce, a->offer.nonce, sizeof claim.nonce);
    claim.sender = sends ? me->rank : me->peer;
    claim.receiver = sends ? me->peer : me->rank;
    claim.id = me->id;
    kl_key_prove(&me->secret, label, &claim, sizeof claim, proof);
}

/* From now on the control connection tells that the peer has ended. */
static ncclResult_t watch(struct conn_request *a)
{
    struct kl_plugin_control *c = &a->conn.control;
    const struct kl_net_recv never = {.data = &c->byte, .bytes = 1, .tag = WATCH_TAG};

    return kl_net_socket.irecv(c->recv, 1, &never, &c->watch);
}

static ncclResult_t test_offer(struct conn_request *a)
{
    bool done;

    KL_TRY(kl_net_socket.test(a->offered, &done, NULL));
    if (!done) return ncclInProgress;
    a->offered = NULL;
    return ncclSuccess;
}

static ncclResult_t test_proof(struct conn_request *a)
{
    size_t size = 0;
    bool done;

    KL_TRY(kl_plugin_conn_test(a->proving, &done, &size));
    if (!done) return ncclInProgress;
    a->proving = NULL;
    if (a->conn.sends || (size == sizeof a->proof && kl_key_proof_equal(a->proof, a->expected))) return ncclSuccess;
    return KL_FAIL(ncclRemoteError, "NET/%s: a stranger has connected instead of rank %d: its proof is wrong",
                   a->conn.library->name, a->conn.peer);
}

static ncclResult_t post_proof(struct conn_request *a, const struct kl_net_end *me)
{
    struct kl_net_recv part = {.data = a->proof, .bytes = sizeof a->proof, .tag = PROOF_TAG};

    KL_TRY(watch(a));
    prove(a, me, a->conn.sends ? a->proof : a->expected);
    return kl_plugin_conn_post(&a->conn, 1, &part, &a->proving);
}

/* ---- the sender ---- */

static ncclResult_t dial(struct conn_request *a, const struct kl_net_end *me, const struct kl_net_handle *handle)
{
    struct kl_net_end control = *me;

    control.both_ways = true;
    ncclResult_t rc = kl_net_socket.connect(CONTROL_DEVICE, &control, handle, &a->conn.control.send);
    kl_key_wipe(&control.secret);
    return rc;
}

static ncclResult_t receive_proof(struct conn_request *a, const struct kl_net_end *me)
{
    const struct kl_net_recv offer = {.data = &a->offer, .bytes = sizeof a->offer, .tag = OFFER_TAG};

    KL_TRY(kl_net_socket.recv_back(a->conn.control.send, me, &a->conn.control.recv));
    return kl_net_socket.irecv(a->conn.control.recv, 1, &offer, &a->offered);
}

static ncclResult_t check_offer(const struct conn_request *a)
{
    const char *own = a->conn.library->name;

    if (!strncmp(a->offer.name, own, sizeof a->offer.name)) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage, "rank %d uses NET/%s, but rank %d NET/%.*s: all need the same plugin",
                   a->conn.rank, own, a->conn.peer, KL_NET_PLUGIN_NAME, a->offer.name);
}

static ncclResult_t call_plugin(struct conn_request *a, const char *call, ncclResult_t rc)
{
    if (rc) return kl_plugin_conn_fail(&a->conn, call, rc);
    return a->conn.comm ? ncclSuccess : ncclInProgress;
}

static ncclResult_t sender_step(struct conn_request *a, const struct kl_net_end *me, const struct kl_net_handle *handle)
{
    const struct kl_net_library *l = a->conn.library;

    switch (a->stage) {
    case DIAL:
        return dial(a, me, handle);
    case BACK:
        return receive_proof(a, me);
    case OFFER:
        KL_TRY(test_offer(a));
        return check_offer(a);
    case JOIN:
        KL_TRY(call_plugin(a, "connect", l->adapter->connect(l, a->conn.device, a->offer.handle, &a->conn.comm)));
        return post_proof(a, me);
    default:
        return test_proof(a);
    }
}

/* ---- the receiver ---- */

static ncclResult_t meet(struct conn_request *a, const struct kl_net_end *me, void *control)
{
    return kl_net_socket.accept(control, me, &a->conn.control.recv);
}

static ncclResult_t send_offer(struct conn_request *a)
{
    const struct kl_net_library *l = a->conn.library;
    ncclResult_t rc = l->adapter->listen(l, a->conn.device, a->offer.handle, &a->listener);

    if (!rc && !a->listener) rc = ncclInternalError;
    if (rc) return kl_plugin_conn_fail(&a->conn, "listen", rc);
    snprintf(a->offer.name, sizeof a->offer.name, "%s", l->name);
    kl_key_random(a->offer.nonce, sizeof a->offer.nonce);
    KL_TRY(kl_net_socket.isend(a->conn.control.send, &a->offer, sizeof a->offer, OFFER_TAG, NULL, &a->offered));
    return a->offered ? ncclSuccess : KL_FAIL(ncclInternalError, "NET/%s: no request for an address", l->name);
}

static ncclResult_t answer(struct conn_request *a, const struct kl_net_end *me)
{
    KL_TRY(kl_net_socket.send_back(a->conn.control.recv, me, &a->conn.control.send));
    if (!a->conn.control.send)
        return KL_FAIL(ncclInvalidUsage,
                       "rank %d uses NET/%s, but rank %d NET/%s: all need the same (NCCL_NET, NCCL_NET_PLUGIN)",
                       me->rank, a->conn.library->name, me->peer, kl_net_socket.name);
    return send_offer(a);
}

static void close_listener(struct conn_request *a)
{
    if (a->listener) kl_net_library_close_listen(a->conn.library, a->listener);
    a->listener = NULL;
}

static ncclResult_t receiver_step(struct conn_request *a, const struct kl_net_end *me, void *control)
{
    const struct kl_net_library *l = a->conn.library;

    switch (a->stage) {
    case DIAL:
        return meet(a, me, control);
    case BACK:
        return answer(a, me);
    case OFFER:
        return test_offer(a);
    case JOIN:
        KL_TRY(call_plugin(a, "accept", l->adapter->accept(l, a->listener, &a->conn.comm)));
        close_listener(a);
        return post_proof(a, me);
    default:
        return test_proof(a);
    }
}

/* ---- connect ---- */

void kl_plugin_conn_close(struct kl_plugin_conn *conn)
{
    struct conn_request *a = (struct conn_request *)conn;

    if (!conn) return;
    close_listener(a);
    kl_plugin_conn_free(conn);
}

ncclResult_t kl_plugin_connect(const struct kl_net_library *l, int device, const struct kl_net_end *me,
                               const struct kl_net_handle *handle, struct kl_plugin_conn **conn)
{
    struct conn_request *a = (struct conn_request *)*conn;
    ncclResult_t rc = ncclSuccess;

    if (!a) a = conn_request_create(l, device, me, true);
    if (!a) return KL_NOMEM("a connection over a net plugin");
    *conn = &a->conn;
    while (!rc && a->stage != DONE)
        if (!(rc = sender_step(a, me, handle))) a->stage++;
    if (rc == ncclInProgress) rc = in_time(a);
    if (!rc || rc == ncclInProgress) return rc;
    kl_plugin_conn_close(*conn);
    *conn = NULL;
    return rc;
}

/* ---- accept ---- */

ncclResult_t kl_plugin_listen(const struct kl_net_library *l, int device, const struct kl_net_end *me,
                              struct kl_net_handle *handle, struct kl_plugin_listener **listener)
{
    struct kl_plugin_listener *p = calloc(1, sizeof *p);

    if (!p) return KL_NOMEM("a listener of a net plugin");
    *p = (struct kl_plugin_listener){.library = l, .device = device};
    ncclResult_t rc = kl_net_socket.listen(CONTROL_DEVICE, me, handle, &p->control);
    if (rc)
        free(p);
    else
        *listener = p;
    return rc;
}

/* The request of a peer's connection, made at the first call. */
static struct conn_request **find_conn_request(struct kl_plugin_listener *p, const struct kl_net_end *me)
{
    struct conn_request **at = &p->conn_requests;

    while (*at && ((*at)->conn.peer != me->peer || (*at)->id != me->id || (*at)->conn.rank != me->rank))
        at = &(*at)->next;
    if (!*at) *at = conn_request_create(p->library, p->device, me, false);
    return at;
}

ncclResult_t kl_plugin_accept(struct kl_plugin_listener *p, const struct kl_net_end *me, struct kl_plugin_conn **conn)
{
    struct conn_request **at = find_conn_request(p, me), *a = *at;
    ncclResult_t rc = ncclSuccess;

    *conn = NULL;
    if (!a) return KL_NOMEM("a connection over a net plugin");
    while (!rc && a->stage != DONE)
        if (!(rc = receiver_step(a, me, p->control))) a->stage++;
    if (rc == ncclInProgress && a->stage != DIAL) rc = in_time(a); /* the socket net looks at the deadline before */
    if (rc == ncclInProgress) return rc;
    *at = a->next;
    if (!rc)
        *conn = &a->conn;
    else
        kl_plugin_conn_close(&a->conn);
    return rc;
}

/* While a connection is being made over the plugin there is nothing to sleep on. */
ncclResult_t kl_plugin_listener_sleep_on(struct kl_plugin_listener *p, int *fd)
{
    *fd = -1;
    for (const struct conn_request *a = p->conn_requests; a; a = a->next)
        if (a->stage != DIAL) return ncclSuccess;
    return kl_net_socket.sleep_on_listener(p->control, fd);
}

void kl_plugin_listener_free(struct kl_plugin_listener *p)
{
    if (!p) return;
    while (p->conn_requests) {
        struct conn_request *a = p->conn_requests;
        p->conn_requests = a->next;
        kl_plugin_conn_close(&a->conn);
    }
    kl_net_socket.close_listen(p->control);
    free(p);
}
