/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/state.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/call.h"
#include "bootstrap/id.h"
#include "bootstrap/partners.h"
#include "bootstrap/root.h"
#include "os/hostinfo.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The root answers when the time is up, and has to be given the time for it. */
enum { GRACE_MS = 2000 };

/* For telling the others why we do not join, all of them together; and for their calls that are on the way when we leave. */
enum { TELL_MS = 1000 };

/* ---- meeting the others at the root ---- */

static ncclResult_t call_root(struct kl_bootstrap *b, const struct kl_id *id, const struct kl_wait *wait, int *fd)
{
    struct kl_key key = kl_key_derive(&id->secret, "kolo root", NULL, 0);
    struct kl_call call = {.addresses = id->address,
                           .naddresses = id->naddresses,
                           .key = &key,
                           .hello = {.version = KL_PROTOCOL,
                                     .type = KL_CONNECTION_ROOT,
                                     .side = KL_CALLER,
                                     .from = (uint32_t)b->rank,
                                     .to = KL_NO_RANK},
                           .retry = b->retry,
                           .scope = b->scope};
    char text[256], address[KL_ADDRESS_TEXT];

    snprintf(text, sizeof text, "rank %d cannot join the rendezvous at %s", b->rank,
             kl_address_format(&id->address[0], address));
    return kl_call(&call, wait, text, fd);
}

static enum kl_io announce(struct kl_bootstrap *b, int fd, const struct kl_wait *wait)
{
    struct kl_announce a = {
        .nranks = b->nranks, .library = NCCL_VERSION_CODE, .patience_ms = b->timeout_ms, .card = b->me};
    struct kl_frame frame = {.type = KL_FRAME_ANNOUNCE, .length = KL_ANNOUNCE_WIRE};
    unsigned char bytes[KL_FRAME_HEAD + KL_ANNOUNCE_WIRE];

    kl_frame_encode(&frame, bytes);
    kl_announce_encode(&a, bytes + KL_FRAME_HEAD);
    return kl_socket_send(fd, bytes, sizeof bytes, wait);
}

/* NULL with KL_IO_DONE: what came was no frame. */
static enum kl_io hear_root(int fd, const struct kl_wait *wait, struct kl_message **message)
{
    struct kl_assembler assembler = {0};
    enum kl_io io = KL_IO_DONE;
    bool sense = true;

    for (*message = NULL; !*message && !io && sense;) {
        size_t room;
        unsigned char *to = kl_assembler_room(&assembler, &room);
        io = kl_socket_recv(fd, to, room, wait);
        if (!io) sense = !kl_assembler_filled(&assembler, room, KL_INTRODUCTION_WIRE(KL_MAX_PARTNERS), message);
    }
    kl_assembler_fini(&assembler);
    return io;
}

static ncclResult_t no_sense(const struct kl_bootstrap *b)
{
    return KL_FAIL(ncclRemoteError, "rank %d: the rendezvous sent what is no introduction", b->rank);
}

static ncclResult_t refused(const struct kl_bootstrap *b, const struct kl_message *m)
{
    struct kl_notice why;

    if (!kl_notice_decode(m->body, m->frame.length, &why)) return no_sense(b);
    return KL_FAIL(why.code, "%s", why.text);
}

static ncclResult_t introduced(struct kl_bootstrap *b, const struct kl_id *id, const struct kl_message *m)
{
    struct kl_introduction introduction;

    if (m->frame.type == KL_FRAME_REFUSE) return refused(b, m);
    if (m->frame.type != KL_FRAME_INTRODUCE) return no_sense(b);
    if (!kl_introduction_decode(m->body, m->frame.length, &introduction)) return no_sense(b);
    for (int i = 0; i < introduction.npartners; i++) {
        const struct kl_card *card = &introduction.partner[i];
        if (card->rank >= b->nranks || card->rank == b->rank) return no_sense(b);
        b->peers[card->rank].card = *card;
    }
    b->key = kl_key_derive(&id->secret, "kolo peer", introduction.session, sizeof introduction.session);
    return ncclSuccess;
}

/* The root has its own deadline: it says who is missing. This is for a root that is not well itself. */
static ncclResult_t no_word(struct kl_bootstrap *b, const struct kl_id *id, enum kl_io io)
{
    char address[KL_ADDRESS_TEXT];

    kl_address_format(&id->address[0], address);
    if (io == KL_IO_LATE)
        return KL_FAIL(ncclRemoteError, "rank %d: the rendezvous at %s says nothing for %g s", b->rank, address,
                       (double)b->timeout_ms / 1000);
    return kl_io_fail(io, "rank %d waits at the rendezvous %s for the other ranks", b->rank, address);
}

