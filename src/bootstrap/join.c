/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/bootstrap.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/status_query.h"
#include "bootstrap/failure.h"
#include "bootstrap/process_table.h"
#include "bootstrap/join.h"
#include "bootstrap/link.h"
#include "bootstrap/partners.h"
#include "bootstrap/peer_connect.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/liveness.h"
#include "os/fd_limit.h"
#include "os/hostinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For telling the other ranks that this one does not join, all together; and for their connection attempts that are
 * under way when this rank leaves. */
enum { TELL_MS = 1000 };

/* ---- connecting with the others ---- */

/* Partners' addresses come from the root; the first exchange connects with them, and distributes the addresses of
 * all. */
static ncclResult_t meet_partners(struct kl_bootstrap *b)
{
    KL_TRY(kl_bootstrap_barrier(b));
    return kl_process_table_gather(b);
}

/* Partners may not be connected yet: without a notice they would blame this rank. */
static void tell_partners(struct kl_bootstrap *b)
{
    int partner[KL_MAX_PARTNERS], n = kl_partners(b->rank, b->nranks, partner);
    char why[KL_ERROR_TEXT], text[KL_ERROR_TEXT], me[KL_RANK_DESCRIPTION];

    snprintf(why, sizeof why, "%s", kl_error_text());
    snprintf(text, sizeof text, "%s did not join: %.800s", kl_rank_describe(b, b->rank, me), why);
    kl_bootstrap_report(b, b->rank, ncclRemoteError, text); /* ignored if the failure is known already */
    pthread_mutex_lock(&b->lock);
    for (int i = 0; i < n; i++) {
        struct kl_contact *peer;
        if (!kl_contact_make(b, partner[i], &peer))
            (void)kl_peer_connect_begin(peer); /* kl_bootstrap_leave lets it finish */
    }
    pthread_mutex_unlock(&b->lock);
    kl_error_adopt(why);
}

