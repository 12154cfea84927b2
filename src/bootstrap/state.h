/* SPDX-License-Identifier: Apache-2.0 */
/**
 * state.h - the state of a bootstrap, shared by the files of this folder. Each file below depends only on those above
 * it:
 *
 *      state.c          the lock, waiting, naming ranks
 *      inbox.c          received frames until they are taken
 *      link.c           connections to peers: frames in and out, on the event loop
 *      failure.c        the one failure of a bootstrap: decide, forward and report it
 *      liveness.c          detection of dead connections
 *      peer_connect.c          opening connections, and simultaneous calls in both directions
 *      status_query.c         status queries to all ranks
 *      timeout_diagnosis.c        diagnosis of timeouts
 *      exchange.c       send, recv, all-gather, barrier
 *      process_table.c  data shared by the ranks of one process
 *      post.c           non-blocking messages, and packets
 *      control_msg.c          control messages
 *      join.c           from an id to a bootstrap, and back
 *      multi_root.c           the same from several ids
 *      derive.c         a bootstrap of some ranks of another one
 *
 * Threads: the caller's and the event loop's. Fields that both use are under `lock`; callbacks of the owner are called
 *          without it.
 */
#ifndef KL_BOOTSTRAP_STATE_H
#define KL_BOOTSTRAP_STATE_H

#include "base/atomic.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/outbox.h"
#include "bootstrap/record.h"
#include "event/loop.h"
#include "os/socket.h"

#include <pthread.h>

struct kl_dialer;
struct kl_acceptor;
struct kl_status_query;
struct kl_process_table;

enum kl_link_state {
    KL_LINK_NONE,
    KL_LINK_CALLING,   /* this rank is connecting */
    KL_LINK_EXPECTED,  /* the peer is connecting, and its call prevails */
    KL_LINK_UNREACHED, /* connecting failed; this fails the bootstrap, unless the peer calls before */
    KL_LINK_UP,
    KL_LINK_LEFT, /* the peer said goodbye */
    KL_LINK_LOST, /* the connection ended without a goodbye */
};

/** State of another rank; made when it is first needed. */
struct kl_contact {
    struct kl_bootstrap *bootstrap;
    int rank;

    /* used on the event loop: */
    uint64_t due_since; /* ns: since when an acknowledgement is overdue (liveness.h); 0: none is */
    struct kl_assembler assembler;
    bool ended; /* the connection has been read to its end */

    /* under the bootstrap's lock: */
    enum kl_link_state state;
    struct kl_dialer *caller; /* during a call */
    uint64_t call_deadline;   /* of the latest call */
    int fd;                   /* -1 before the first connection; open until kl_link_fini */
    struct kl_source *source;
    bool far;    /* on another host */
    bool paused; /* not read, because the inbox is full */
    bool polled; /* a poll has found nothing while it was paused: it is read even if the inbox is full */
    bool mute;   /* writing failed: no more is written */
    int broken;  /* errno of a failed write; 0: none, or the connection's end, which is about to be read */
    bool rests;  /* the kernel had no memory for a write: retried a little later */
    struct kl_outbox out;
    struct kl_frame *first_in, *last_in; /* the inbox */
    unsigned char *final_status;         /* KL_STATUS_BYTES; NULL: it has sent none */

    /* KL_ARRIVED_*; changed under lock, read without: a poll that finds 0 returns. */
    _Atomic uint32_t arrived;
};

/* Bits of `arrived`: reasons for a poll to take the lock; the lower bits count messages for kl_bootstrap_poll in the
 * inbox. */
#define KL_ARRIVED_ENDED  (1u << 31) /* no more will arrive */
#define KL_ARRIVED_PAUSED (1u << 30) /* not read, because the inbox is full */

struct kl_bootstrap {
    int rank, nranks;
    uint64_t timeout_ms;
    void (*on_failure)(void *ctx, int culprit, ncclResult_t code, const char *text);
    void (*on_control_msg)(void *ctx, struct kl_bootstrap *b, int from, const void *data, size_t bytes);
    void (*on_packet)(void *ctx, int from, const void *data, size_t bytes);
    void (*on_left)(void *ctx, int peer);
    void *ctx;
    struct kl_retry retry;
    struct kl_bootstrap *parent; /* of a bootstrap that is being derived, whose ranks' states it has; else NULL */
    const int32_t *member;       /* ranks in the parent, by rank here */
    bool early;                  /* without a rendezvous the other ranks may not have started when they are called */
    uint64_t place;              /* place whose Unix addresses can be reached */
    uint32_t scope;              /* interface of the own link-local address, if it listens on one */
    uint32_t name;               /* of the job, for callers */
    struct kl_key key;           /* of the connections between ranks */
    /* to the rendezvous, which tells it of failures, and sees its connection end; the joining thread's */
    bool announced;
    struct kl_address_record
        /* by rank; naddresses 0: not known yet. Under lock until all have joined; then owned by the process table */
        *address_records;
    struct kl_placement placement;
    int32_t leaders[KL_MAX_PARTNERS]; /* of a leader: the leaders of its process's partners (partners.h) */
    struct kl_process_table *table;   /* NULL until all have joined */
    uint32_t exchanges;               /* count of collective ones; tags their frames */

