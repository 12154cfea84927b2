/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/rendezvous.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/dialer.h"
#include "bootstrap/admission.h"
#include "bootstrap/partners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The root answers at its deadline: leave it time for that. */
enum { GRACE_MS = 2000 };

/* ---- opening the root ---- */

/* The root's connections are keyed with the pre-shared key as well, which the id does not hold. */
static ncclResult_t start_root(const struct kl_bootstrap_params *params, struct kl_id *id)
{
    struct kl_key secret;

    kl_key_random(secret.bytes, sizeof secret.bytes);
    id->secret = secret;
    kl_id_add_psk(id);
    KL_TRY(kl_id_listen_addresses(params, NULL, id->address, &id->naddresses));
    KL_TRY(kl_root_start(id, NULL));
    id->secret = secret;
    return ncclSuccess;
}

ncclResult_t kl_bootstrap_id_create(ncclUniqueId *out)
{
    struct kl_bootstrap_params params;
    struct kl_id id = {.kind = KL_ID_ROOT_RUNS};

    kl_param_load(&kl_bootstrap_param_set, &params);
    if (params.nccl_comm_id[0])
        KL_TRY(kl_id_rendezvous(params.nccl_comm_id, params.secret, &id));
    else
        KL_TRY(start_root(&params, &id));
    kl_id_pack(&id, out);
    return ncclSuccess;
}

/* Log which hosts are admitted if the key is public. */
static ncclResult_t log_admission(const struct kl_id *id)
{
    struct kl_bootstrap_params params;
    char text[KL_ADDRESS_TEXT];

    kl_param_load(&kl_bootstrap_param_set, &params);
    KL_TRY(kl_admission_check(params.open_to));
    kl_address_format(&id->address[0], text);
    if (*params.open_to)
        KL_WARN(
            "without KOLO_SECRET everybody at %s may join at %s, and end the job: set it to the same text on all ranks",
            kl_admission_is_open(params.open_to) ? "any address" : params.open_to, text);
    else
        KL_INFO(KL_BOOTSTRAP, "without KOLO_SECRET only this host may join at %s; KOLO_OPEN_TO allows others", text);
    return ncclSuccess;
}

ncclResult_t kl_rendezvous_open(struct kl_bootstrap *b, struct kl_id *id, struct kl_root **root)
{
    if (b->rank != 0 || id->kind != KL_ID_RANK0_OPENS) return ncclSuccess;
    if (kl_id_is_public(id)) KL_TRY(log_admission(id));
    return kl_root_start(id, root);
}

/* ---- calling the root ---- */

/* The process to blame if there is no answer. */
static const char *keeper(const struct kl_id *id)
{
    return id->kind == KL_ID_RANK0_OPENS ? "which rank 0 opens" : "kept by the process that made the unique id";
}

/* A call and its waiting thread. */
struct awaited_call {
    struct kl_bootstrap *b;
    struct kl_dialer *caller;
    /* under lock: */
    bool done;
    ncclResult_t rc;
    struct kl_connection connection;
    char text[KL_ERROR_TEXT];
};

static void called(void *ctx, ncclResult_t rc, const struct kl_connection *connection)
{
    struct awaited_call *a = ctx;

    pthread_mutex_lock(&a->b->lock);
    a->done = true;
    a->rc = rc;
    if (connection) a->connection = *connection;
    snprintf(a->text, sizeof a->text, "%s", kl_error_text());
    pthread_cond_broadcast(&a->b->changed);
    pthread_mutex_unlock(&a->b->lock);
}

static ncclResult_t give_up(void *ctx)
{
    struct awaited_call *a = ctx;

    if (!a->done) kl_dialer_cancel(a->caller);
    return ncclSuccess;
}

/* The call has a deadline of its own. */
static ncclResult_t await(struct awaited_call *a, struct kl_connection *root)
{
    struct kl_bootstrap *b = a->b;

    pthread_mutex_lock(&b->lock);
    while (!a->done && !b->aborted) kl_state_wait(b, KL_NO_DEADLINE);
    ncclResult_t rc = kl_state_check(b);
    pthread_mutex_unlock(&b->lock);
    if (rc) {
        (void)kl_loop_run(b->loop, give_up, a);
        kl_socket_close(a->connection.fd);
        return rc;
    }
    if (a->rc) kl_error_adopt(a->text);
    *root = a->connection;
    return a->rc;
}

