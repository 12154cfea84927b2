/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/acceptor.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/listener.h"
#include "bootstrap/record.h"
#include "os/fault_inject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPARE_MS = 1000, /* for a handshake, while it occupies the reserve descriptor */
    BUCKETS = 1024,  /* hash buckets of acceptors, by name and rank */
};

struct kl_acceptor {
    struct kl_acceptor *next; /* in its bucket */
    struct kl_loop *loop;
    struct kl_hello me;
    struct kl_key key;
    bool open; /* the key is known */
    int expected;
    kl_acceptor_fn *fn;
    void *ctx;
    int nlisteners;
    struct kl_listener *listener[KL_ADDRESSES];

    /* outcome for the last caller that was declined; 0: none was */
    enum kl_handshake_outcome declined;
    unsigned declined_version;
    union kl_address declined_from;
};

enum stage { AWAITING_HELLO, AWAITING_PROOF, PROVED };

/* A connection in the middle of its handshake. */
struct kl_incoming {
    struct kl_incoming *prev, *next;
    struct kl_listener *listener;
    struct kl_acceptor *owner; /* whose port was given: the listener is not shared */
    /* the acceptor that it asks for, as far as known; NULL: not known yet, or not in this process */
    struct kl_acceptor *wanted;
    struct kl_source *source;
    int fd;     /* -1 once handed over */
    bool spare; /* accepted with the reserve descriptor (listener.h) */
    enum stage stage;
    struct kl_handshake handshake;
    unsigned char proof[KL_PROOF_BYTES];
    size_t have; /* bytes received of the current message */
};

/* All acceptors of the process, and the connections in a handshake. Used on the event loop only, like all code here. */
static struct {
    struct kl_loop *loop;
    struct kl_acceptor *bucket[BUCKETS];
    int nacceptors;
    int expected; /* callers, in addition to those that any acceptor may have */
    struct kl_incoming *oldest, *newest;
    int nincoming;
} process;

/* ---- the list of incoming connections ---- */

static void append(struct kl_incoming *in)
{
    in->prev = process.newest;
    if (process.newest)
        process.newest->next = in;
    else
        process.oldest = in;
    process.newest = in;
    process.nincoming++;
}

static void end(struct kl_incoming *in)
{
    if (in->prev)
        in->prev->next = in->next;
    else
        process.oldest = in->next;
    if (in->next)
        in->next->prev = in->prev;
    else
        process.newest = in->prev;
    process.nincoming--;
    kl_source_remove(in->source);
    kl_socket_close(in->fd);
    if (in->spare) kl_loop_release_reserve_fd(process.loop);
    kl_key_wipe(&in->handshake.key);
    free(in);
}

static void end_all_of(const struct kl_listener *listener)
{
    for (struct kl_incoming *in = process.oldest, *next; in; in = next) {
        next = in->next;
        if (in->listener == listener) end(in);
    }
}

/* ---- answers ---- */

static bool answer(struct kl_incoming *in, enum kl_handshake_outcome outcome)
{
    unsigned char bytes[KL_ANSWER_BYTES];

    kl_handshake_answer(&in->handshake, outcome, bytes);
    return !kl_handshake_say(in->fd, bytes, sizeof bytes);
}

int kl_incoming_fd(const struct kl_incoming *in)
{
    return in->fd;
}

uint32_t kl_incoming_rank(const struct kl_incoming *in)
{
    return kl_hello_decode(in->handshake.caller).from;
}

bool kl_incoming_admit(struct kl_incoming *in, struct kl_connection *c)
{
    errno = 0;
    if (in->spare && !kl_loop_restore_reserve_fd(process.loop)) {
        answer(in, KL_EXHAUSTED);
        errno = EMFILE;
        return false;
    }
    in->spare = false;
    kl_source_watch(in->source, 0); /* the next owner watches the descriptor */
    if (!answer(in, KL_ADMITTED)) return false;
    c->fd = in->fd;
    kl_handshake_seals(&in->handshake, KL_HOST, &c->out, &c->in);
    in->fd = -1;
    return true;
}

void kl_incoming_decline(struct kl_incoming *in, enum kl_handshake_outcome outcome)
{
    static const char *const why[] = {[KL_REFUSED] = "another secret",
                                      [KL_UNKNOWN] = "it asks for a rank that is not here",
                                      [KL_ELSEWHERE] = "there is another connection",
                                      [KL_OTHER_VERSION] = "another version of the protocol",
                                      [KL_NOT_HERE] = "its rank does not fit, or it asks for another rank",
                                      [KL_EXHAUSTED] = "no descriptor left"};
    char text[KL_ADDRESS_TEXT];
    union kl_address peer = kl_socket_peer(in->fd);

    if (in->wanted && outcome != KL_ELSEWHERE) {
        in->wanted->declined = outcome;
        in->wanted->declined_version = kl_hello_decode(in->handshake.caller).version;
        in->wanted->declined_from = peer;
    }
    KL_INFO(KL_BOOTSTRAP, "declined a connection from %s: %s", kl_address_format(&peer, text), why[outcome]);
    answer(in, outcome);
}

