/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/dialer.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/handshake_io.h"
#include "bootstrap/record.h"
#include "os/fault_inject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TURN_MS = 1000,      /* for one of several addresses */
    EARLY_PAUSE_MS = 20, /* longest pause before an early caller asks again */
};

enum stage { PAUSING, CONNECTING, AWAITING_HELLO, AWAITING_ANSWER };

/* Belongs to the event loop. */
struct kl_dialer {
    struct kl_loop *loop;
    struct kl_source *source; /* for `fd`, or for a pause */
    kl_dialer_fn *fn;
    void *ctx;
    struct kl_call call; /* copied, pointers excepted: */
    struct kl_key key;
    union kl_address address[KL_ADDRESSES]; /* those that can be reached; Unix addresses first */
    int naddresses;
    uint64_t start;
    char text[KL_CALL_TEXT];

    enum stage stage;
    int fd; /* -1 during a pause */
    int at; /* index of the address being tried */
    union kl_address trying;
    struct kl_handshake handshake;
    unsigned char answer[KL_ANSWER_BYTES];
    size_t have; /* bytes received of the current message */

    /* of this round: */
    int rounds;    /* begun */
    int nrefused;  /* addresses that refused the connection */
    bool again;    /* another round may succeed */
    enum kl_io io; /* how the last address failed, and its errno */
    int err;

    /* the last answer: */
    enum kl_handshake_outcome outcome; /* 0: none yet */
    uint16_t version;
    union kl_address from;
};

static void caller_free(struct kl_dialer *c)
{
    kl_source_remove(c->source);
    kl_socket_close(c->fd);
    kl_key_wipe(&c->key);
    kl_key_wipe(&c->handshake.key);
    free(c);
}

static void on_caller(void *ctx, uint32_t events);

/* Wait for `fd`, or if it is -1 for the end of a pause. */
static bool wait_for(struct kl_dialer *c, int fd, uint32_t events, uint64_t deadline)
{
    kl_source_remove(c->source);
    c->source = NULL;
    kl_socket_close(c->fd);
    c->fd = fd;
    if (kl_loop_add(c->loop, fd, events, on_caller, c, &c->source)) return false;
    kl_source_deadline(c->source, deadline);
    return true;
}

/* ---- the end ---- */

static ncclResult_t refused(const struct kl_dialer *c)
{
    char from[KL_ADDRESS_TEXT];

    kl_address_format(&c->from, from);
    if (c->outcome == KL_OTHER_VERSION)
        return KL_FAIL(ncclInvalidUsage,
                       "%s: %s speaks version %u of the protocol, we speak %d; use one version of Kolo on all ranks",
                       c->text, from, c->version, KL_PROTOCOL);
    if (c->outcome == KL_EXHAUSTED)
        return KL_FAIL(ncclRemoteError, "%s: the process there has no descriptor left; raise `ulimit -n` there",
                       c->text);
    if (c->outcome == KL_NOT_HERE)
        return KL_FAIL(ncclRemoteError, "%s: %s is another rank, perhaps of another job", c->text, from);
    if (c->outcome == KL_UNKNOWN)
        return KL_FAIL(
            ncclRemoteError,
            "%s: %s has no rank of this job any more, or there is a secret mismatch; all ranks need the same "
            "unique id, or the same KOLO_SECRET",
            c->text, from);
    if (c->call.is_public)
        return KL_FAIL(
            ncclRemoteError,
            "%s: %s turned this rank away, which has no KOLO_SECRET: without one only ranks of rank 0's host "
            "may join; set KOLO_SECRET to the same text on all ranks, or KOLO_OPEN_TO",
            c->text, from);
    return KL_FAIL(ncclRemoteError,
                   "%s: secret mismatch with %s; all ranks need the same unique id, or the same KOLO_SECRET", c->text,
                   from);
}

static bool settled(const struct kl_dialer *c)
{
    return c->outcome == KL_ADMITTED || c->outcome == KL_ELSEWHERE;
}

static ncclResult_t judge(const struct kl_dialer *c)
{
    errno = c->err;
    if (c->io == KL_IO_TIMEOUT)
        return KL_FAIL(ncclRemoteError, "%s: no answer within %.3g s", c->text, (double)(kl_now_ns() - c->start) / 1e9);
    if (c->io) return kl_io_fail(c->io, "%s", c->text);
    return settled(c) ? ncclSuccess : refused(c);
}

