/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/connect_request.h"

#include "base/clock.h"
#include "base/error.h"
#include "net/socket/cipher.h"
#include "net/socket/watch.h"
#include "os/fault_inject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* State of one socket. */
struct call {
    struct kl_socket_handshake handshake; /* its fd is -1 during a pause */
    struct kl_watched watched;
    int tries;
    uint64_t again; /* end of the pause */
};

struct kl_conn_request {
    union kl_address address;
    struct kl_retry retry;
    uint64_t start, deadline;
    struct kl_hello hello;
    struct kl_key key;
    struct kl_session_params params;
    int n;
    struct call call[];
};

ncclResult_t kl_conn_request_create(const struct kl_conn_request_plan *plan, struct kl_conn_request **connect_request)
{
    const struct kl_net_end *me = plan->me;
    int n = 1 + plan->lanes;
    struct kl_conn_request *a = kl_inject_calloc(1, sizeof *a + (size_t)n * sizeof a->call[0]);

    if (!a) return KL_NOMEM("a connect request");
    *a = (struct kl_conn_request){.address = plan->address, .retry = plan->retry, .deadline = me->deadline, .n = n};
    a->start = kl_now_ns();
    a->hello = (struct kl_hello){.version = KL_PROTOCOL,
                                 .type = KL_CONNECTION_NET,
                                 .side = KL_CALLER,
                                 .from = (uint32_t)me->rank,
                                 .to = (uint32_t)me->peer,
                                 .name = me->id};
    a->key = kl_session_params_handshake_key(&me->secret);
    a->params = (struct kl_session_params){
        .crypt = plan->crypt, .lanes = (unsigned)plan->lanes, .ciphers = kl_cipher_available()};
    a->params.both_ways = me->both_ways && !plan->lanes;
    kl_key_random(a->params.group, sizeof a->params.group);
    for (int i = 0; i < n; i++) a->call[i].handshake.fd = -1;
    *connect_request = a;
    return ncclSuccess;
}

void kl_conn_request_free(struct kl_conn_request *a)
{
    if (!a) return;
    for (int i = 0; i < a->n; i++) kl_socket_handshake_close(&a->call[i].handshake);
    kl_key_wipe(&a->key);
    free(a);
}

struct kl_socket_handshake *kl_conn_request_handshake(struct kl_conn_request *a, int i)
{
    return &a->call[i].handshake;
}

/* ---- failures ---- */

/* "rank 1 cannot connect with rank 0 at 10.0.0.1:4711" */
static const char *doing(const struct kl_conn_request *a, char text[KL_ADDRESS_TEXT + 80])
{
    char where[KL_ADDRESS_TEXT];

    snprintf(text, KL_ADDRESS_TEXT + 80, "rank %u cannot connect with rank %u at %s", a->hello.from, a->hello.to,
             kl_address_format(&a->address, where));
    return text;
}

static ncclResult_t lost(const struct kl_conn_request *a)
{
    char text[KL_ADDRESS_TEXT + 80];

    return kl_io_fail(errno ? KL_IO_ERROR : KL_IO_CLOSED, "%s", doing(a, text));
}

static ncclResult_t late(const struct kl_conn_request *a)
{
    char text[KL_ADDRESS_TEXT + 80];

    return KL_FAIL(ncclRemoteError, "%s: no answer within %.3g s", doing(a, text),
                   (double)(kl_now_ns() - a->start) / 1e9);
}

static ncclResult_t refused(const struct kl_conn_request *a, const struct kl_socket_handshake *o)
{
    char text[KL_ADDRESS_TEXT + 80];

    if (o->outcome == KL_OTHER_VERSION)
        return KL_FAIL(ncclInvalidUsage,
                       "%s: it speaks another version of the protocol; use one version of Kolo on all "
                       "ranks",
                       doing(a, text));
    if (o->outcome == KL_REFUSED)
        return KL_FAIL(ncclRemoteError, "%s: it has another secret, so it is of another communicator", doing(a, text));
    return KL_FAIL(ncclRemoteError, "%s: another rank is there", doing(a, text));
}

