/* SPDX-License-Identifier: Apache-2.0 */
/* Make a bootstrap of some ranks of another one. They already have each other's addresses and a secret, and the
 * process's sockets serve the child as well; its name and key are new, made from the parent's key and the salt. */
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/acceptor.h"
#include "bootstrap/failure.h"
#include "bootstrap/process_table.h"
#include "bootstrap/join.h"
#include "bootstrap/wire.h"

static uint32_t name_of(const struct kl_key *key)
{
    struct kl_key derived = kl_key_derive(key, "kolo name", NULL, 0);
    struct kl_reader r = kl_reader_on(derived.bytes, sizeof derived.bytes);

    return kl_get_u32(&r);
}

/* An address that was sent to others has no interface number; port 0 stands for the port at which the process
 * listens. */
static void ask_for_same(union kl_address *address, uint32_t scope)
{
    if (kl_address_is_link_local(address)) address->v6.sin6_scope_id = scope;
    kl_address_unbind(address);
}

/* Listen on the process's sockets, whose addresses the other members know. */
static ncclResult_t listen_again(struct kl_bootstrap *b)
{
    struct kl_address_record known = b->address_records[b->rank], *record = &b->address_records[b->rank];

    for (int i = 0; i < record->naddresses; i++) ask_for_same(&record->address[i], b->scope);
    KL_TRY(kl_join_listen(b));
    for (int i = 0; i < record->naddresses; i++)
        if (!kl_address_same_port(&record->address[i], &known.address[i]))
            return KL_FAIL(ncclInternalError, "rank %d listens elsewhere than its parent does", b->rank);
    kl_acceptor_open(b->acceptor, &b->key);
    return ncclSuccess;
}

ncclResult_t kl_join_known(struct kl_bootstrap *b)
{
    b->name = name_of(&b->key);
    b->early = true;
    KL_TRY(listen_again(b));
    KL_TRY(kl_bootstrap_barrier(b));
    /* or the other ranks of the process would wait for it */
    return kl_failure_report_result(b, b->rank, kl_process_table_share(b));
}

/* The parent's address records no longer change. */
static void take_over(struct kl_bootstrap *b, const struct kl_bootstrap *parent, const int32_t *member,
                      const struct kl_salt *salt)
{
    for (int rank = 0; rank < b->nranks; rank++) {
        b->address_records[rank] = parent->address_records[member[rank]];
        b->address_records[rank].rank = rank;
    }
    b->key = kl_key_derive(&parent->key, "kolo child", salt->bytes, sizeof salt->bytes);
    b->retry = parent->retry;
    b->scope = parent->scope;
    b->place = parent->place;
}

static ncclResult_t check(const struct kl_bootstrap_config *c, const struct kl_bootstrap *parent, const int32_t *member)
{
    KL_TRY(kl_state_check_owner(parent));
    if (c->nranks < 1 || c->nranks > parent->nranks || c->rank < 0 || c->rank >= c->nranks)
        return KL_FAIL(ncclInvalidArgument, "rank %d of %d, of a bootstrap of %d", c->rank, c->nranks, parent->nranks);
    for (int i = 0; i < c->nranks; i++)
        if (member[i] < 0 || member[i] >= parent->nranks)
            return KL_FAIL(ncclInvalidArgument, "no rank %d among %d", member[i], parent->nranks);
    return ncclSuccess;
}

ncclResult_t kl_bootstrap_derive(const struct kl_bootstrap_config *config, struct kl_bootstrap *parent,
                                 const int32_t *member, const struct kl_salt *salt, struct kl_bootstrap **out)
{
    struct kl_bootstrap *b = NULL;
    ncclResult_t rc;

    KL_TRY(check(config, parent, member));
    KL_TRY_OR(rc, out, kl_join_begin(config, &b));
    if (config->on_life) config->on_life(config->ctx, b);
    take_over(b, parent, member, salt);
    b->parent = parent;
    b->member = member;
    KL_TRY_OR(rc, out, kl_join_known(b));
    b->parent = NULL;
    b->member = NULL;
    KL_INFO(KL_BOOTSTRAP, "rank %d of %d has joined, formerly rank %d of %d", b->rank, b->nranks, member[b->rank],
            parent->nranks);
    *out = b;
    return ncclSuccess;
out:
    if (b && config->on_life) config->on_life(config->ctx, NULL);
    kl_bootstrap_leave(b);
    return rc;
}