    /** A peer is lost, or sent a failure notice. On the event loop, without lock. */
    void (*on_bad_news)(struct kl_bootstrap *b, const struct kl_notice *why);

    /** A frame of a status query has come, or a goodbye. On the event loop, without lock. */
    void (*on_status_frame)(struct kl_contact *peer, const struct kl_frame *frame);

    struct kl_loop *loop;
    struct kl_acceptor *acceptor;
    struct kl_cancel stop;  /* raised by a failure or an abort: cancels socket waits while joining */
    struct kl_cancel outer; /* a duplicate of the owner's */
    struct kl_source *outer_source;
    struct kl_source *clock;     /* timer of the suspicion */
    struct kl_source *vigil;     /* timer for the detection of dead connections (liveness.h) */
    uint64_t looked;             /* ns: last check; used on the event loop, as the next field */
    uint64_t address_lost_since; /* ns: since when the host lacks the address; 0: it has it */

    _Atomic(struct kl_contact *) *contacts; /* by rank; made under lock, then constant */
    _Atomic bool over;                      /* failed or aborted; set under lock, read without */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* any field below, or a contact */
    /* under lock: */
    const char *phase;
    union kl_address near; /* this host's address on its connections */
    struct kl_status_query *query;
    unsigned char final_status[KL_STATUS_BYTES]; /* sent with the goodbye */
    bool has_last_words;
    size_t inbox_bytes;
    struct kl_bootstrap_traffic traffic;
    int npaused;
    void (*on_message)(void *ctx); /* may be NULL */
    void *on_message_ctx;
    int awaited;       /* the rank that a thread waits for; -1: none */
    int32_t waits_for; /* the rank that this one waits for in an exchange, for any reason; -1: none */
    bool aborted;
    bool failed;
    struct kl_notice failure;
    bool suspects;
    struct kl_notice suspicion; /* becomes the failure, if no other comes before */
};

/** Without connections, in phase "join". */
ncclResult_t kl_state_create(int rank, int nranks, struct kl_bootstrap **bootstrap);

/** After its last use; NULL is fine. */
void kl_state_free(struct kl_bootstrap *b);

/** Another rank's contact, or the own one; NULL while there is none. Any thread. */
static inline struct kl_contact *kl_contact_find(const struct kl_bootstrap *b, int rank)
{
    return kl_load_acquire(&b->contacts[rank]); /* pairs with kl_contact_make */
}

/** Make the contact if there is none. Under lock. */
ncclResult_t kl_contact_make(struct kl_bootstrap *b, int rank, struct kl_contact **contact);

#define KL_RANK_DESCRIPTION 128

/** "rank 3 (host h, pid 7)", or "rank 3" while no more is known. Under lock. Returns `text`. */
const char *kl_rank_describe(const struct kl_bootstrap *b, int rank, char text[KL_RANK_DESCRIPTION]);

/** Count an outgoing message of this size. Under lock. */
void kl_state_count_message(struct kl_bootstrap *b, size_t bytes);

/** Wait until something under lock changes; false when the deadline has passed. Under lock. */
bool kl_state_wait(struct kl_bootstrap *b, uint64_t deadline);

/** Record that this rank's exchange now waits for that one; -1: for none. Without lock. */
void kl_state_waits_for(struct kl_bootstrap *b, int peer);

/**
 * For a wait that is past its deadline: ncclRemoteError with `text`, which kl_timeout_diagnose logs if it finds nothing
 * better.
 */
ncclResult_t kl_state_late(const char *text);

/** If it has failed, or been aborted: the code, with its text adopted by this thread. Under lock. */
ncclResult_t kl_state_check(struct kl_bootstrap *b);

/** Is this a child of the process that joined? Then the bootstrap must not be used. */
bool kl_state_inherited(const struct kl_bootstrap *b);

/** ncclInvalidUsage if it is. */
ncclResult_t kl_state_check_owner(const struct kl_bootstrap *b);

/** Are the peer and the size valid for sending and receiving? */
ncclResult_t kl_state_check_message(const struct kl_bootstrap *b, int peer, size_t bytes);

#endif
