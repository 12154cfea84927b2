/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bootstrap.h - ranks of a communicator find each other, exchange small records, and detect failed ranks.
 *
 * An id (ncclUniqueId) names a rendezvous: addresses and a secret. Each rank announces itself to the root behind the
 * id; then the root sends each rank the addresses of its partners at distances 1, 2, 4, ... and retires. Ranks talk
 * over one TCP connection per pair, opened when first needed, authenticated in both directions (handshake.h) and
 * encrypted (seal.h). The process's event loop (event/loop.h) reads all connections into an inbox, and reports lost
 * connections and failure notices to the owner at once, also while no call is in progress. Ranks forward a notice, so
 * that all get it.
 *
 * Sizes:    messages of 0 to 16 MiB; the receiver passes the exact size. An inbox holds 64 MiB; beyond that only a rank
 *           that is waited for is read, and senders wait.
 * Errors:   ncclRemoteError: a rank is missing, dead, silent past the deadline, has another secret, or its data was
 *           altered; the text names ranks, hosts and the phase. ncclInvalidUsage: ranks contradict each other.
 *           ncclSystemError: no interface, port taken. ncclInternalError: aborted. An exchange that fails for a reason
 *           outside of this rank fails the bootstrap: all ranks are told, and later exchanges return the same.
 * Threads:  one thread at a time makes exchanges; kl_bootstrap_post, _poll, _watch, _report and _abort may come from
 *           any, also meanwhile.
 * Fork:     a child does not inherit a bootstrap: its exchanges are ncclInvalidUsage, other calls have no effect.
 * Source:   the architecture page, 8; Bruck et al., Efficient algorithms for all-to-all communications (TPDS 1997).
 */
#ifndef KL_BOOTSTRAP_BOOTSTRAP_H
#define KL_BOOTSTRAP_BOOTSTRAP_H

#include "bootstrap/keys.h"
#include "include/nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kl_bootstrap;
struct kl_cancel; /* os/cancel.h */

struct kl_bootstrap_config {
    ncclUniqueId id;
    int rank, nranks;
    uint64_t timeout_ms; /* limit for joining, and for each exchange afterwards: KOLO_BOOTSTRAP_TIMEOUT */

    /** Raised, it works like kl_bootstrap_abort, also while joining. Outlives the bootstrap; NULL: none. */
    const struct kl_cancel *stop;

    /**
     * Called at most once, by the event loop thread, when a rank is lost or reports a failure: `culprit` is its rank,
     * `text` a whole sentence (rank, host, cause). Must not call back into the bootstrap, except _report.
     */
    void (*on_failure)(void *ctx, int culprit, ncclResult_t code, const char *text);

    /**
     * Called by the event loop thread for each control message, from the first moment of the bootstrap until it was
     * left. Must not block, and may answer with kl_bootstrap_control_send. NULL: messages are dropped.
     */
    void (*on_control_msg)(void *ctx, struct kl_bootstrap *bootstrap, int from, const void *data, size_t bytes);

    /**
     * Called by the event loop thread for each packet (kl_bootstrap_packet_send), in its sender's order, and when
     * a rank that this one was connected with has left in good order: no more comes from it. Must not wait for the
     * bootstrap, and may send packets. NULL: packets are dropped.
     */
    void (*on_packet)(void *ctx, int from, const void *data, size_t bytes);
    void (*on_left)(void *ctx, int peer);

    /**
     * Called by the joining thread when there is a bootstrap that can be aborted and reported to, and with NULL before
     * it is freed because joining failed. May be NULL.
     */
    void (*on_life)(void *ctx, struct kl_bootstrap *bootstrap);
    void *ctx;
};

/** Distinguishes the children of one bootstrap: equal on all members of a child. */
struct kl_salt {
    unsigned char bytes[KL_KEY_BYTES];
};

/* ---- ids ---- */

