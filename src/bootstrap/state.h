/* SPDX-License-Identifier: Apache-2.0 */
/**
 * state.h - what a bootstrap is made of, for the files of this folder that share it. Each file below knows those above it only:
 *
 *      state.c          the lock, waiting, naming ranks
 *      inbox.c          frames that wait for somebody to ask for them
 *      link.c           connections to peers: frames in and out, on the event loop
 *      failure.c        the one failure of a bootstrap: deciding, spreading and reporting it
 *      vigil.c          connections that have died without a word
 *      reach.c          opening connections: who calls whom, and which of two calls that cross survives
 *      census.c         where is everybody: questions to all, and answers
 *      silence.c        who is silent, when a wait has been too long
 *      exchange.c       send, recv, all-gather, barrier
 *      process_table.c  what the ranks of one process have together
 *      post.c           messages that nobody waits for
 *      aside.c          messages of those who look on
 *      join.c           from an id to a bootstrap, and back
 *      many.c           the same from several ids
 *      derive.c         from a bootstrap to another one, of some of its ranks
 *
 * Threads: the caller's and the event loop's. What both touch is under `lock`; callbacks of the owner are called without it.
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

struct kl_caller;
struct kl_acceptor;
struct kl_census;
struct kl_process_table;

enum kl_link_state {
    KL_LINK_NONE,
    KL_LINK_CALLING,  /* we are connecting */
    KL_LINK_EXPECTED, /* the peer is connecting, and that is the call that counts */
    KL_LINK_UNREACHED, /* there is no connection to be had; that will be a failure of all, unless the peer calls before */
    KL_LINK_UP,
    KL_LINK_LEFT, /* the peer said goodbye */
    KL_LINK_LOST, /* the connection ended without */
};

/** Another rank, as seen from here; made when it is first needed. */
struct kl_contact {
    struct kl_bootstrap *bootstrap;
    int rank;

    /* the event loop's: */
    uint64_t due_since; /* ns: since when an acknowledgement is missed (vigil.h); 0: none is */
    struct kl_assembler assembler;
    bool ended; /* the connection has been read to its end */

    /* under the bootstrap's lock: */
    enum kl_link_state state;
    struct kl_caller *caller; /* while we call */
    uint64_t call_deadline;   /* of the latest call */
    int fd;                   /* -1 before the first connection; open until kl_link_fini */
    struct kl_source *source;
    bool far;    /* on another host */
    bool paused; /* not read, because the inbox is full */
    bool polled; /* while it was, a poll has found nothing: it is read whatever the inbox holds */
    bool mute;   /* writing failed: nothing more is written */
    int broken;  /* with which errno; 0: it has not, or as the connection has ended, which is about to be read */
    bool rests;  /* the system had no memory for what is to be written: it is tried again a little later */
    struct kl_outbox out;
    struct kl_frame *first_in, *last_in; /* the inbox */
    unsigned char *last_words;           /* KL_STANDING_BYTES; NULL: it has said none */

    /* KL_ARRIVED_*; changed under lock, read without: a poll that finds 0 is over. */
    _Atomic uint32_t arrived;
};

/* Bits of `arrived`: reasons to look closer, below them how many messages for kl_bootstrap_poll are in the inbox. */
#define KL_ARRIVED_ENDED  (1u << 31) /* nothing more will come */
#define KL_ARRIVED_PAUSED (1u << 30) /* not read, because the inbox is full */

struct kl_bootstrap {
    int rank, nranks;
    uint64_t timeout_ms;
    void (*on_failure)(void *ctx, int culprit, ncclResult_t code, const char *text);
    void (*on_aside)(void *ctx, struct kl_bootstrap *b, int from, const void *data, size_t bytes);
    void *ctx;
    struct kl_retry retry;
    struct kl_bootstrap *parent; /* while it is derived from that one, which knows more about the ranks; else NULL */
    const int32_t *member;       /* the ranks there, by rank here */
    bool early;                  /* the others may not be there yet when we call them: there was no rendezvous */
    uint32_t scope;              /* of our link-local address, if we listen on one */
    uint32_t name;               /* of the job, for callers */
    struct kl_key key;           /* of the connections between ranks */
    bool announced; /* at the rendezvous, which tells it of failures, and sees it go; the joining thread's */
    struct kl_card
        *cards; /* by rank; naddresses 0: not known yet. Under lock until all have joined; then the table's */
    struct kl_placement placement;
    int32_t speakers[KL_MAX_PARTNERS]; /* of a speaker: the ranks that speak for its process's partners (partners.h) */
    struct kl_process_table *table;    /* NULL until all have joined */
    uint32_t exchanges;                /* collective ones so far; tags their frames */

