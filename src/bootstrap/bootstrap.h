/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bootstrap.h - how the ranks of a communicator find each other, exchange small records, and notice who is gone.
 *
 * An id (ncclUniqueId) names a rendezvous: one or more addresses and a secret. Each rank announces itself to the root
 * behind the id; when all have, the root tells each rank the addresses of its partners at distances 1, 2, 4, ... and
 * retires. From then on ranks talk directly, over one TCP connection per pair, opened when first needed. Every
 * connection is authenticated in both directions by a keyed challenge before a byte of it is interpreted, and all that goes
 * over it then is sealed (seal.h): what it says stays between the two, and cannot be altered unnoticed.
 *
 * One listening socket for each address of the process serves all of its bootstraps and ids (listener.h, acceptor.h). An
 * id that nobody uses costs some memory, and a bootstrap a descriptor for each peer that it has talked with: 2 log2 n.
 *
 * The process's event loop (event/loop.h) reads all connections: messages wait in an inbox until someone asks for
 * them; a connection that ends without a goodbye, or a failure notice from a peer, is reported to the owner at once,
 * also while no call is in progress. Each rank passes a notice on once, so that all ranks hear of it.
 *
 * Sizes:    messages of 0 to 16 MiB; the receiver states the exact size it expects.
 * Inbox:    64 MiB per bootstrap; beyond that, connections are read only for a rank that somebody waits for, and
 *           senders wait. A notice can be stuck behind such messages; it also comes by other ways.
 * Errors:   ncclRemoteError: a rank is missing, dead, silent past the deadline, has another secret, or what it said was
 *           altered on the way; the text names ranks, hosts and the phase. ncclInvalidUsage: ranks contradict each other
 *           (how many there are, who is who, which version). ncclSystemError: no interface, port taken. ncclInternalError: aborted.
 *           An exchange that fails for a reason outside of this rank is a failure of the bootstrap: the others hear of
 *           it, and all later exchanges return the same.
 * Threads:  one thread at a time makes exchanges; kl_bootstrap_post, kl_bootstrap_poll, kl_bootstrap_watch,
 *           kl_bootstrap_report and kl_bootstrap_abort may come from any, also meanwhile.
 * Fork:     a child does not inherit a bootstrap: its exchanges are ncclInvalidUsage, the rest does nothing.
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
struct kl_stop; /* os/stop.h */

struct kl_bootstrap_config {
    ncclUniqueId id;
    int rank, nranks;
    uint64_t timeout_ms; /* for joining, and for each exchange afterwards: KOLO_BOOTSTRAP_TIMEOUT */

    /** Raised, it works like kl_bootstrap_abort, also while joining. Outlives the bootstrap; NULL: none. */
    const struct kl_stop *stop;

    /**
     * Called at most once, by the event loop thread, when a rank is lost or reports a failure: `culprit` is its rank,
     * `text` a whole sentence (rank, host, cause). Must not call back into the bootstrap, except _report.
     */
    void (*on_failure)(void *ctx, int culprit, ncclResult_t code, const char *text);

    /**
     * Called by the event loop thread for each aside that comes, from the first moment of the bootstrap until it was left. Must
     * not wait, and may answer with kl_bootstrap_aside. NULL: nobody listens.
     */
    void (*on_aside)(void *ctx, struct kl_bootstrap *bootstrap, int from, const void *data, size_t bytes);

    /**
     * Called by the joining thread when there is a bootstrap that can be aborted and reported to, and with NULL before it is freed
     * because joining failed. NULL: nobody wants to know.
     */
    void (*on_life)(void *ctx, struct kl_bootstrap *bootstrap);
    void *ctx;
};

/** What tells children of one bootstrap apart: equal on all their members. */
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
 * For ranks that are all on one host and know no more than the name of their job (os/job_name.h): leave an id that this process has made
 * where they find it, until all have come or one has failed. Waits until `deadline` (base/clock.h) for another job of that name.
 */
ncclResult_t kl_bootstrap_id_leave(const ncclUniqueId *id, const char *job, uint64_t deadline);

/** This rank, which has left the id, does not join: nobody finds it any more. */
void kl_bootstrap_id_withdraw(const ncclUniqueId *id);

/** Wait until `deadline` for the id that rank 0 leaves: one whose process lives, and listens. */
ncclResult_t kl_bootstrap_id_find(const char *job, ncclUniqueId *id, uint64_t deadline);

/* ---- life ---- */

