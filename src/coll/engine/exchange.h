/* SPDX-License-Identifier: Apache-2.0 */
/**
 * exchange.h - all messages of a launch together: each waits only for earlier ones on the same connector.
 *
 * A small one that need not wait is done when it is added. The others begin in the order of the rounds in which pairs
 * meet (graph/p2p.h), so that ranks that send to all others do not all begin with the same one. Messages that moved
 * recently are polled each time, the others in turn, a few at a time: a poll costs the same with 10 messages and with
 * 10,000.
 *
 *     active: [ hot: polled each time | cold: a slice each time ]   done ones leave
 *
 * Threads: one at a time.
 */
#ifndef KL_COLL_ENGINE_EXCHANGE_H
#define KL_COLL_ENGINE_EXCHANGE_H

#include "channel/connections.h"
#include "coll/engine/message.h"
#include "coll/engine/task.h"
#include "coll/engine/printer.h"
#include "graph/p2p.h"

/** A message of the launch. */
struct kl_exchange_entry {
    int func, peer; /* KL_FUNC_SEND, KL_FUNC_RECV */
    struct kl_message message;
    struct kl_connector *connector;
    struct kl_exchange_entry *next; /* on the same connector: waits until this one has ended */
    uint32_t round;                 /* in which the pair meets */
    uint32_t stalls;                /* polls in a row without progress */
    bool waits;                     /* for an earlier one */
    bool profiled;                  /* its events have begun */
    void *event;                    /* of a profiler, for the call; NULL: none */
};

/** The queue for a peer, in one direction. */
struct kl_exchange_end {
    struct kl_connector *connector; /* NULL: not needed yet */
    struct kl_exchange_entry *last; /* last message of the launch in progress; NULL: none */
};

struct kl_exchange {
    int rank, nranks;
    struct kl_connections *connections;
    uint32_t *send_round, *recv_round; /* by peer; NULL with one rank */
    struct kl_exchange_end *to, *from; /* by peer */
    struct kl_exchange_entry *parcels, **active;
    size_t room;           /* capacity for messages of a launch */
    size_t added;          /* messages added */
    size_t n, hot;         /* active messages; the first `hot` of them are polled each time */
    size_t hand;           /* start of the next slice of cold ones */
    size_t unready;        /* active ones whose connectors are not ready yet */
    size_t sends, largest; /* messages to other ranks, and the bytes of the largest of them */
    size_t received;       /* bytes, from other ranks */
    bool begun;
    struct kl_zcopy_offers offers;
    const struct kl_profiler *profiler; /* NULL: none; and the event of the message that is added next */
    void *event;
};

/** `rounds` holds nranks entries. `zcopy`: how others may read send buffers in place. `select`: see
 * kl_zcopy_offers. */
ncclResult_t kl_exchange_init(struct kl_exchange *x, int rank, int nranks, struct kl_connections *cs,
                              const struct kl_p2p_round *rounds, const struct kl_zcopy_config *zcopy,
                              struct kl_select *select);
void kl_exchange_fini(struct kl_exchange *x);

/** Make room for so many messages at once. None begins. */
ncclResult_t kl_exchange_reserve(struct kl_exchange *x, size_t messages);

/** Add a message of the launch, for which there is room, in the order of issue. A rank's messages to itself come in
 * pairs. */
ncclResult_t kl_exchange_add(struct kl_exchange *x, const struct kl_task *task, size_t elem_bytes);

/** A message of a later launch, while this one is in progress. False: not now. */
bool kl_exchange_presend(struct kl_exchange *x, const struct kl_task *task, size_t elem_bytes);

/** All are added: continue until DONE. *rc is set on failure, with DONE. */
enum kl_progress kl_exchange_progress(struct kl_exchange *x, ncclResult_t *rc);

/** Forget the messages in progress. */
void kl_exchange_reset(struct kl_exchange *x);

/** For a thread that is about to sleep (device/host/idle.h): true if descriptors become ready when a message may go
 * on. */
bool kl_exchange_sleep_on(struct kl_exchange *x);

/** Print the progress of each message. */
void kl_exchange_print(const struct kl_exchange *x, const struct kl_printer *to);

/** A rank that a message waits for; with `gone`, only one that has freed its communicator. -1: none. */
int kl_exchange_blocked_on(const struct kl_exchange *x, bool gone);

#endif