static void end(struct kl_dialer *c)
{
    int quiet = kl_error_quiet(c->call.quiet);
    ncclResult_t rc = judge(c);
    bool admitted = !rc && c->outcome == KL_ADMITTED;
    struct kl_connection made = {.fd = c->fd};

    kl_error_quiet(quiet);
    if (admitted) {
        kl_handshake_seals(&c->handshake, KL_CALLER, &made.out, &made.in);
        kl_source_watch(c->source, 0); /* the next owner watches the descriptor */
        c->fd = -1;
    }
    c->fn(c->ctx, rc, admitted ? &made : NULL);
    kl_connection_forget(&made);
    caller_free(c);
}

/* ---- one address after the other ---- */

static void try_address(struct kl_dialer *c);

static void begin_round(struct kl_dialer *c)
{
    c->rounds++;
    c->at = 0;
    c->nrefused = 0;
    c->again = false;
    if (c->call.early) c->outcome = 0;
    try_address(c);
}

/* Short pauses at first, because an early host usually appears soon. */
static uint64_t pause_ms(const struct kl_dialer *c, bool not_yet)
{
    int ms = c->rounds < 5 ? 1 << c->rounds : EARLY_PAUSE_MS;

    return (uint64_t)(not_yet ? ms : kl_retry_pause_ms(&c->call.retry, c->rounds));
}

/* The Unix address that was tried last no longer exists, nor does the process that had it. */
static bool is_shut(const struct kl_dialer *c)
{
    return kl_address_is_unix(&c->trying) && c->io == KL_IO_ERROR && c->err == ECONNREFUSED;
}

static void end_round(struct kl_dialer *c)
{
    bool gone = c->call.listening && (c->nrefused == c->naddresses || is_shut(c));

    if (c->outcome) c->io = KL_IO_DONE; /* a host has answered, if only to refuse */
    bool not_yet = c->call.early && (c->outcome == KL_UNKNOWN || c->outcome == KL_NOT_HERE);
    if (!not_yet && (!c->io || gone || !c->again || c->rounds > c->call.retry.count)) {
        end(c);
        return;
    }
    uint64_t next = kl_deadline_in_ms(pause_ms(c, not_yet));
    c->stage = PAUSING;
    if (next >= c->call.deadline || !wait_for(c, -1, 0, next)) end(c);
}

/* Not started yet, too busy, too slow, or another service behind an address that is not globally unique. */
static bool worth_another_round(enum kl_io io, int err)
{
    return io == KL_IO_CLOSED || io == KL_IO_TIMEOUT ||
           (io == KL_IO_ERROR && (kl_retry_is_transient(err) || err == EPROTO));
}

/* A Unix address with a number that the system chose for this host identifies it: an answer there is final, and the
 * host has the same answer at its other addresses. If the address is gone, so is the host. */
static bool is_final_answer(const struct kl_dialer *c, enum kl_io io)
{
    if (!kl_address_is_unix(&c->trying) || !c->call.listening) return false;
    return io == KL_IO_DONE || (io == KL_IO_ERROR && errno == ECONNREFUSED);
}

/* Trying this address has failed; errno says why if it is broken. */
static void next_address(struct kl_dialer *c, enum kl_io io)
{
    bool over = io == KL_IO_TIMEOUT && kl_deadline_passed(c->call.deadline);
    bool known = c->io || c->outcome; /* an earlier reason says more than "too late" */

    if (!over || !known) {
        c->io = io;
        c->err = errno;
    }
    if (over) {
        end(c);
        return;
    }
    c->nrefused += io == KL_IO_ERROR && errno == ECONNREFUSED;
    c->again |= worth_another_round(io, errno);
    if (is_final_answer(c, io)) c->at = c->naddresses - 1;
    if (++c->at < c->naddresses)
        try_address(c);
    else
        end_round(c);
}

/* An interface number is valid on its own host only. */
static union kl_address as_seen_from_here(const union kl_address *address, uint32_t scope)
{
    union kl_address a = *address;

    if (scope && kl_address_is_link_local(&a)) a.v6.sin6_scope_id = scope;
    return a;
}

/* When this address is slow, may another one be the host's? A Unix address is unique: it belongs to the host or the
 * host is gone. */
static bool has_alternatives(const struct kl_dialer *c)
{
    int nunix = 0;

    for (int i = 0; i < c->naddresses; i++) nunix += kl_address_is_unix(&c->address[i]);
    return !kl_address_is_unix(&c->trying) && c->naddresses - nunix > 1;
}

static void try_address(struct kl_dialer *c)
{
    uint64_t turn = kl_deadline_in_ms(TURN_MS);
    int fd = -1;

    c->trying = as_seen_from_here(&c->address[c->at], c->call.scope);
    bool whole = !has_alternatives(c) || turn >= c->call.deadline;
    enum kl_io io = kl_socket_connect_begin(&c->trying, &fd);
    c->stage = CONNECTING;
    if (io || !wait_for(c, fd, EPOLLOUT, whole ? c->call.deadline : turn)) next_address(c, KL_IO_ERROR);
}