/** Make an id and start its root in this process, or, with NCCL_COMM_ID set, name that address (rank 0 opens it). */
ncclResult_t kl_bootstrap_id_create(ncclUniqueId *id);

/** An id from 256 hex digits, or from `host:port`, the address of a rendezvous that rank 0 opens (keyed by KOLO_SECRET). */
ncclResult_t kl_bootstrap_id_parse(const char *text, ncclUniqueId *id);

/** 256 hex digits and a zero. */
void kl_bootstrap_id_format(const ncclUniqueId *id, char text[2 * NCCL_UNIQUE_ID_BYTES + 1]);

/**
 * For ranks that are all on one host and know only the name of their job (os/job_name.h): publish an id that this
 * process has made, until all ranks have joined or one has failed. Waits until `deadline` (base/clock.h) for another
 * job of that name.
 */
ncclResult_t kl_bootstrap_id_publish(const ncclUniqueId *id, const char *job, uint64_t deadline);

/** This rank, which has published the id, does not join: remove it. */
void kl_bootstrap_id_withdraw(const ncclUniqueId *id);

/** Wait until `deadline` for the id that rank 0 publishes, of a live process that listens. */
ncclResult_t kl_bootstrap_id_find(const char *job, ncclUniqueId *id, uint64_t deadline);

/* ---- life ---- */

/**
 * Join: returns when every rank has joined. On failure all resources are freed; telling the other ranks may take a
 * second.
 */
ncclResult_t kl_bootstrap_join(const struct kl_bootstrap_config *config, struct kl_bootstrap **bootstrap);

/**
 * The same with several ids, in the same order on all ranks: each root introduces a share of the ranks. config->id is
 * not used. Ids whose address rank 0 opens name one rendezvous; then only the first one is used.
 */
ncclResult_t kl_bootstrap_join_many(const struct kl_bootstrap_config *config, const ncclUniqueId *ids, int nids,
                                    struct kl_bootstrap **bootstrap);

/**
 * This rank will not join, with these ids; the reason is the calling thread's last sentence. Ranks that wait at a
 * rendezvous of this process are told; those at one elsewhere wait until their deadline.
 */
void kl_bootstrap_decline(const ncclUniqueId *ids, int nids, int rank, int nranks);

/**
 * Make a bootstrap of some ranks of another one, without a rendezvous: they know each other's addresses, and share a
 * secret. `member` lists them by their new ranks; config->rank and nranks are the new ones, its id is not used. The
 * children of one parent have different salts. Works also when the parent has failed or was aborted: only the members
 * take part. Early members wait for the others, until the deadline.
 */
ncclResult_t kl_bootstrap_derive(const struct kl_bootstrap_config *config, struct kl_bootstrap *parent,
                                 const int32_t *member, const struct kl_salt *salt, struct kl_bootstrap **bootstrap);

/**
 * Say goodbye to the peers and free; no more callbacks afterwards. NULL is fine. Takes up to a second if connections
 * are being made, or messages are queued; otherwise does not wait.
 */
void kl_bootstrap_leave(struct kl_bootstrap *bootstrap);

/** A key for one purpose that all ranks of this bootstrap share, and no other process; `label` names the purpose. */
struct kl_key kl_bootstrap_key(const struct kl_bootstrap *bootstrap, const char *label);

/** Make every wait in progress, and all later ones, return ncclInternalError soon. Any thread. */
void kl_bootstrap_abort(struct kl_bootstrap *bootstrap);

/** Network traffic of this rank so far. */
struct kl_bootstrap_traffic {
    uint64_t messages, bytes; /* sent, to the root and to other ranks; without handshakes, bytes of bodies only */
    uint32_t connections;     /* made with other ranks, by either side */
};
struct kl_bootstrap_traffic kl_bootstrap_traffic(struct kl_bootstrap *bootstrap);

/* ---- exchanges: all ranks call the collective ones in the same order ---- */