static ncclResult_t meet(struct kl_bootstrap *b, const struct kl_id *id)
{
    uint64_t end = kl_deadline_in_ms(b->timeout_ms);
    struct kl_wait wait = {.deadline = end, .stop = &b->stop};
    struct kl_message *message = NULL;
    int fd = -1;

    KL_TRY(call_root(b, id, &wait, &fd));
    enum kl_io io = announce(b, fd, &wait);
    wait.deadline = end + GRACE_MS * 1000000ull;
    if (!io) io = hear_root(fd, &wait, &message);
    kl_socket_close(fd);
    if (io) return no_word(b, id, io);
    ncclResult_t rc = message ? introduced(b, id, message) : no_sense(b);
    free(message);
    return rc;
}

/* ---- connecting with them ---- */

static ncclResult_t open_my_door(struct kl_bootstrap *b)
{
    struct kl_hello me = {
        .version = KL_PROTOCOL, .type = KL_CONNECTION_PEER, .side = KL_HOST, .from = (uint32_t)b->rank};

    return kl_door_open(b->door, &b->key, &me, kl_reach_called, b);
}

/* Partners know each other from the root; afterwards everybody knows everybody. */
static ncclResult_t learn_all_cards(struct kl_bootstrap *b)
{
    unsigned char *cards = calloc((size_t)b->nranks, KL_CARD_WIRE);
    ncclResult_t rc = ncclSuccess;

    if (!cards) return KL_NOMEM("the addresses of all ranks");
    kl_card_encode(&b->me, cards + (size_t)b->rank * KL_CARD_WIRE);
    rc = kl_bootstrap_allgather(b, cards, KL_CARD_WIRE);
    pthread_mutex_lock(&b->lock);
    for (int rank = 0; rank < b->nranks && !rc; rank++) {
        struct kl_card card;
        if (!kl_card_decode(cards + (size_t)rank * KL_CARD_WIRE, &card) || card.rank != rank)
            rc = KL_FAIL(ncclInternalError, "rank %d: the record of rank %d is damaged", b->rank, rank);
        else
            b->peers[rank].card = card;
    }
    pthread_mutex_unlock(&b->lock);
    free(cards);
    return rc;
}

/* Partners may not be connected with us yet: without a word from us, they would take us for the one who failed. */
static void tell_partners(struct kl_bootstrap *b)
{
    int partner[KL_MAX_PARTNERS], n = kl_partners(b->rank, b->nranks, partner);
    char why[KL_ERROR_TEXT], text[KL_ERROR_TEXT], me[KL_WHO_TEXT];

    snprintf(why, sizeof why, "%s", kl_error_text());
    snprintf(text, sizeof text, "%s did not join: %.800s", kl_who(b, b->rank, me), why);
    kl_bootstrap_report(b, b->rank, ncclRemoteError, text); /* unless the failure is known already */
    pthread_mutex_lock(&b->lock);
    for (int i = 0; i < n; i++) (void)kl_reach_begin(&b->peers[partner[i]]); /* kl_bootstrap_leave lets them finish */
    pthread_mutex_unlock(&b->lock);
    kl_error_adopt(why);
}

static ncclResult_t join_partners(struct kl_bootstrap *b)
{
    ncclResult_t rc = open_my_door(b);

    if (!rc) rc = learn_all_cards(b);
    if (rc) tell_partners(b);
    return rc;
}

/* ---- life ---- */

static ncclResult_t check_config(const struct kl_bootstrap_config *c, struct kl_id *id)
{
    if (c->nranks < 1 || c->nranks > KL_MAX_RANKS || c->rank < 0 || c->rank >= c->nranks)
        return KL_FAIL(ncclInvalidArgument, "rank %d of %d", c->rank, c->nranks);
    if (!c->timeout_ms) return KL_FAIL(ncclInvalidArgument, "a bootstrap needs a timeout");
    if (!kl_id_unpack(&c->id, id))
        return KL_FAIL(ncclInvalidArgument, "these 128 bytes are no unique id of this library; use ncclGetUniqueId");
    return ncclSuccess;
}

static void init_lock(struct kl_bootstrap *b)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&b->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static ncclResult_t create(const struct kl_bootstrap_config *c, struct kl_bootstrap **out)
{
    struct kl_bootstrap *b = calloc(1, sizeof *b);

    if (b) b->peers = calloc((size_t)c->nranks, sizeof *b->peers);
    if (!b || !b->peers) {
        free(b);
        return KL_NOMEM("a bootstrap");
    }
    b->rank = c->rank;
    b->nranks = c->nranks;
    b->on_failure = c->on_failure;
    b->ctx = c->ctx;
    b->timeout_ms = c->timeout_ms;
    b->stop = b->outer = KL_STOP_NONE;
    b->phase = "join";
    b->awaited = -1;
    init_lock(b);
    for (int rank = 0; rank < c->nranks; rank++) {
        b->peers[rank].bootstrap = b;
        b->peers[rank].rank = rank;
        b->peers[rank].fd = -1;
    }
    *out = b;
    return ncclSuccess;
}