/* ---- the handshake ---- */

static enum kl_io connected(struct kl_dialer *c)
{
    enum kl_io io = kl_socket_connect_finish(c->fd);

    if (io) return io;
    kl_hello_encode(&c->call.hello, c->handshake.caller);
    c->handshake.key = c->key;
    c->stage = AWAITING_HELLO;
    c->have = 0;
    kl_source_watch(c->source, EPOLLIN);
    return kl_handshake_say(c->fd, c->handshake.caller, sizeof c->handshake.caller);
}

static enum kl_io greeted(struct kl_dialer *c)
{
    unsigned char proof[KL_PROOF_BYTES];

    if (!kl_hello_plausible(c->handshake.host)) {
        errno = EPROTO;
        return KL_IO_ERROR;
    }
    kl_handshake_prove(&c->handshake, proof);
    c->stage = AWAITING_ANSWER;
    c->have = 0;
    /* it may admit this caller: the time limit for an address no longer applies */
    kl_source_deadline(c->source, c->call.deadline);
    return kl_handshake_say(c->fd, proof, sizeof proof);
}

static void answered(struct kl_dialer *c)
{
    if (!kl_handshake_answered(&c->handshake, c->answer, &c->outcome)) c->outcome = KL_REFUSED;
    c->from = c->trying;
    c->version = kl_hello_decode(c->handshake.host).version;
    if (settled(c)) {
        c->io = KL_IO_DONE;
        end(c);
    } else {
        next_address(c, KL_IO_DONE); /* another address may be the right host */
    }
}

static enum kl_io receive(struct kl_dialer *c)
{
    unsigned char *to = c->stage == AWAITING_HELLO ? c->handshake.host : c->answer;
    size_t whole = c->stage == AWAITING_HELLO ? sizeof c->handshake.host : sizeof c->answer;

    return kl_handshake_receive(c->fd, to, &c->have, whole);
}

static void listen_to(struct kl_dialer *c)
{
    enum kl_io io = receive(c);

    if (io == KL_IO_TIMEOUT) return;
    if (!io && c->stage == AWAITING_ANSWER) {
        answered(c);
        return;
    }
    if (!io) io = greeted(c);
    if (io) next_address(c, io);
}

static void on_caller(void *ctx, uint32_t events)
{
    struct kl_dialer *c = ctx;

    if (c->stage == PAUSING) {
        begin_round(c);
    } else if (!events) {
        next_address(c, KL_IO_TIMEOUT);
    } else if (c->stage == CONNECTING) {
        enum kl_io io = connected(c);
        if (io) next_address(c, io);
    } else {
        listen_to(c);
    }
}

/* ---- life ---- */

static void choose_addresses(struct kl_dialer *c, const struct kl_call *call)
{
    for (int nunix = 1; nunix >= 0; nunix--)
        for (int i = 0; i < call->naddresses; i++) {
            const union kl_address *a = &call->addresses[i];
            bool suits = nunix ? call->place && kl_address_is_unix_of(a, call->place) : !kl_address_is_unix(a);
            if (suits) c->address[c->naddresses++] = *a;
        }
}

static ncclResult_t out_of_reach(const char *error_prefix)
{
    return KL_FAIL(ncclRemoteError,
                   "%s: it is in another host or network namespace, and has no address but there; see that both have a "
                   "network interface that is up (NCCL_SOCKET_IFNAME)",
                   error_prefix);
}

ncclResult_t kl_dialer_start(struct kl_loop *loop, const struct kl_call *call, kl_dialer_fn *fn, void *ctx,
                             struct kl_dialer **out)
{
    struct kl_dialer *c = kl_inject_calloc(1, sizeof *c);

    if (!c) return KL_NOMEM("a call");
    *c = (struct kl_dialer){.loop = loop, .fn = fn, .ctx = ctx, .call = *call, .key = *call->key, .fd = -1};
    c->start = kl_now_ns();
    snprintf(c->text, sizeof c->text, "%s", call->error_prefix);
    choose_addresses(c, call);
    ncclResult_t rc = c->naddresses ? ncclSuccess : out_of_reach(c->text);
    if (!rc) rc = kl_loop_add(loop, -1, 0, on_caller, c, &c->source);
    if (rc) {
        caller_free(c);
        return rc;
    }
    *out = c;
    kl_source_deadline(c->source, 0); /* the loop calls back at once */
    return ncclSuccess;
}

void kl_dialer_cancel(struct kl_dialer *c)
{
    if (c) caller_free(c);
}