/** Name the phase of the following exchanges, for error texts. `name` must outlive the bootstrap. */
void kl_bootstrap_phase(struct kl_bootstrap *bootstrap, const char *name);

/** Send: returns when the bytes are handed to the kernel. Messages with equal (sender, tag) arrive in order. */
ncclResult_t kl_bootstrap_send(struct kl_bootstrap *bootstrap, int peer, uint32_t tag, const void *data, size_t bytes);

/** Wait for a message of exactly `bytes` from `peer` with `tag`; another size is ncclInternalError. */
ncclResult_t kl_bootstrap_recv(struct kl_bootstrap *bootstrap, int peer, uint32_t tag, void *data, size_t bytes);

/** `all` holds nranks records of `bytes`; the own one is in place. O(log nranks) steps. */
ncclResult_t kl_bootstrap_allgather(struct kl_bootstrap *bootstrap, void *all, size_t bytes);

/** Records of all ranks, by rank. */
struct kl_records {
    const void *all;
};

/**
 * The same for large records, of which the ranks of a process share one table: one of them talks to the other
 * processes, in O(log nprocesses) steps. Each rank drops the table when it has read it, before it leaves.
 */
ncclResult_t kl_bootstrap_gather(struct kl_bootstrap *bootstrap, const void *record, size_t bytes,
                                 struct kl_records **records);
void kl_records_unref(struct kl_records *records);

/** Returns when every rank has called it. O(log nranks) steps. */
ncclResult_t kl_bootstrap_barrier(struct kl_bootstrap *bootstrap);

/* ---- non-blocking messages; any thread, also while another is inside an exchange ---- */

/**
 * Queue a copy of a message for `peer`; the event loop delivers it, and connects first if need be. It may wait in the
 * receiver's inbox for as long as the bootstrap lives. Order is kept for equal (sender, tag), also with
 * kl_bootstrap_send. A message that cannot be delivered fails the bootstrap, unless `peer` has left before: then the
 * caller decides. The queue is limited by memory only: post few messages.
 */
ncclResult_t kl_bootstrap_post(struct kl_bootstrap *bootstrap, int peer, uint32_t tag, const void *data, size_t bytes);

/**
 * Take a message of exactly `bytes` if it has arrived, and set `*here`; another size is ncclInternalError. Never
 * blocks. If no message has arrived from `peer`, it costs two loads. A failure of the bootstrap, or a peer that has
 * left and sent no message with this tag, is an error as in kl_bootstrap_recv; whether a departed peer is a failure,
 * the caller decides and reports.
 */
ncclResult_t kl_bootstrap_poll(struct kl_bootstrap *bootstrap, int peer, uint32_t tag, void *data, size_t bytes,
                               bool *here);

/** Has `peer`, which this rank was connected with, left in good order? Any thread. */
bool kl_bootstrap_has_left(struct kl_bootstrap *bootstrap, int peer);

/**
 * Make sure that polls notice when `peer` leaves or dies, also if no message has been posted to it: begins to connect
 * if there is no connection. Does not block.
 */
ncclResult_t kl_bootstrap_watch(struct kl_bootstrap *bootstrap, int peer);

/**
 * From now on call `fn` whenever a message has arrived for kl_bootstrap_poll. Called by the event loop, under a lock:
 * it must not call back. NULL: no more calls, and none is running.
 */
void kl_bootstrap_on_message(struct kl_bootstrap *bootstrap, void (*fn)(void *ctx), void *ctx);

/* ---- packets: for a protocol of the owner, beside exchanges ---- */

/**
 * Queue a copy of `head` and `data`, 16 MiB at most, as one packet for the on_packet of `peer`, another rank; connects
 * first if need be. Does not block. Any thread. Packets for a rank stay in order. Errors as kl_bootstrap_post; the queue
 * is limited by memory only.
 */