static ncclResult_t join_partners(struct kl_bootstrap *b)
{
    kl_acceptor_open(b->acceptor, &b->key);
    ncclResult_t rc = meet_partners(b);
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

ncclResult_t kl_join_begin(const struct kl_bootstrap_config *c, struct kl_bootstrap **out)
{
    struct kl_bootstrap *b;

    KL_TRY(kl_state_create(c->rank, c->nranks, &b));
    b->on_failure = c->on_failure;
    b->on_control_msg = c->on_control_msg;
    b->on_packet = c->on_packet;
    b->on_left = c->on_left;
    b->ctx = c->ctx;
    b->timeout_ms = c->timeout_ms;
    b->on_bad_news = kl_failure_on_notice;
    b->on_status_frame = kl_status_query_on_frame;
    *out = b;
    KL_TRY(kl_loop_ref(&b->loop));
    KL_TRY(kl_loop_add(b->loop, -1, 0, kl_failure_on_timer, b, &b->clock));
    KL_TRY(kl_loop_add(b->loop, -1, 0, kl_liveness_on_timer, b, &b->vigil));
    return kl_status_query_create(b);
}

static void on_outer_stop(void *ctx, uint32_t events)
{
    struct kl_bootstrap *b = ctx;

    (void)events;
    kl_source_watch(b->outer_source, 0);
    kl_bootstrap_abort(b);
}

/* Several bootstraps may share one stop, and the loop takes a descriptor only once. */
static ncclResult_t obey(struct kl_bootstrap *b, const struct kl_cancel *stop)
{
    if (!stop) return ncclSuccess;
    do b->outer.fd = fcntl(stop->fd, F_DUPFD_CLOEXEC, 0);
    while (b->outer.fd < 0 && kl_fd_limit_make_room(errno));
    if (b->outer.fd < 0) return KL_FAIL_ERRNO("cannot duplicate an event descriptor");
    return kl_loop_add(b->loop, b->outer.fd, EPOLLIN, on_outer_stop, b, &b->outer_source);
}

static uint32_t scope_of(const struct kl_address_record *record)
{
    for (int i = 0; i < record->naddresses; i++)
        if (kl_address_is_link_local(&record->address[i])) return record->address[i].v6.sin6_scope_id;
    return 0;
}

static ncclResult_t describe_me(struct kl_bootstrap *b, const struct kl_id *id)
{
    struct kl_address_record *me = &b->address_records[b->rank];
    const union kl_address *near = id->kind == KL_ID_RANK0_OPENS ? &id->address[0] : NULL;
    struct kl_bootstrap_params params;
    char host[KL_HOSTNAME];

    kl_param_load(&kl_bootstrap_param_set, &params);
    b->retry = (struct kl_retry){.count = (int)params.retries, .sleep_ms = (int)params.retry_sleep_ms};
    kl_hostinfo_name(host);
    snprintf(me->host, sizeof me->host, "%.*s", KL_HOST_TEXT - 1, host);
    me->rank = b->rank;
    me->pid = (uint64_t)getpid();
    KL_TRY(kl_hostinfo_netns_hash(&b->place));
    KL_TRY(kl_id_listen_addresses(&params, near, me->address, &me->naddresses));
    b->scope = scope_of(me);
    return ncclSuccess;
}

ncclResult_t kl_join_listen(struct kl_bootstrap *b)
{
    struct kl_address_record *record = &b->address_records[b->rank];
    const struct kl_hello me = {.version = KL_PROTOCOL,
                                .type = KL_CONNECTION_PEER,
                                .side = KL_HOST,
                                .from = (uint32_t)b->rank,
                                .name = b->name};
    return kl_acceptor_create(b->loop, record->address, &record->naddresses, &me, kl_peer_connect_on_call, b,
                              &b->acceptor);
}

/* Only joining waits on sockets; afterwards it would cost one descriptor per rank. */
static void end_stop(struct kl_bootstrap *b)
{
    pthread_mutex_lock(&b->lock);
    kl_cancel_fini(&b->stop);
    pthread_mutex_unlock(&b->lock);
}

static bool was_aborted(struct kl_bootstrap *b)
{
    pthread_mutex_lock(&b->lock);
    bool aborted = b->aborted;
    pthread_mutex_unlock(&b->lock);
    return aborted;
}

ncclResult_t kl_bootstrap_join(const struct kl_bootstrap_config *config, struct kl_bootstrap **out)
{
    struct kl_bootstrap *b = NULL;
    struct kl_root *root = NULL;
    struct kl_id id;
    bool announced;
    ncclResult_t rc;

    KL_TRY(check_config(config, &id));
    KL_TRY_OR(rc, out, kl_join_begin(config, &b));
    KL_TRY_OR(rc, out, kl_cancel_init(&b->stop));
    if (config->on_life) config->on_life(config->ctx, b);
    KL_TRY_OR(rc, out, obey(b, config->stop));
    KL_TRY_OR(rc, out, describe_me(b, &id));
    b->name = kl_id_name(&id);
    KL_TRY_OR(rc, out, kl_join_listen(b)); /* the root tells the address to other ranks */
    KL_TRY_OR(rc, out, kl_rendezvous_open(b, &id, &root));
    KL_TRY_OR(rc, out, kl_rendezvous_meet(b, &id));
    KL_TRY_OR(rc, out, join_partners(b));
    end_stop(b);
    KL_INFO(KL_BOOTSTRAP, "rank %d of %d has joined", b->rank, b->nranks);

    *out = b;
    b = NULL;
out:
    announced = b && b->announced;
    if (rc && !root && !announced) kl_root_decline(&id, config->rank);
    if (rc) kl_root_give_up(root, announced, kl_deadline_in_ms(b && !was_aborted(b) ? TELL_MS : 0));
    kl_root_stop(root);
    kl_key_wipe(&id.secret);
    if (b && config->on_life) config->on_life(config->ctx, NULL);
    kl_bootstrap_leave(b);
    return rc;
}

static void leave_links(struct kl_bootstrap *b)
{
    for (int rank = 0; rank < b->nranks; rank++) {
        struct kl_contact *peer = kl_contact_find(b, rank);
        if (peer) kl_link_stop(peer);
    }
    for (int rank = 0; rank < b->nranks; rank++) {
        struct kl_contact *peer = kl_contact_find(b, rank);
        if (peer) kl_link_fini(peer);
    }
}

void kl_bootstrap_leave(struct kl_bootstrap *b)
{
    if (!b) return;
    if (kl_state_inherited(b)) return;
    kl_source_remove(b->outer_source);
    kl_peer_connect_finish(b, kl_deadline_in_ms(TELL_MS));
    if (b->loop) kl_peer_connect_cancel_all(b);
    kl_acceptor_close(b->acceptor);
    kl_status_query_stop(b);
    kl_source_remove(b->vigil);
    leave_links(b);
    kl_source_remove(b->clock);
    kl_status_query_free(b);
    kl_loop_unref(b->loop);
    kl_process_table_leave(b);
    kl_state_free(b);
}