    /** A peer is lost, or says that somebody failed. On the event loop, without lock. */
    void (*on_bad_news)(struct kl_bootstrap *b, const struct kl_notice *why);

    /** A frame of a census has come, or a goodbye. On the event loop, without lock. */
    void (*on_census)(struct kl_contact *peer, const struct kl_frame *frame);

    struct kl_loop *loop;
    struct kl_acceptor *acceptor;
    struct kl_stop stop;  /* raised by a failure or an abort: ends what waits on sockets while joining */
    struct kl_stop outer; /* a duplicate of the owner's */
    struct kl_source *outer_source;
    struct kl_source *clock; /* of the suspicion */
    struct kl_source *vigil; /* looks at connections that may be dead (vigil.h) */
    uint64_t looked;         /* ns: when it did so; the event loop's, as the next one */
    uint64_t homeless_since; /* ns: since when the host has not had the address; 0: it has */

    _Atomic(struct kl_contact *) *contacts; /* by rank; made under lock, then constant */
    _Atomic bool over;                      /* failed or aborted; set under lock, read without */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* anything below, or a contact */
    /* under lock: */
    const char *phase;
    union kl_address near; /* of this host, as its connections have it */
    struct kl_census *census;
    unsigned char last_words[KL_STANDING_BYTES]; /* said with the goodbye */
    bool has_last_words;
    size_t inbox_bytes;
    struct kl_bootstrap_traffic traffic;
    int npaused;
    void (*on_message)(void *ctx); /* NULL: nobody wants to know */
    void *on_message_ctx;
    int awaited;       /* the rank somebody waits to hear from; -1 */
    int32_t waits_for; /* the rank that this one waits for in an exchange, for whatever; -1 */
    bool aborted;
    bool failed;
    struct kl_notice failure;
    bool suspects;
    struct kl_notice suspicion; /* becomes the failure, if no other comes before */
};

/** Without connections, in phase "join". */
ncclResult_t kl_state_create(int rank, int nranks, struct kl_bootstrap **bootstrap);

/** When nobody uses it any more; NULL is fine. */
void kl_state_free(struct kl_bootstrap *b);

/** Another rank's contact, or our own, NULL while there is none. Any thread. */
static inline struct kl_contact *kl_contact_find(const struct kl_bootstrap *b, int rank)
{
    return kl_load_acquire(&b->contacts[rank]); /* pairs with kl_contact_make */
}

/** It is made if there is none. Under lock. */
ncclResult_t kl_contact_make(struct kl_bootstrap *b, int rank, struct kl_contact **contact);

#define KL_WHO_TEXT 128

/** "rank 3 (host h, pid 7)", or "rank 3" while no more is known. Under lock. Returns `text`. */
const char *kl_who(const struct kl_bootstrap *b, int rank, char text[KL_WHO_TEXT]);

/** A message of so many bytes goes out. Under lock. */
void kl_state_count_message(struct kl_bootstrap *b, size_t bytes);

/** Wait until something under lock changes; false when the deadline has passed. Under lock. */
bool kl_state_wait(struct kl_bootstrap *b, uint64_t deadline);

/** This rank's exchange waits for that one now, for a message or with one; -1: for nobody. Without lock. */
void kl_state_waits_for(struct kl_bootstrap *b, int peer);

/** Of a wait that is past its deadline: ncclRemoteError with `text`, which kl_silence_explain logs if nothing better is found. */
ncclResult_t kl_state_late(const char *text);

/** Has it failed, or been aborted? Then the code, with its text adopted by this thread. Under lock. */
ncclResult_t kl_state_check(struct kl_bootstrap *b);

/** Is this a child of the process that joined? Then nothing of the bootstrap may be touched. */
bool kl_state_inherited(const struct kl_bootstrap *b);

/** A failure if it is. */
ncclResult_t kl_state_check_owner(const struct kl_bootstrap *b);

/** May this process send to that peer, or hear from it, in that many bytes? */
ncclResult_t kl_state_check_message(const struct kl_bootstrap *b, int peer, size_t bytes);

#endif
