/* SPDX-License-Identifier: Apache-2.0 */
/**
 * exec.h - runs the operations of a communicator, one collective or one exchange of messages at a time.
 *
 * It owns the resources of running operations: edges of the algorithms (requested at first use of a channel), memory of
 * one op per channel, scratch. It knows neither streams nor launches: comm/ decides the order.
 *
 *     kl_exec_choose      the user's thread       choose algorithm, protocol, channels
 *     kl_exec_collective  the runner, repeatedly until DONE
 *       not connected:    ask for connectors -> connect them -> edges ready
 *       then:             start an op per channel -> progress each
 *
 * Threads: one runner at a time, passed on with acquire and release; kl_exec_choose and kl_exec_reserve are the user's.
 */
#ifndef KL_COLL_ENGINE_EXEC_H
#define KL_COLL_ENGINE_EXEC_H

#include "coll/engine/choose.h"
#include "coll/engine/exchange.h"
#include "coll/engine/printer.h"
#include "device/host/redop.h"

struct kl_exec;

struct kl_exec_config {
    int rank, nranks;
    const struct kl_connect *graph; /* pointers here outlive the exec */
    const struct kl_tuning *tuning;
    struct kl_tuner *tuner;                      /* NULL: none */
    const struct kl_collnet *collnet;            /* reduces between nodes; NULL: none */
    const struct kl_p2p_round *rounds;           /* nranks */
    const struct kl_redop (*redops)[ncclNumOps]; /* by type, by operation */
    struct kl_connections *connections;
    enum kl_peer_connect memory;  /* the ranks that can map the same memory */
    bool ordered;                 /* reductions have the bits of a loop over the ranks (ordered.h) */
    struct kl_zcopy_config zcopy; /* copies of buffers (peer_direct.h) and messages (zcopy_offer.h) without staging */
    struct kl_select_facts facts; /* for the selection of ways (select/select.h) */
    bool processes;               /* the ranks live in several processes */
    size_t chain_bytes; /* bytes of a chunk of rooted functions between processes, at most; 0: a slot's; the same on all
                      * ranks */
    struct kl_step_watch steps; /* called by the runner's thread */
    struct kl_profiling {
        const struct kl_profiler *profiler;                       /* NULL: none */
        void *(*event_of)(void *ctx, const struct kl_task *task); /* handle of the event of a task's call, or NULL */
        void *ctx;
    } profiling;
};

ncclResult_t kl_exec_create(const struct kl_exec_config *config, struct kl_exec **exec);
void kl_exec_free(struct kl_exec *exec);

/** Choose for a collective; rank 0 logs the choice (TUNING). Errors as kl_choose. */
ncclResult_t kl_exec_choose(struct kl_exec *exec, struct kl_task *task);

/** An operation was captured: from now on the selection does not change. The user's thread. */
void kl_exec_freeze(struct kl_exec *exec);

/** Limits of the collectives that are chosen from now on; NULL: none. They stay the caller's. */
void kl_exec_limit(struct kl_exec *exec, const struct kl_limits *limits);

/** Choose algorithms that GPUs can follow (kl_algorithm_has_rows), where the settings leave one. `ll128`: that protocol is
 * safe between the GPUs; else it is for functions for which NCCL_PROTO names it. */
void kl_exec_use_rows(struct kl_exec *exec, bool ll128);

/** Is an all-to-all of `count` elements for each rank one operation (KL_FUNC_ALL_TO_ALL)? Else it consists of
 * messages. */
bool kl_exec_is_all_to_all(const struct kl_exec *exec, size_t count, ncclDataType_t type);

/** Make room for a group of so many messages; nothing is running. */
ncclResult_t kl_exec_reserve(struct kl_exec *exec, size_t messages);

/**
 * Begin a collective while nothing is in progress, and poll it once; the next one is not known yet. STALLED: it cannot
 * run this way, and has not begun; MOVED: it has; either way it continues with kl_exec_collective. *rc is set on
 * failure, with DONE.
 */
enum kl_progress kl_exec_try_now(struct kl_exec *exec, const struct kl_task *task, ncclResult_t *rc);

/** The program's tag of the calls under way (struct kl_limits); 0: none. */
uint64_t kl_exec_tag(const struct kl_exec *exec);

/** NCCL's names of the algorithm and protocol that were chosen. Constant. */
const char *kl_exec_algo_name(const struct kl_task *task);
const char *kl_exec_proto_name(const struct kl_task *task);

/** Continue a collective; `more`: others of the same algorithm follow. *rc is set on failure, with DONE. */
enum kl_progress kl_exec_collective(struct kl_exec *exec, const struct kl_task *task, bool more, ncclResult_t *rc);

/** Progress messages: tasks [first, end) of a ring of mask + 1 tasks. The sends of tasks before `sent` were posted
 * before their turn. */
enum kl_progress kl_exec_messages(struct kl_exec *exec, const struct kl_task *ring, uint64_t mask, uint64_t first,
                                  uint64_t end, uint64_t sent, ncclResult_t *rc);

/**
 * While an operation is in progress: post, or send, this rank's data for the operation that comes `later` behind it, 1:
 * next. False: not now. A receive has no data to post.
 */
bool kl_exec_prepost(struct kl_exec *exec, const struct kl_task *task, unsigned later);

/** Connect every algorithm on every channel now, for NCCL_RUNTIME_CONNECT=0. Repeat until DONE. */
enum kl_progress kl_exec_connect_all(struct kl_exec *exec, ncclResult_t *rc);

/** Called by the runner: print the operation in progress, and the ranks that it waits for. */
void kl_exec_print(struct kl_exec *exec, const struct kl_printer *to);

/** Forget the operation in progress, after a failure. */
void kl_exec_reset(struct kl_exec *exec);

/** How the collective in progress, or the last one, is done (kl_select_way). By the runner. */
uint8_t kl_exec_way(const struct kl_exec *exec);

/** For a thread that is about to sleep (device/host/idle.h): true if descriptors become ready when the stalled
 * operation may go on. */
bool kl_exec_sleep_on(struct kl_exec *exec);

/** A rank that the operation waits for; with `gone`, only one that has freed its communicator. -1: none. */
int kl_exec_blocked_on(struct kl_exec *exec, bool gone);

#endif