ncclResult_t kl_bootstrap_packet_send(struct kl_bootstrap *bootstrap, int peer, const void *head, size_t head_bytes,
                                      const void *data, size_t bytes);

/* ---- status queries: answered by the event loop, independently of a rank's own threads; any thread ---- */

enum { KL_STATUS_BYTES = 128 };

#define KL_STATUS_FINAL UINT64_MAX /* the query that a rank answers before it leaves */

/** State of a rank in a query. */
enum kl_reply_state {
    KL_REPLY_NONE, /* no answer yet: it is stopped, or cut off, or its answer is on the way */
    KL_REPLY_RECEIVED,
    KL_REPLY_LEFT /* it has left in good order; the answer is its final status */
};

/**
 * From now on answer queries of other ranks with `answer`, which fills in KL_STATUS_BYTES zeroed bytes. Called by any
 * thread, under a lock: it must not call back. NULL: no more calls, and none is running; it is called once more for the
 * final status, which other ranks keep after this rank has left.
 */
void kl_bootstrap_on_query(struct kl_bootstrap *bootstrap,
                           void (*answer)(void *ctx, uint64_t question, unsigned char *answer), void *ctx);

/**
 * Query all ranks. Does not block. If another rank has sent the same query, or one with a smaller number, in the last
 * `fresh_ms`, no query is sent: that rank reports the outcome (kl_bootstrap_report), if any. Answers can be lost when a
 * rank that relays them leaves or dies: query again if some are missing.
 */
ncclResult_t kl_bootstrap_query(struct kl_bootstrap *bootstrap, uint64_t question, uint64_t fresh_ms);

/**
 * How many ranks have answered so far, this one included; -1 if another rank's query is used. Fills in, unless NULL,
 * each rank's state (enum kl_reply_state), and its answer. In a child of fork: -1.
 */
int kl_bootstrap_query_replies(struct kl_bootstrap *bootstrap, unsigned char *state,
                               unsigned char (*answers)[KL_STATUS_BYTES]);

/* ---- control messages: independent of exchanges; none of them ever fails the bootstrap ---- */

/**
 * Send a message to the other end's on_control_msg, over the connection that exists at this moment; also after a failure.
 * False: there is none, or its queue is full. Never blocks. Any thread.
 */
bool kl_bootstrap_control_send(struct kl_bootstrap *bootstrap, int peer, const void *data, size_t bytes);

/** The same to all connected ranks, except `except` (-1: all). Returns the number of ranks. */
int kl_bootstrap_control_broadcast(struct kl_bootstrap *bootstrap, int except, const void *data, size_t bytes);

/* ---- failures ---- */

/**
 * Tell every rank that `culprit` failed with `code`; each gets it through on_failure. Returns without waiting. Any
 * thread, on_failure included. Only a bootstrap's first report counts.
 */
void kl_bootstrap_report(struct kl_bootstrap *bootstrap, int culprit, ncclResult_t code, const char *text);

/* A failed rank withdraws its offers to other ranks, which may notice that before the failure notice arrives: "no
 * longer offered", "connection refused". Such possible consequences of another failure are not reported at once, so
 * that all ranks report the first cause. */

/**
 * An interaction with another rank failed with code `rc` and the calling thread's last sentence. If that may be a
 * consequence (ncclRemoteError), waits up to a second for a failure notice. Returns the code of the bootstrap's failure
 * with its sentence, if there is one by then; otherwise `rc`, for the caller to report. Any thread but the event
 * loop's.
 */
ncclResult_t kl_bootstrap_await_cause(struct kl_bootstrap *bootstrap, ncclResult_t rc);

/**
 * The same without blocking: a report that is made in a second, unless a notice of another failure arrives before. The
 * owner gets either one through on_failure. Any thread. Ignored while another suspicion is pending.
 */
void kl_bootstrap_suspect(struct kl_bootstrap *bootstrap, int culprit, ncclResult_t code, const char *text);

#endif
