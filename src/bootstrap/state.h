/* SPDX-License-Identifier: Apache-2.0 */
/**
 * state.h - what a bootstrap is made of, for the files of this folder that share it.
 *
 *      link.c      connections to peers: frames in and out, on the event loop
 *      reach.c     opening them: who calls whom, and which of two calls that cross survives
 *      exchange.c  send, recv, all-gather, barrier
 *      failure.c   the one failure of a bootstrap: deciding, spreading and reporting it
 *      join.c      from an id to a bootstrap, and back
 *
 * Threads: the caller's (one at a time) and the event loop's. What both touch is under `lock`; callbacks of the owner
 *          are called without it.
 */
#ifndef KL_BOOTSTRAP_STATE_H
#define KL_BOOTSTRAP_STATE_H

#include "bootstrap/bootstrap.h"
#include "bootstrap/door.h"
#include "base/atomic.h"
#include "bootstrap/frame.h"
#include "bootstrap/record.h"
#include "os/stop.h"
#include "event/loop.h"

#include <pthread.h>

/** Bytes in the inbox beyond which connections are no longer read, but for the one that somebody waits for. */
#define KL_INBOX_BYTES (64u << 20)

enum kl_link_state {
    KL_LINK_NONE,
    KL_LINK_CALLING,  /* we are connecting */
    KL_LINK_EXPECTED, /* the peer is connecting, and that is the call that counts */
    KL_LINK_UP,
    KL_LINK_LEFT, /* the peer said goodbye */
    KL_LINK_LOST, /* the connection ended without */
};

struct kl_parcel; /* a frame on its way out */

/** Another rank, as seen from here. */
struct kl_contact {
    struct kl_bootstrap *bootstrap;
    int rank;

    /* the event loop's: */
    struct kl_assembler assembler;
    bool ended; /* the connection has been read to its end */

    /* under the bootstrap's lock: */
    struct kl_card card; /* naddresses 0: not known yet */
    enum kl_link_state state;
    struct kl_caller *caller; /* while we call: until its callback, or kl_reach_stop */
    int fd;                   /* -1 before the first connection; open until kl_link_fini */
    struct kl_source *source;
    bool paused;                            /* not read, because the inbox is full */
    bool mute;                              /* writing failed: the end of the connection is about to be read */
    struct kl_parcel *first_out, *last_out; /* unsent, in order */
    struct kl_message *first_in, *last_in;  /* the inbox */
    bool polled;                            /* somebody has looked for a message and found none while it was paused */

    /* KL_ARRIVED_*; changed under lock, read without: a poll that finds 0 is over. */
    _Atomic uint32_t arrived;
};

/* Bits of `arrived`: a reason to look closer, below them how many messages for kl_bootstrap_poll are in the inbox. */
#define KL_ARRIVED_ENDED  (1u << 31) /* nothing more will come */
#define KL_ARRIVED_PAUSED (1u << 30) /* not read, because the inbox is full */

struct kl_bootstrap {
    int rank, nranks;
    uint64_t timeout_ms;
    void (*on_failure)(void *ctx, int culprit, ncclResult_t code, const char *text);
    void *ctx;
    struct kl_retry retry;
    uint32_t scope;    /* of our link-local address, if we listen on one */
    struct kl_key key; /* of the connections between ranks */
    struct kl_card me;
    uint32_t exchanges; /* collective ones so far; tags their messages */

    struct kl_loop *loop;
    struct kl_door *door;
    struct kl_stop stop;  /* raised by a failure or an abort: ends what waits on sockets */
    struct kl_stop outer; /* a duplicate of the owner's */
    struct kl_source *outer_source;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* anything below, or a peer */
    /* under lock: */
    const char *phase;
    struct kl_contact *peers; /* by rank */
    size_t inbox_bytes;
    int npaused;
    int awaited; /* the peer somebody waits to hear from; -1 */
    bool aborted;
    bool failed;
    struct kl_notice failure;
    _Atomic bool over; /* failed or aborted; read without lock by polls */
};

#define KL_WHO_TEXT 128

/** "rank 3 (host h, pid 7)", or "rank 3" while no more is known. Under lock. Returns `text`. */
const char *kl_who(const struct kl_bootstrap *b, int rank, char text[KL_WHO_TEXT]);

/* ---- link.c; all under lock ---- */

/**
 * The connection `fd` to a peer is authenticated: it is the one from now on. Takes over `fd` in every case. A peer that comes
 * when we have failed is told so.
 */