/** Join: returns when every rank has joined. On failure nothing is held; telling the others may take a second. */
ncclResult_t kl_bootstrap_join(const struct kl_bootstrap_config *config, struct kl_bootstrap **bootstrap);

/**
 * The same with several ids, in the same order on all ranks: each root meets a share of them. config->id is not used. Ids whose
 * address rank 0 opens name one rendezvous, and then the first one counts.
 */
ncclResult_t kl_bootstrap_join_many(const struct kl_bootstrap_config *config, const ncclUniqueId *ids, int nids,
                                    struct kl_bootstrap **bootstrap);

/**
 * This rank will not join, with these ids, for the reason that the calling thread's last sentence says. Ranks that wait
 * at a rendezvous of this process hear it; those at one elsewhere wait until their deadline.
 */
void kl_bootstrap_decline(const ncclUniqueId *ids, int nids, int rank, int nranks);

/**
 * Some ranks of a bootstrap make another one, without a rendezvous: they know each other's addresses, and have a secret. `member`
 * lists them by their new ranks; config->rank and nranks are the new ones, its id is not used. The children of one parent have
 * different salts. Works also when the parent has failed or was aborted: only the members take part. Those who come first wait for
 * the others, until the deadline.
 */
ncclResult_t kl_bootstrap_derive(const struct kl_bootstrap_config *config, struct kl_bootstrap *parent,
                                 const int32_t *member, const struct kl_salt *salt, struct kl_bootstrap **bootstrap);

/**
 * Say goodbye to the peers and free; no more callbacks afterwards. NULL is fine. Waits for nobody, but up to a second for
 * connections that are being made, and for what is queued.
 */
void kl_bootstrap_leave(struct kl_bootstrap *bootstrap);

/** A key for one purpose that all ranks of this bootstrap have, and nobody else; `label` says which. */
struct kl_key kl_bootstrap_key(const struct kl_bootstrap *bootstrap, const char *label);

/** Make every wait in progress, and all later ones, return ncclInternalError soon. Any thread. */
void kl_bootstrap_abort(struct kl_bootstrap *bootstrap);

/** What a rank has cost the network so far. */
struct kl_bootstrap_traffic {
    uint64_t messages, bytes; /* sent, to the root and to other ranks; without handshakes, bytes of bodies only */
    uint32_t connections;     /* made with other ranks, by whichever of the two */
};
struct kl_bootstrap_traffic kl_bootstrap_traffic(struct kl_bootstrap *bootstrap);

/* ---- exchanges: all ranks call the collective ones in the same order ---- */

/** What the following exchanges are for; appears in error texts. `name` must outlive the bootstrap. */
void kl_bootstrap_phase(struct kl_bootstrap *bootstrap, const char *name);

/** Send: returns when the bytes are handed to the system. Messages with equal (sender, tag) arrive in order. */
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
 * The same for large records, of which the ranks of a process get one table together: one of them talks to the other processes, in
 * O(log nprocesses) steps. Each drops the table when it has read it, before it leaves.
 */
ncclResult_t kl_bootstrap_gather(struct kl_bootstrap *bootstrap, const void *record, size_t bytes,
                                 struct kl_records **records);
void kl_records_drop(struct kl_records *records);

/** Returns when every rank has called it. O(log nranks) steps. */
ncclResult_t kl_bootstrap_barrier(struct kl_bootstrap *bootstrap);

/* ---- messages without waiting; any thread, also while another is inside an exchange ---- */

/**
 * Queue a message (a copy of it) for `peer`, which the event loop delivers, connecting first if need be. It may wait there in
 * the inbox for as long as the bootstrap lives. Order is kept for equal (sender, tag), also with kl_bootstrap_send.
 * What cannot be delivered is a failure of the bootstrap, unless `peer` has left before: then it is the caller's to tell.
 * Queued messages count for nothing but memory: post little.
 */
ncclResult_t kl_bootstrap_post(struct kl_bootstrap *bootstrap, int peer, uint32_t tag, const void *data, size_t bytes);

/**
 * Take a message of exactly `bytes` if it is here, and say so in `*here`; another size is ncclInternalError. Never waits.
 * While nothing has come from `peer`, it costs two loads. A failure of the bootstrap, or a peer that has left and sent
 * nothing more with this tag, is an error as in kl_bootstrap_recv; but what follows from who has left is the caller's to decide, and
 * to tell.
 */
ncclResult_t kl_bootstrap_poll(struct kl_bootstrap *bootstrap, int peer, uint32_t tag, void *data, size_t bytes,
                               bool *here);