static ncclResult_t crypt_differs(const struct kl_conn_request *a)
{
    char text[KL_ADDRESS_TEXT + 80];

    return KL_FAIL(ncclInvalidUsage, "%s: KOLO_NET_CRYPT is %s at rank %u and %s at rank %u; set it alike on all ranks",
                   doing(a, text), a->params.crypt ? "on" : "off", a->hello.from, a->params.crypt ? "off" : "on",
                   a->hello.to);
}

/* ---- one socket ---- */

static ncclResult_t pause_call(struct kl_conn_request *a, struct call *c)
{
    bool worth = !errno || kl_retry_is_transient(errno);

    if (!worth || ++c->tries > a->retry.count) return lost(a);
    kl_socket_handshake_close(&c->handshake);
    c->watched = (struct kl_watched){0};
    c->again = kl_deadline_in_ms((uint64_t)kl_retry_pause_ms(&a->retry, c->tries));
    return ncclInProgress;
}

static ncclResult_t begin_call(struct kl_conn_request *a, struct call *c)
{
    struct kl_session_params params = a->params;
    int fd = -1;

    if (!kl_deadline_passed(c->again)) return ncclInProgress;
    if (kl_socket_connect_begin(&a->address, &fd)) return pause_call(a, c);
    params.lane = (unsigned)(c - a->call);
    kl_socket_handshake_call(&c->handshake, fd, &a->hello, &a->key, &params);
    return ncclSuccess;
}

/* Do the listener's parameters match this end's? */
static ncclResult_t check_params(const struct kl_conn_request *a, const struct kl_socket_handshake *o)
{
    const struct kl_session_params *mine = &o->mine, *theirs = &o->theirs;
    unsigned cipher = theirs->ciphers;

    if (mine->crypt != theirs->crypt) return crypt_differs(a);
    bool one = cipher && !(cipher & (cipher - 1)) && (cipher & mine->ciphers);
    bool same = theirs->lane == mine->lane && theirs->lanes == mine->lanes && theirs->both_ways == mine->both_ways &&
                !memcmp(theirs->group, mine->group, KL_GROUP);
    if (same && (mine->crypt ? one : !cipher)) return ncclSuccess;
    errno = EPROTO;
    return lost(a);
}

static ncclResult_t move_call(struct kl_conn_request *a, struct call *c)
{
    if (c->handshake.stage == KL_HANDSHAKE_DONE) return ncclSuccess;
    if (c->handshake.fd < 0) {
        ncclResult_t rc = begin_call(a, c);
        if (rc) return rc;
    }
    switch (kl_socket_handshake_progress(&c->handshake)) {
    case KL_HANDSHAKE_OK:
        return check_params(a, &c->handshake);
    case KL_HANDSHAKE_LOST:
        return pause_call(a, c);
    case KL_HANDSHAKE_REFUSED:
        return refused(a, &c->handshake);
    case KL_HANDSHAKE_PENDING:
        break;
    }
    return ncclInProgress;
}

ncclResult_t kl_conn_request_progress(struct kl_conn_request *a)
{
    bool all = true;

    for (int i = 0; i < a->n; i++) {
        ncclResult_t rc = move_call(a, &a->call[i]);
        if (rc && rc != ncclInProgress) return rc;
        all &= !rc;
    }
    if (all) return ncclSuccess;
    return kl_deadline_passed(a->deadline) ? late(a) : ncclInProgress;
}

ncclResult_t kl_conn_request_watch(struct kl_conn_request *a, int epoll)
{
    for (int i = 0; i < a->n; i++) {
        struct call *c = &a->call[i];
        if (c->handshake.fd >= 0)
            KL_TRY(kl_watch(epoll, &c->watched, c->handshake.fd, kl_socket_handshake_events(&c->handshake)));
    }
    return ncclSuccess;
}