static void on_outer_stop(void *ctx, uint32_t events)
{
    struct kl_bootstrap *b = ctx;

    (void)events;
    kl_source_watch(b->outer_source, 0);
    kl_bootstrap_abort(b);
}

/* Several bootstraps may obey one stop, and the loop takes a descriptor only once. */
static ncclResult_t obey(struct kl_bootstrap *b, const struct kl_stop *stop)
{
    if (!stop) return ncclSuccess;
    b->outer.fd = fcntl(stop->fd, F_DUPFD_CLOEXEC, 0);
    if (b->outer.fd < 0) return KL_FAIL_ERRNO("cannot duplicate an event descriptor");
    return kl_loop_add(b->loop, b->outer.fd, EPOLLIN, on_outer_stop, b, &b->outer_source);
}

static uint32_t scope_of(const struct kl_card *card)
{
    for (int i = 0; i < card->naddresses; i++)
        if (kl_address_is_link_local(&card->address[i])) return card->address[i].v6.sin6_scope_id;
    return 0;
}

static ncclResult_t describe_me(struct kl_bootstrap *b, const struct kl_id *id)
{
    const union kl_address *near = id->kind == KL_ID_RANK0_OPENS ? &id->address[0] : NULL;
    struct kl_bootstrap_params params;
    char host[KL_HOSTNAME];

    kl_param_load(&kl_bootstrap_param_set, &params);
    b->retry = (struct kl_retry){.count = (int)params.retries, .sleep_ms = (int)params.retry_sleep_ms};
    kl_hostinfo_name(host);
    snprintf(b->me.host, sizeof b->me.host, "%.*s", KL_HOST_TEXT - 1, host);
    b->me.rank = b->rank;
    b->me.pid = (uint64_t)getpid();
    KL_TRY(kl_id_listen_addresses(&params, near, b->me.address, &b->me.naddresses));
    b->scope = scope_of(&b->me);
    return kl_door_create(b->loop, b->me.address, &b->me.naddresses, &b->door);
}

static ncclResult_t open_rendezvous(struct kl_bootstrap *b, struct kl_id *id, struct kl_root **root)
{
    char text[KL_ADDRESS_TEXT];

    if (b->rank != 0 || id->kind != KL_ID_RANK0_OPENS) return ncclSuccess;
    if (kl_id_is_public(id))
        KL_WARN("the rendezvous at %s is open to everybody: set KOLO_SECRET to the same text on all ranks",
                kl_address_format(&id->address[0], text));
    return kl_root_start(id, root);
}

ncclResult_t kl_bootstrap_join(const struct kl_bootstrap_config *config, struct kl_bootstrap **out)
{
    struct kl_bootstrap *b = NULL;
    struct kl_root *root = NULL;
    struct kl_id id;
    ncclResult_t rc;

    KL_TRY(check_config(config, &id));
    KL_TRY(create(config, &b));
    KL_TRY_OR(rc, out, kl_loop_hold(&b->loop));
    KL_TRY_OR(rc, out, kl_stop_init(&b->stop));
    KL_TRY_OR(rc, out, obey(b, config->stop));
    KL_TRY_OR(rc, out, describe_me(b, &id));
    KL_TRY_OR(rc, out, open_rendezvous(b, &id, &root));
    KL_TRY_OR(rc, out, meet(b, &id));
    KL_TRY_OR(rc, out, join_partners(b));
    KL_INFO(KL_BOOTSTRAP, "rank %d of %d has joined", b->rank, b->nranks);

    *out = b;
    b = NULL;
out:
    kl_root_stop(root);
    kl_key_wipe(&id.secret);
    kl_bootstrap_leave(b);
    return rc;
}

static void bootstrap_free(struct kl_bootstrap *b)
{
    kl_stop_fini(&b->outer);
    kl_stop_fini(&b->stop);
    kl_key_wipe(&b->key);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b->peers);
    free(b);
}

static void stop_calls(void *ctx)
{
    struct kl_bootstrap *b = ctx;

    for (int rank = 0; rank < b->nranks; rank++) kl_reach_stop(&b->peers[rank]);
}

void kl_bootstrap_leave(struct kl_bootstrap *b)
{
    if (!b) return;
    if (kl_bootstrap_inherited(b)) return;
    kl_source_remove(b->outer_source);
    kl_reach_finish(b, kl_deadline_in_ms(TELL_MS));
    if (b->loop) kl_loop_run(b->loop, stop_calls, b);
    kl_door_close(b->door);
    for (int rank = 0; rank < b->nranks; rank++) kl_link_stop(&b->peers[rank]);
    for (int rank = 0; rank < b->nranks; rank++) kl_link_fini(&b->peers[rank]);
    kl_loop_drop(b->loop);
    bootstrap_free(b);
}