ncclResult_t kl_link_begin(struct kl_contact *peer, int fd);

/**
 * Queue a frame, without waiting: `body` is copied. It goes out when the peer is UP, and is dropped when the connection ends;
 * that is noticed by its reader. Silent; only memory can be lacking.
 */
bool kl_link_post(struct kl_contact *peer, const struct kl_frame *frame, const void *body);

/** Send a frame and wait until the system has all of it. */
ncclResult_t kl_link_send(struct kl_contact *peer, const struct kl_frame *frame, const void *body, uint64_t deadline);

/** Read this peer again if the inbox was full; `kl_link_resume_all` when there is room. */
void kl_link_resume(struct kl_contact *peer);
void kl_link_resume_all(struct kl_bootstrap *b);

/** Put a message into a peer's inbox. */
void kl_inbox_put(struct kl_contact *peer, struct kl_message *message);

/** The oldest message of that type and tag, the caller's; NULL: none. */
struct kl_message *kl_inbox_take(struct kl_contact *peer, enum kl_frame_type type, uint32_t tag);

/** The error of sending to a peer that is no longer UP: our failure, or that it has left. */
ncclResult_t kl_link_ended(struct kl_contact *peer);

/** Leaving, first for all peers: no callback of this one runs any more. Without lock. */
void kl_link_stop(struct kl_contact *peer);

/** Leaving, then: say goodbye if it is UP, close and free. Without lock, for nobody else is left. */
void kl_link_fini(struct kl_contact *peer);

/* ---- reach.c ---- */

/** Begin to call a peer that we are not connected with, and know the address of. Under lock; waits for nothing. */
ncclResult_t kl_reach_begin(struct kl_contact *peer);

/** Make sure that the peer is UP. Under lock, released while it waits. */
ncclResult_t kl_reach(struct kl_contact *peer, uint64_t deadline);

/**
 * Before leaving: calls that have begun come to their end, so that who is called or was told to call us does not think that we
 * died, and what is queued goes out. Without lock.
 */
void kl_reach_finish(struct kl_bootstrap *b, uint64_t deadline);

/** Leaving: no call is in progress any more. On the event loop, without lock. */
void kl_reach_stop(struct kl_contact *peer);

/** The door's callback: a peer calls. */
void kl_reach_called(void *ctx, struct kl_guest *guest);

/* ---- exchange.c ---- */

/** May this process talk to that peer, in that many bytes? */
ncclResult_t kl_exchange_check(const struct kl_bootstrap *b, int peer, size_t bytes);

/** A failure that is not the caller's mistake nor an abort concerns everybody, who hear of it. Returns `rc`. Without lock. */
ncclResult_t kl_exchange_settle(struct kl_bootstrap *b, int peer, ncclResult_t rc);

/** A message to this rank itself. Under lock. */
ncclResult_t kl_inbox_put_own(struct kl_bootstrap *b, const struct kl_frame *frame, const void *data);

/** Copy out a message that should have `bytes`, and free it. Under lock. */
ncclResult_t kl_message_unpack(struct kl_contact *peer, struct kl_message *m, uint32_t bytes, void *data);

/** The error of waiting for a peer that has left. Under lock. */
ncclResult_t kl_inbox_ended(struct kl_contact *peer);

/** Wait until something under lock changes; false when the deadline has passed. Under lock. */
bool kl_bootstrap_wait(struct kl_bootstrap *b, uint64_t deadline);

/* ---- failure.c ---- */

/** Is this a child of the process that joined? Then nothing of the bootstrap may be touched. */
bool kl_bootstrap_inherited(const struct kl_bootstrap *b);

/** Has it failed, or been aborted? Then the code, with its text adopted by this thread. Under lock. */
ncclResult_t kl_bootstrap_check(struct kl_bootstrap *b);

/** Send the failure that has happened to a peer that is UP. Under lock. */
void kl_bootstrap_tell(struct kl_contact *peer);

/** Record the first failure, wake everybody, tell the other ranks; `tell_owner`: on_failure, too. Without lock. */
void kl_bootstrap_fail(struct kl_bootstrap *b, const struct kl_notice *why, bool tell_owner);

/** An exchange failed here with `rc`, waiting for `culprit`: everybody hears of it. Returns `rc`. Without lock. */
ncclResult_t kl_bootstrap_give_up(struct kl_bootstrap *b, int culprit, ncclResult_t rc);

#endif