static ncclResult_t call_root(struct kl_bootstrap *b, const struct kl_id *id, uint64_t deadline,
                              struct kl_connection *root)
{
    struct awaited_call a = {.b = b, .connection = {.fd = -1}};
    struct kl_key key = kl_key_derive(&id->secret, "kolo root", NULL, 0);
    char text[KL_CALL_TEXT], address[KL_ADDRESS_TEXT];
    struct kl_call call = {.addresses = id->address,
                           .naddresses = id->naddresses,
                           .key = &key,
                           .hello = {.version = KL_PROTOCOL,
                                     .type = KL_CONNECTION_ROOT,
                                     .side = KL_CALLER,
                                     .from = (uint32_t)b->rank,
                                     .to = KL_NO_RANK,
                                     .name = kl_id_name(id)},
                           .retry = b->retry,
                           .deadline = deadline,
                           .scope = b->scope,
                           .place = b->place,
                           .is_public = kl_id_is_public(id),
                           .error_prefix = text};

    snprintf(text, sizeof text, "rank %d cannot join the rendezvous at %s, %s", b->rank,
             kl_address_format(&id->address[0], address), keeper(id));
    ncclResult_t rc = kl_dialer_start(b->loop, &call, called, &a, &a.caller);
    if (!rc) rc = await(&a, root);
    kl_connection_forget(&a.connection);
    kl_key_wipe(&key);
    return rc;
}

/* ---- meeting the other ranks ---- */

static enum kl_io announce(struct kl_bootstrap *b, struct kl_connection *root, const struct kl_io_wait *wait)
{
    struct kl_announce a = {.nranks = b->nranks,
                            .library = NCCL_VERSION_CODE,
                            .timeout_ms = b->timeout_ms,
                            .record = b->address_records[b->rank]};
    struct kl_frame_head head = {.type = KL_FRAME_ANNOUNCE, .length = KL_ANNOUNCE_WIRE};
    unsigned char body[KL_ANNOUNCE_WIRE], bytes[KL_FRAME_SEALED(KL_ANNOUNCE_WIRE)];

    kl_announce_encode(&a, body);
    kl_frame_seal_head(&root->out, &head, bytes);
    kl_frame_seal_piece(&root->out, body, sizeof body, bytes + KL_FRAME_SEALED_HEAD);
    pthread_mutex_lock(&b->lock);
    kl_state_count_message(b, sizeof body);
    pthread_mutex_unlock(&b->lock);
    return kl_socket_send(root->fd, bytes, sizeof bytes, wait);
}

/* `*frame` is NULL on a fault, or on any result but KL_IO_DONE. */
static enum kl_io receive_from_root(const struct kl_connection *root, const struct kl_io_wait *wait,
                                    struct kl_frame **frame, enum kl_frame_fault *fault)
{
    struct kl_assembler assembler = {.seal = root->in};
    enum kl_io io = KL_IO_DONE;

    for (*frame = NULL, *fault = KL_FRAME_SOUND; !*frame && !io && !*fault;) {
        size_t room;
        unsigned char *to = kl_assembler_room(&assembler, &room);
        io = kl_socket_recv(root->fd, to, room, wait);
        if (!io) *fault = kl_assembler_filled(&assembler, room, KL_INTRODUCTION_WIRE(2 * KL_MAX_PARTNERS), frame);
    }
    kl_assembler_fini(&assembler);
    return io;
}

static ncclResult_t no_sense(const struct kl_bootstrap *b)
{
    return KL_FAIL(ncclRemoteError, "rank %d: the rendezvous sent an invalid introduction", b->rank);
}

static ncclResult_t refused(const struct kl_bootstrap *b, const struct kl_frame *f)
{
    struct kl_notice why;

    if (!kl_notice_decode(f->body, f->head.length, &why)) return no_sense(b);
    return KL_FAIL(why.code, "%s", why.text);
}