bool kl_acceptor_has_declined(const struct kl_acceptor *a, char *text, size_t size)
{
    char from[KL_ADDRESS_TEXT];

    if (!a || !a->declined) return false;
    kl_address_format(&a->declined_from, from);
    if (a->declined == KL_OTHER_VERSION)
        snprintf(text, size,
                 "somebody at %s was turned away, for it speaks version %u of the protocol, and we speak %d; use one "
                 "version of Kolo on all ranks",
                 from, a->declined_version, KL_PROTOCOL);
    else
        snprintf(text, size, "somebody at %s was turned away, for %s", from,
                 a->declined == KL_REFUSED ? "it has another KOLO_SECRET, or none" : "it asked for another rank");
    return true;
}

/* ---- choosing the acceptor ---- */

static struct kl_acceptor **bucket_of(uint32_t name, uint32_t rank)
{
    return &process.bucket[(name + rank) % BUCKETS];
}

static bool listens(const struct kl_acceptor *a, const struct kl_listener *listener)
{
    for (int i = 0; i < a->nlisteners; i++)
        if (a->listener[i] == listener) return true;
    return false;
}

static bool wants(const struct kl_incoming *in, const struct kl_acceptor *a)
{
    struct kl_hello hello = kl_hello_decode(in->handshake.caller);

    if (in->owner) return a == in->owner;
    return hello.name == a->me.name && hello.type == a->me.type && hello.to == a->me.from && hello.side == KL_CALLER &&
           listens(a, in->listener);
}

/* The next acceptor that it may ask for; NULL for the first. Jobs with equal secrets have equal names. */
static struct kl_acceptor *next_wanted(const struct kl_incoming *in, const struct kl_acceptor *after)
{
    struct kl_acceptor *a;

    if (in->owner) return after ? NULL : in->owner;
    struct kl_hello hello = kl_hello_decode(in->handshake.caller);
    a = after ? after->next : *bucket_of(hello.name, hello.to);
    while (a && !wants(in, a)) a = a->next;
    return a;
}

/* The hello is complete. False: not a hello of this protocol. */
static bool greet(struct kl_incoming *in)
{
    static const struct kl_hello nobody = {.version = KL_PROTOCOL, .side = KL_HOST, .from = KL_NO_RANK};

    if (!kl_hello_plausible(in->handshake.caller)) return false;
    const struct kl_acceptor *a = next_wanted(in, NULL);
    kl_hello_encode(a ? &a->me : &nobody, in->handshake.host); /* the same for all acceptors in question */
    in->stage = AWAITING_PROOF;
    in->have = 0;
    return !kl_handshake_say(in->fd, in->handshake.host, sizeof in->handshake.host);
}

static void hand_over(struct kl_incoming *in, struct kl_acceptor *a)
{
    enum kl_handshake_outcome outcome = kl_handshake_judge(&in->handshake);

    in->wanted = a;

    if (outcome == KL_ADMITTED)
        a->fn(a->ctx, in);
    else
        kl_incoming_decline(in, outcome);
}

/* The proof is complete: find the acceptor whose key it was made with. False: not known yet; true: the connection
 * was handed over or declined. */
static bool judge(struct kl_incoming *in)
{
    bool may_yet_be = false, wanted = false;

    for (struct kl_acceptor *a = NULL; (a = next_wanted(in, a));) {
        wanted = true;
        in->wanted = a;
        may_yet_be |= !a->open;
        in->handshake.key = a->key;
        if (!a->open || !kl_handshake_proved(&in->handshake, in->proof)) continue;
        hand_over(in, a);
        return true;
    }
    if (may_yet_be) return false;
    kl_incoming_decline(in, wanted ? KL_REFUSED : KL_UNKNOWN);
    return true;
}

/* ---- reading ---- */

/* False: the connection is done with. */
static bool listen_to(struct kl_incoming *in)
{
    while (in->stage != PROVED) {
        bool hello = in->stage == AWAITING_HELLO;
        unsigned char *to = hello ? in->handshake.caller : in->proof;
        size_t whole = hello ? sizeof in->handshake.caller : sizeof in->proof;
        enum kl_io io = kl_handshake_receive(in->fd, to, &in->have, whole);

        if (io) return io == KL_IO_TIMEOUT;
        if (hello) {
            if (!greet(in)) return false;
            continue;
        }
        in->stage = PROVED;
        kl_source_watch(in->source, EPOLLRDHUP);
    }
    return !judge(in);
}

static void on_incoming(void *ctx, uint32_t events)
{
    struct kl_incoming *in = ctx;

    /* 0: timeout. After the proof, the only possible event is the end of the connection. */
    if (!events || in->stage == PROVED || !listen_to(in)) end(in);
}