/** Has `peer`, which this rank was connected with, left in good order? Any thread. */
bool kl_bootstrap_has_left(struct kl_bootstrap *bootstrap, int peer);

/**
 * See to it that polls notice when `peer` leaves or dies, also where nothing has been posted to it: begins to connect if
 * there is no connection. Waits for nothing.
 */
ncclResult_t kl_bootstrap_watch(struct kl_bootstrap *bootstrap, int peer);

/**
 * From now on call `fn` whenever a message has come: there may be something to poll for. By the event loop, under a lock: it must
 * not call back. NULL: no more calls, and none is running.
 */
void kl_bootstrap_on_message(struct kl_bootstrap *bootstrap, void (*fn)(void *ctx), void *ctx);

/* ---- where is everybody: answered by the event loop, whatever a rank's own threads do; any thread ---- */

enum { KL_STANDING_BYTES = 128 };

#define KL_LAST_WORDS UINT64_MAX /* the question that a rank answers before it leaves */

/** What is known of a rank. */
enum kl_answered {
    KL_ANSWER_NONE, /* it has not answered: it is stopped, or cut off, or its answer is on the way */
    KL_ANSWER_HERE,
    KL_ANSWER_LEFT /* it has left in good order; the answer is its last words */
};

/**
 * From now on answer questions of other ranks by `answer`, which fills in KL_STANDING_BYTES zeroed bytes. By any thread, under a
 * lock: it must not call back. NULL: no more calls, and none is running; it is asked for its last words, which others
 * know after this rank has left.
 */
void kl_bootstrap_on_question(struct kl_bootstrap *bootstrap,
                              void (*answer)(void *ctx, uint64_t question, unsigned char *answer), void *ctx);

/**
 * Ask all ranks. Waits for nothing. Where another rank has asked the same, or a smaller question, in the last `fresh_ms`,
 * nothing is asked: what comes of that is told by who asked (kl_bootstrap_report), or nothing does. Answers can be lost
 * where a rank on their way leaves or dies: who misses some asks again.
 */
ncclResult_t kl_bootstrap_ask(struct kl_bootstrap *bootstrap, uint64_t question, uint64_t fresh_ms);

/**
 * How many ranks are known so far, this one included; -1 if another rank's question counts. With it, where not NULL: what is known
 * of each rank (enum kl_answered), and its answer. In a child of fork: -1.
 */
int kl_bootstrap_answers(struct kl_bootstrap *bootstrap, unsigned char *state,
                         unsigned char (*answers)[KL_STANDING_BYTES]);

/* ---- asides: between those who look on. They disturb nobody: none of these is ever a failure of the bootstrap ---- */

/**
 * Say something to the other end's on_aside, over the connection that there is at this moment; also after a failure. False: there is
 * none, or it is clogged. Never waits. Any thread.
 */
bool kl_bootstrap_aside(struct kl_bootstrap *bootstrap, int peer, const void *data, size_t bytes);

/** The same to all that there are connections with, but `except` (-1: nobody). Returns to how many. */
int kl_bootstrap_aside_all(struct kl_bootstrap *bootstrap, int except, const void *data, size_t bytes);

/* ---- failures ---- */

/**
 * Tell every rank that `culprit` failed with `code`; they get it through on_failure. Returns without waiting. Any thread,
 * on_failure included. Later reports of this bootstrap are ignored: the first cause counts.
 */
void kl_bootstrap_report(struct kl_bootstrap *bootstrap, int culprit, ncclResult_t code, const char *text);

/*
 * A rank that fails takes back what it has offered to others, who stumble over that before they hear why: "no longer offered",
 * "connection refused". What may be such a wake of another failure is not reported at once, so that the first cause is what
 * everybody reports.
 */

/**
 * Something here did not go well with another rank, with code `rc` and the calling thread's last sentence. If it may be a
 * wake (ncclRemoteError), waits up to a second for word of a failure. Returns the code of the bootstrap's failure with its
 * sentence, if there is one by then; otherwise `rc`, which is the caller's to report. Any thread but the event loop's.
 */
ncclResult_t kl_bootstrap_cause(struct kl_bootstrap *bootstrap, ncclResult_t rc);

/**
 * The same for who must not wait: a report that is made in a second, unless there is word of another failure by then. The
 * owner hears of it, whichever it is, through on_failure. Any thread. A later suspicion is ignored while there is one.
 */
void kl_bootstrap_suspect(struct kl_bootstrap *bootstrap, int culprit, ncclResult_t code, const char *text);

#endif