static ncclResult_t introduced(struct kl_bootstrap *b, const struct kl_id *id, const struct kl_frame *f)
{
    struct kl_introduction introduction;

    if (f->head.type == KL_FRAME_REFUSE) return refused(b, f);
    if (f->head.type != KL_FRAME_INTRODUCE) return no_sense(b);
    if (!kl_introduction_decode(f->body, f->head.length, &introduction)) return no_sense(b);
    const struct kl_placement *l = &introduction.placement;
    int partner[KL_MAX_PARTNERS], nleaders = l->place ? 0 : kl_partners(l->process, l->nprocesses, partner);
    if (l->nprocesses > b->nranks || l->nmembers > b->nranks || introduction.nleaders != nleaders) return no_sense(b);
    b->placement = *l;
    for (int i = 0; i < introduction.npartners + nleaders; i++) {
        const struct kl_address_record *record = &introduction.partner[i];
        if (record->rank >= b->nranks || record->rank == b->rank) return no_sense(b);
        b->address_records[record->rank] = *record;
        if (i >= introduction.npartners) b->leaders[i - introduction.npartners] = record->rank;
    }
    b->key = kl_key_derive(&id->secret, "kolo peer", introduction.session, sizeof introduction.session);
    return ncclSuccess;
}

/* The root has its own deadline, and names the missing ranks. This is for a root that fails itself. */
static ncclResult_t root_timed_out(struct kl_bootstrap *b, const struct kl_id *id, enum kl_io io)
{
    char address[KL_ADDRESS_TEXT];

    kl_address_format(&id->address[0], address);
    if (io == KL_IO_TIMEOUT)
        return KL_FAIL(ncclRemoteError, "rank %d: the rendezvous at %s, %s, says nothing for %g s", b->rank, address,
                       keeper(id), (double)b->timeout_ms / 1000);
    return kl_io_fail(io, "rank %d waits for the other ranks at the rendezvous %s, %s", b->rank, address, keeper(id));
}

static ncclResult_t bad_frame(const struct kl_bootstrap *b, const struct kl_id *id, enum kl_frame_fault fault)
{
    char address[KL_ADDRESS_TEXT];

    if (fault == KL_FRAME_NO_MEMORY) return KL_NOMEM("an introduction");
    if (fault == KL_FRAME_NONSENSE) return no_sense(b);
    return KL_FAIL(
        ncclRemoteError,
        "a frame from the rendezvous at %s was altered on the way to rank %d; check the network between them",
        kl_address_format(&id->address[0], address), b->rank);
}

/* Announce this rank, and receive the answer. */
static ncclResult_t talk(struct kl_bootstrap *b, const struct kl_id *id, struct kl_connection *root, uint64_t deadline)
{
    struct kl_io_wait wait = {.deadline = deadline, .stop = &b->stop};
    enum kl_frame_fault fault = KL_FRAME_SOUND;
    struct kl_frame *frame = NULL;

    b->announced = true; /* or a part of it was sent */
    enum kl_io io = announce(b, root, &wait);
    wait.deadline = deadline + GRACE_MS * 1000000ull;
    if (!io) io = receive_from_root(root, &wait, &frame, &fault);
    if (io) return root_timed_out(b, id, io);
    if (fault) return bad_frame(b, id, fault);
    ncclResult_t rc = introduced(b, id, frame);
    free(frame);
    return rc;
}

/* An answer of a root with the public key proves nothing about its host: check its address. */
static ncclResult_t check_host(const struct kl_bootstrap *b, int fd)
{
    union kl_address there = kl_socket_peer(fd);
    struct kl_bootstrap_params params;
    char text[KL_ADDRESS_TEXT];

    kl_param_load(&kl_bootstrap_param_set, &params);
    KL_TRY(kl_admission_check(params.open_to));
    if (kl_admission_allows(params.open_to, kl_socket_local(fd), there)) return ncclSuccess;
    return KL_FAIL(
        ncclInvalidUsage,
        "rank %d does not join at %s, another host, without KOLO_SECRET, as anybody could be there: set it to "
        "the same text on all ranks, or allow that host with KOLO_OPEN_TO",
        b->rank, kl_address_format(&there, text));
}

ncclResult_t kl_rendezvous_meet(struct kl_bootstrap *b, const struct kl_id *id)
{
    uint64_t deadline = kl_deadline_in_ms(b->timeout_ms);
    struct kl_connection root;

    KL_TRY(call_root(b, id, deadline, &root));
    ncclResult_t rc = kl_id_is_public(id) ? check_host(b, root.fd) : ncclSuccess;
    if (!rc) rc = talk(b, id, &root, deadline);
    kl_socket_close(root.fd);
    kl_connection_forget(&root);
    return rc;
}