static void receive(struct kl_listener *listener, void *owner, int fd, bool spare)
{
    struct kl_incoming *in = kl_inject_calloc(1, sizeof *in);

    if (!in) {
        kl_socket_close(fd);
        if (spare) kl_loop_release_reserve_fd(process.loop);
        return;
    }
    in->spare = spare;
    in->listener = listener;
    in->owner = owner;
    in->fd = fd;
    append(in);
    if (kl_loop_add(process.loop, fd, EPOLLIN, on_incoming, in, &in->source)) {
        end(in);
        return;
    }
    kl_source_deadline(in->source, kl_deadline_in_ms(spare ? SPARE_MS : KL_HANDSHAKE_MS));
    if (process.nincoming > KL_INCOMING_MAX(process.nacceptors) + process.expected) end(process.oldest);
}

/* Repeat for connections that wait for an acceptor: it may have got its key, or be gone. */
static void retry_waiting(void)
{
    for (struct kl_incoming *in = process.oldest, *next; in; in = next) {
        next = in->next;
        if (in->stage == PROVED && judge(in)) end(in);
    }
}

/* ---- acceptors ---- */

static void insert(struct kl_acceptor *a)
{
    struct kl_acceptor **bucket = bucket_of(a->me.name, a->me.from);

    a->next = *bucket;
    *bucket = a;
    process.nacceptors++;
}

static void unlink_from_bucket(const struct kl_acceptor *a)
{
    struct kl_acceptor **link = bucket_of(a->me.name, a->me.from);

    while (*link && *link != a) link = &(*link)->next;
    if (!*link) return;
    *link = a->next;
    process.nacceptors--;
    process.expected -= a->expected;
}

static void drop_listeners(struct kl_acceptor *a)
{
    for (int i = 0; i < a->nlisteners; i++)
        if (kl_listener_unref(a->listener[i])) end_all_of(a->listener[i]);
}

/* Listen on each address; those that fail are removed. */
static ncclResult_t listen_on(struct kl_acceptor *a, union kl_address *addresses, int *n)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < *n; i++) {
        rc = kl_listener_ref(a->loop, &addresses[i], receive, a, &a->listener[a->nlisteners]);
        if (!rc)
            addresses[a->nlisteners++] = addresses[i];
        else if (errno != EADDRNOTAVAIL)
            return rc;
    }
    if (!a->nlisteners) return rc;
    *n = a->nlisteners;
    return ncclSuccess;
}

/* After a fork the child has another loop, and the entries in the lists are the parent's. */
static void notice_another_loop(struct kl_loop *loop)
{
    if (process.loop == loop) return;
    memset(&process, 0, sizeof process);
    process.loop = loop;
}

struct creation {
    struct kl_acceptor *acceptor;
    union kl_address *addresses;
    int *n;
};

static ncclResult_t begin(void *ctx)
{
    struct creation *c = ctx;

    notice_another_loop(c->acceptor->loop);
    ncclResult_t rc = listen_on(c->acceptor, c->addresses, c->n);
    if (rc)
        drop_listeners(c->acceptor);
    else
        insert(c->acceptor);
    return rc;
}

ncclResult_t kl_acceptor_create(struct kl_loop *loop, union kl_address *addresses, int *n, const struct kl_hello *me,
                                kl_acceptor_fn *fn, void *ctx, struct kl_acceptor **out)
{
    struct kl_acceptor *a = kl_inject_calloc(1, sizeof *a);
    struct creation c = {.acceptor = a, .addresses = addresses, .n = n};

    if (!a) return KL_NOMEM("an acceptor");
    *a = (struct kl_acceptor){.loop = loop, .me = *me, .fn = fn, .ctx = ctx};
    ncclResult_t rc = kl_loop_run(loop, begin, &c);
    if (rc)
        free(a);
    else
        *out = a;
    return rc;
}

struct opening {
    struct kl_acceptor *acceptor;
    const struct kl_key *key;
};

static ncclResult_t open_it(void *ctx)
{
    struct opening *o = ctx;

    o->acceptor->key = *o->key;
    o->acceptor->open = true;
    retry_waiting();
    return ncclSuccess;
}

void kl_acceptor_open(struct kl_acceptor *a, const struct kl_key *key)
{
    struct opening o = {.acceptor = a, .key = key};

    (void)kl_loop_run(a->loop, open_it, &o);
}

void kl_acceptor_expect(struct kl_acceptor *a, int callers)
{
    process.expected += callers - a->expected;
    a->expected = callers;
}

static ncclResult_t close_it(void *ctx)
{
    struct kl_acceptor *a = ctx;

    unlink_from_bucket(a);
    drop_listeners(a);
    retry_waiting();
    kl_key_wipe(&a->key);
    free(a);
    return ncclSuccess;
}

void kl_acceptor_close(struct kl_acceptor *a)
{
    if (a) (void)kl_loop_run(a->loop, close_it, a);
}
