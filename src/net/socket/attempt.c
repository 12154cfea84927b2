/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/attempt.h"

#include "base/clock.h"
#include "base/error.h"
#include "net/socket/guard.h"
#include "net/socket/watch.h"
#include "os/chaos.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* State of one socket. */
struct call {
    struct kl_opening opening; /* its fd is -1 during a pause */
    struct kl_watched watched;
    int tries;
    uint64_t again; /* end of the pause */
};

struct kl_attempt {
    union kl_address address;
    struct kl_retry retry;
    uint64_t start, deadline;
    struct kl_hello hello;
    struct kl_key key;
    struct kl_terms terms;
    int n;
    struct call call[];
};

ncclResult_t kl_attempt_create(const struct kl_attempt_plan *plan, struct kl_attempt **attempt)
{
    const struct kl_net_end *me = plan->me;
    int n = 1 + plan->lanes;
    struct kl_attempt *a = kl_chaos_calloc(1, sizeof *a + (size_t)n * sizeof a->call[0]);

    if (!a) return KL_NOMEM("an attempt to connect");
    *a = (struct kl_attempt){.address = plan->address, .retry = plan->retry, .deadline = me->deadline, .n = n};
    a->start = kl_now_ns();
    a->hello = (struct kl_hello){.version = KL_PROTOCOL,
                                 .type = KL_CONNECTION_NET,
                                 .side = KL_CALLER,
                                 .from = (uint32_t)me->rank,
                                 .to = (uint32_t)me->peer,
                                 .name = me->id};
    a->key = kl_terms_handshake_key(&me->secret);
    a->terms = (struct kl_terms){.crypt = plan->crypt, .lanes = (unsigned)plan->lanes, .ciphers = kl_guard_ciphers()};
    a->terms.both_ways = me->both_ways && !plan->lanes;
    kl_key_random(a->terms.group, sizeof a->terms.group);
    for (int i = 0; i < n; i++) a->call[i].opening.fd = -1;
    *attempt = a;
    return ncclSuccess;
}

void kl_attempt_free(struct kl_attempt *a)
{
    if (!a) return;
    for (int i = 0; i < a->n; i++) kl_opening_close(&a->call[i].opening);
    kl_key_wipe(&a->key);
    free(a);
}

struct kl_opening *kl_attempt_opening(struct kl_attempt *a, int i)
{
    return &a->call[i].opening;
}

/* ---- failures ---- */

/* "rank 1 cannot connect with rank 0 at 10.0.0.1:4711" */
static const char *doing(const struct kl_attempt *a, char text[KL_ADDRESS_TEXT + 80])
{
    char where[KL_ADDRESS_TEXT];

    snprintf(text, KL_ADDRESS_TEXT + 80, "rank %u cannot connect with rank %u at %s", a->hello.from, a->hello.to,
             kl_address_format(&a->address, where));
    return text;
}

static ncclResult_t lost(const struct kl_attempt *a)
{
    char text[KL_ADDRESS_TEXT + 80];

    return kl_io_fail(errno ? KL_IO_BROKEN : KL_IO_CLOSED, "%s", doing(a, text));
}

static ncclResult_t late(const struct kl_attempt *a)
{
    char text[KL_ADDRESS_TEXT + 80];

    return KL_FAIL(ncclRemoteError, "%s: no answer within %.3g s", doing(a, text),
                   (double)(kl_now_ns() - a->start) / 1e9);
}

static ncclResult_t refused(const struct kl_attempt *a, const struct kl_opening *o)
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

static ncclResult_t crypt_differs(const struct kl_attempt *a)
{
    char text[KL_ADDRESS_TEXT + 80];

    return KL_FAIL(ncclInvalidUsage, "%s: KOLO_NET_CRYPT is %s at rank %u and %s at rank %u; set it alike on all ranks",
                   doing(a, text), a->terms.crypt ? "on" : "off", a->hello.from, a->terms.crypt ? "off" : "on",
                   a->hello.to);
}

/* ---- one socket ---- */

static ncclResult_t pause_call(struct kl_attempt *a, struct call *c)
{
    bool worth = !errno || kl_retry_worth(errno);

    if (!worth || ++c->tries > a->retry.count) return lost(a);
    kl_opening_close(&c->opening);
    c->watched = (struct kl_watched){0};
    c->again = kl_deadline_in_ms((uint64_t)kl_retry_pause_ms(&a->retry, c->tries));
    return ncclInProgress;
}

static ncclResult_t begin_call(struct kl_attempt *a, struct call *c)
{
    struct kl_terms terms = a->terms;
    int fd = -1;

    if (!kl_deadline_passed(c->again)) return ncclInProgress;
    if (kl_socket_connect_begin(&a->address, &fd)) return pause_call(a, c);
    terms.lane = (unsigned)(c - a->call);
    kl_opening_call(&c->opening, fd, &a->hello, &a->key, &terms);
    return ncclSuccess;
}

/* Do the listener's terms match this end's? */
static ncclResult_t check_terms(const struct kl_attempt *a, const struct kl_opening *o)
{
    const struct kl_terms *mine = &o->mine, *theirs = &o->theirs;
    unsigned cipher = theirs->ciphers;

    if (mine->crypt != theirs->crypt) return crypt_differs(a);
    bool one = cipher && !(cipher & (cipher - 1)) && (cipher & mine->ciphers);
    bool same = theirs->lane == mine->lane && theirs->lanes == mine->lanes && theirs->both_ways == mine->both_ways &&
                !memcmp(theirs->group, mine->group, KL_GROUP);
    if (same && (mine->crypt ? one : !cipher)) return ncclSuccess;
    errno = EPROTO;
    return lost(a);
}

static ncclResult_t move_call(struct kl_attempt *a, struct call *c)
{
    if (c->opening.stage == KL_OPENING_DONE) return ncclSuccess;
    if (c->opening.fd < 0) {
        ncclResult_t rc = begin_call(a, c);
        if (rc) return rc;
    }
    switch (kl_opening_move(&c->opening)) {
    case KL_OPENED:
        return check_terms(a, &c->opening);
    case KL_OPENED_LOST:
        return pause_call(a, c);
    case KL_OPENED_REFUSED:
        return refused(a, &c->opening);
    case KL_OPENED_NOT_YET:
        break;
    }
    return ncclInProgress;
}

ncclResult_t kl_attempt_move(struct kl_attempt *a)
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

ncclResult_t kl_attempt_watch(struct kl_attempt *a, int epoll)
{
    for (int i = 0; i < a->n; i++) {
        struct call *c = &a->call[i];
        if (c->opening.fd >= 0) KL_TRY(kl_watch(epoll, &c->watched, c->opening.fd, kl_opening_events(&c->opening)));
    }
    return ncclSuccess;
}
