/* SPDX-License-Identifier: Apache-2.0 */
/**
 * exchange.h - all messages of a launch together: none of them waits for another one, but for those before it on the same
 * connector.
 *
 * A small one that need not wait is done when it is added. The others begin in the order of the rounds in which pairs meet (graph/p2p.h), so that
 * ranks that send to everybody do not all begin with the same one. Those that moved lately are looked at in every poll, the others in turn, a few at
 * a time: a poll costs the same with 10 messages and with 10,000.
 *
 *     active: [ hot: looked at each time | cold: a slice each time ]   done ones leave
 *
 * Threads: one at a time.
 */
#ifndef KL_COLL_EXCHANGE_H
#define KL_COLL_EXCHANGE_H

#include "channel/connections.h"
#include "coll/message.h"
#include "coll/task.h"
#include "coll/tell.h"
#include "graph/p2p.h"

/** A message of the launch. */
struct kl_parcel {
    int func, peer; /* KL_FUNC_SEND, KL_FUNC_RECV */
    struct kl_message message;
    struct kl_connector *connector;
    struct kl_parcel *next; /* on the same connector: waits until this one has ended */
    uint32_t round;         /* in which the pair meets */
    uint32_t stalls;        /* looks in a row at which it could not move */
    bool waits;             /* for an earlier one */
};

/** What there is for a peer, in one direction. */
struct kl_exchange_end {
    struct kl_connector *connector; /* NULL: it was not needed yet */
    struct kl_parcel *last;         /* message of the launch that is under way; NULL: none is */
};

struct kl_exchange {
    int rank, nranks;
    struct kl_connections *connections;
    uint32_t *send_round, *recv_round; /* by peer; NULL with one rank */
    struct kl_exchange_end *to, *from; /* by peer */
    struct kl_parcel *parcels, **active;
    size_t room;           /* for messages of a launch, */
    size_t added;          /* and how many there are */
    size_t n, hot;         /* active ones; of them, those at the beginning are hot */
    size_t hand;           /* where the next slice of cold ones begins */
    size_t unready;        /* of those active, whose connectors are on the way */
    size_t sends, largest; /* messages to other ranks, and the bytes of the largest of them */
    size_t received;       /* bytes, from other ranks */
    bool begun;
    struct kl_loans loans;
};

/** `rounds` holds nranks entries. `lending`: how others may read what is sent where it lies; `select`: see kl_loans. */
ncclResult_t kl_exchange_init(struct kl_exchange *x, int rank, int nranks, struct kl_connections *cs,
                              const struct kl_p2p_round *rounds, const struct kl_lending *lending,
                              struct kl_select *select);
void kl_exchange_fini(struct kl_exchange *x);

/** Make room for as many messages at once. Nothing is begun. */
ncclResult_t kl_exchange_reserve(struct kl_exchange *x, size_t messages);

/** Add a message of the launch, for which there is room, in the order of issue. Those of the rank with itself come in pairs. */
ncclResult_t kl_exchange_add(struct kl_exchange *x, const struct kl_task *task, size_t elem_bytes);

/** A message of a later launch, while this one is under way. False: not now. */
bool kl_exchange_send_ahead(struct kl_exchange *x, const struct kl_task *task, size_t elem_bytes);

/** All are added: go on until DONE. *rc is set on failure, with DONE. */
enum kl_progress kl_exchange_progress(struct kl_exchange *x, ncclResult_t *rc);

/** Forget what is under way. */
void kl_exchange_reset(struct kl_exchange *x);

/** For a thread that is about to sleep (device/host/idle.h): true if descriptors tell when a message may go on. */
bool kl_exchange_sleep_on(struct kl_exchange *x);

/** Say how far each message is. */
void kl_exchange_tell(const struct kl_exchange *x, const struct kl_teller *to);

/** A rank that is waited for; with `gone`, only one that has freed its communicator. -1: none. */
int kl_exchange_blocked_on(const struct kl_exchange *x, bool gone);

#endif
