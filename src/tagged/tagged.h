/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tagged.h - messages with tags between two ranks, outside of the order of operations.
 *
 * A receive takes the first message that fits its source and its tag; messages of one sender that both fit are taken in
 * the order in which they were sent. Each rank has a queue of receives and one of messages that no receive has taken.
 * Small data travel with the message and wait in the receiver's memory; larger data stay with the sender until they are
 * taken: then the receiver reads them from the sender's memory where the kernel lets it, else asks for pieces.
 *
 * The event loop moves everything, so a request proceeds while the program computes, or waits in a collective operation.
 * Between ranks of a host packets go through common memory (near.c), and a thread that waits for a request moves them.
 *
 * Errors:  a request ends with the failure of its communicator, when its peer has left, or when its message is too long.
 * Threads: any, except for create and free.
 */
#ifndef KL_TAGGED_TAGGED_H
#define KL_TAGGED_TAGGED_H

#include "base/error.h"
#include "device/host/wait.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KL_TAGGED_ANY = -1 };               /* source, tag */
enum { KL_TAGGED_EAGER_BYTES = 16 << 10 }; /* the most that travel with the message */

struct kl_tagged;

struct kl_tagged_config {
    int rank, nranks;
    uint16_t number; /* in the lowest bits of each request's id */
    bool reads;      /* this process may read others' memory, and be read */

    /**
     * As kl_bootstrap_packet_send, kl_bootstrap_watch. post: ncclInProgress if the peer has left in good order. Called
     * with `tagged` locked.
     */
    ncclResult_t (*post)(void *ctx, int peer, const void *head, size_t head_bytes, const void *data, size_t bytes);
    ncclResult_t (*watch)(void *ctx, int peer);

    /** The communicator fails; kl_tagged_fail follows. Not locked, as the rest. */
    void (*fail)(void *ctx, int culprit, ncclResult_t code, const char *text);
    /** Its failure, whose sentence becomes the thread's. */
    ncclResult_t (*failure)(void *ctx);
    bool (*is_near)(void *ctx, int peer);   /* a rank of this machine; also locked, as the rest */
    bool (*shares)(void *ctx, int peer);    /* it and this rank may map each other's memory; NULL: none may */
    enum kl_wait_cores (*cores)(void *ctx); /* how a thread waits for ranks that share memory */
    void *ctx;
};

struct kl_tagged_status {
    int source, tag; /* of a receive: of its message; of a send: the destination */
    size_t bytes;
};

ncclResult_t kl_tagged_create(const struct kl_tagged_config *config, struct kl_tagged **tagged);

/** No call is inside, and the bootstrap was left. NULL is fine. */
void kl_tagged_free(struct kl_tagged *tagged);

/** Valid arguments; the ids are not 0. `timeout_ns` without progress fail the communicator; 0: no limit. */
ncclResult_t kl_tagged_send(struct kl_tagged *tagged, const void *data, size_t bytes, int peer, int tag,
                            uint64_t timeout_ns, uint64_t *request);
ncclResult_t kl_tagged_receive(struct kl_tagged *tagged, void *data, size_t bytes, int peer, int tag,
                               uint64_t timeout_ns, uint64_t *request);

/** The first message that fits and was not taken. ncclInProgress: none. */
ncclResult_t kl_tagged_probe(struct kl_tagged *tagged, int peer, int tag, struct kl_tagged_status *status);

/** Wait for its end, or until the deadline: ncclInProgress. `function` is for texts. `status` may be NULL. */
ncclResult_t kl_tagged_wait(struct kl_tagged *tagged, uint64_t request, uint64_t deadline, const char *function,
                            struct kl_tagged_status *status);

/** Withdraw a receive that no message has reached; it is forgotten. Any other that is not over: ncclInProgress. */
ncclResult_t kl_tagged_cancel(struct kl_tagged *tagged, uint64_t request, const char *function);

/** Forget a request that is over: else ncclInvalidUsage. */
ncclResult_t kl_tagged_forget(struct kl_tagged *tagged, uint64_t request, const char *function);

/* ---- the communicator's ---- */

/** Called by the event loop, as on_packet and on_left of the bootstrap. From an untrusted peer. */
void kl_tagged_on_packet(struct kl_tagged *tagged, int from, const void *data, size_t bytes);
void kl_tagged_on_left(struct kl_tagged *tagged, int peer);

/** The communicator has failed, or ends: requests end but for a copy that is under way; packets are ignored. */
void kl_tagged_fail(struct kl_tagged *tagged);

#endif
