/* SPDX-License-Identifier: Apache-2.0 */
/** state.h - shared by the files of this folder. Everything is under `lock`. */
#ifndef KL_TAGGED_STATE_H
#define KL_TAGGED_STATE_H

#include "base/atomic.h"
#include "device/host/wait.h"
#include "event/loop.h"
#include "os/cma.h"
#include "tagged/tagged.h"

#include <pthread.h>

struct kl_packet_fifo;
struct kl_shm_slab;
struct kl_tagged_near;

enum { KL_TAGGED_CREDIT = 1 << 20 };  /* bytes of a sender that wait in a receiver's memory; the rest stays with it */
enum { KL_TAGGED_REPAY = 256 << 10 }; /* bytes that are repaid at once */
enum { KL_TAGGED_MESSAGE_WEIGHT = 128 };    /* of a message without bytes */
enum { KL_TAGGED_PIECE_BYTES = 256 << 10 }; /* of data that are asked for */
enum { KL_TAGGED_PIECES = 4 };              /* asked for at a time */

enum kl_tagged_kind {
    KL_TAGGED_EAGER = 1,  /* a message with its data */
    KL_TAGGED_OFFER,      /* a message whose data can be had: struct kl_tagged_place follows */
    KL_TAGGED_ASK,        /* for `bytes` from `offset` on, of request `to` */
    KL_TAGGED_PIECE,      /* data for request `to` */
    KL_TAGGED_TAKEN,      /* request `to` is over: its data were taken, or are not wanted */
    KL_TAGGED_REPAID,     /* `bytes` of the sender's credit */
    KL_TAGGED_FIFO,       /* a fifo for packets to this rank: its place follows (near.c) */
    KL_TAGGED_FIFO_REPLY, /* `bytes` 1: it is mapped; 0: it cannot be */
    KL_TAGGED_CALL,       /* look at the fifo */
    KL_TAGGED_KINDS
};

/** The head of a packet. From an untrusted peer. */
struct kl_tagged_head {
    uint32_t kind;
    int32_t tag;
    uint64_t bytes, offset;
    uint64_t from, to; /* requests: the sender's, the receiver's */
};
_Static_assert(sizeof(struct kl_tagged_head) == 40, "wire format");

/** Where data are, for a receiver in the same machine. */
struct kl_tagged_place {
    struct kl_cma_process process;
    uint64_t at, readable;
};

/** A message that no receive has taken. */
struct kl_tagged_message {
    struct kl_tagged_message *next;
    int source, tag;
    size_t bytes;
    uint64_t offer; /* the sender's request; 0: the data are here */
    struct kl_tagged_place place;
    unsigned char data[];
};

struct kl_tagged_request {
    struct kl_tagged_request *next; /* of the queue, or of the unused ones */
    uint64_t id;                    /* 0: free */
    bool sends, over, queued;
    bool copies; /* a thread uses `data`, without the lock */
    int peer, tag;
    char *data;
    size_t room;
    uint64_t timeout_ns, since; /* since when it is without progress */
    ncclResult_t rc;            /* once it is over; with a text, or else of the communicator */
    char text[256];
    struct kl_tagged_status status;

    uint64_t offer;      /* a receive of pieces: the sender's request */
    size_t asked, moved; /* bytes */
};

struct kl_tagged_peer {
    size_t unpaid; /* bytes of small messages that this rank has sent and the other has not taken */
    size_t debt;   /* the other way: taken, and not repaid yet */
    bool left;
    struct kl_cma_cache seen;
    uint32_t sent, received;     /* packets over the bootstrap, but for calls */
    struct kl_tagged_near *near; /* NULL: no packet was sent, and no fifo offered */
};

/** A fifo that this rank reads. */
struct kl_tagged_incoming {
    int peer;
    struct kl_packet_fifo *fifo;
};

struct kl_tagged {
    struct kl_tagged_config config;
    uint64_t mark; /* for the kernel's copies (os/cma.h) */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a request is over */
    _Atomic uint32_t ends;  /* requests that are over, ever */
    bool failed;
    int nleft;
    struct kl_tagged_peer *peer;

    struct kl_tagged_request **request; /* by the number in the id */
    uint32_t nrequests, room;
    struct kl_tagged_request *spare;
    struct kl_tagged_request *first, *last;           /* receives, in the order of their calls */
    struct kl_tagged_message *first_here, *last_here; /* messages, in the order of their arrival */

    /* near.c */
    void (*handle)(struct kl_tagged *tagged, int from, const void *data, size_t bytes); /* kl_tagged_handle */
    struct kl_shm_slab *fifos;                                                          /* that this rank writes */
    struct kl_tagged_incoming *incoming;
    _Atomic uint32_t nincoming;
    int watchers, invites; /* threads that look at the fifos; fifos to be mapped */
    bool watches;          /* senders need not call */
    bool lingers, looked;  /* they need not yet, though no thread looks; one has, since the last tick */
    bool armed;            /* the timer */
    struct kl_loop *loop;
    struct kl_source *timer;

    ncclResult_t trouble; /* the communicator has to fail when the lock is released */
    int culprit;
    char trouble_text[KL_ERROR_TEXT];
};

/* ---- requests.c ---- */

void kl_tagged_lock(struct kl_tagged *tagged);
/** Release the lock, and report trouble. */
void kl_tagged_unlock(struct kl_tagged *tagged);
/** The thread's last sentence is trouble. */
void kl_tagged_trouble(struct kl_tagged *tagged, int culprit, ncclResult_t code);

ncclResult_t kl_tagged_new(struct kl_tagged *tagged, struct kl_tagged_request **request);
/** NULL: there is none. */
struct kl_tagged_request *kl_tagged_find(const struct kl_tagged *tagged, uint64_t id);
void kl_tagged_drop(struct kl_tagged *tagged, struct kl_tagged_request *r);
void kl_tagged_end(struct kl_tagged *tagged, struct kl_tagged_request *r, ncclResult_t rc);
void kl_tagged_end_with(struct kl_tagged *tagged, struct kl_tagged_request *r, ncclResult_t rc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/** It ends because the peer has left. */
void kl_tagged_has_left(struct kl_tagged *tagged, struct kl_tagged_request *r, int peer);

/* ---- queues.c ---- */

void kl_tagged_queue(struct kl_tagged *tagged, struct kl_tagged_request *receive);
void kl_tagged_unqueue(struct kl_tagged *tagged, struct kl_tagged_request *receive);
/** The first receive for such a message, taken from the queue; NULL: none. */
struct kl_tagged_request *kl_tagged_take_receive(struct kl_tagged *tagged, int source, int tag);

void kl_tagged_queue_message(struct kl_tagged *tagged, struct kl_tagged_message *message);
struct kl_tagged_message *kl_tagged_find_message(struct kl_tagged *tagged, int peer, int tag, bool take);

/* ---- incoming.c ---- */

/** A packet of that rank. */
void kl_tagged_handle(struct kl_tagged *tagged, int from, const void *data, size_t bytes);

/** The receive, which is in no queue, gets this message. The lock may be released meanwhile. */
void kl_tagged_deliver(struct kl_tagged *tagged, struct kl_tagged_request *r, const struct kl_tagged_message *message);
/** The same with the data of a small one. */
void kl_tagged_fill(struct kl_tagged *tagged, struct kl_tagged_request *r, int source, int tag, const void *data,
                    size_t bytes);

/* ---- near.c ---- */

/** Send a packet, through a fifo or over the bootstrap. As config.post. */
ncclResult_t kl_tagged_post(struct kl_tagged *tagged, int peer, const struct kl_tagged_head *head, const void *data,
                            size_t bytes);

/** Packets about fifos. False: invalid. */
bool kl_tagged_on_fifo(struct kl_tagged *tagged, int from, const void *data, size_t bytes);
bool kl_tagged_on_fifo_reply(struct kl_tagged *tagged, int from, bool mapped);
void kl_tagged_on_call(struct kl_tagged *tagged, int from);

/** Handle the packets of a rank's fifo which come before its next one over the bootstrap. True: there were any. */
bool kl_tagged_read_from(struct kl_tagged *tagged, int from);

/** Look once at all fifos. */
void kl_tagged_look(struct kl_tagged *tagged);

/** Look at them for a while, without the lock. False: not for this request, or it was long enough. */
bool kl_tagged_watch_for(struct kl_tagged *tagged, const struct kl_tagged_request *r, struct kl_poll_wait *wait);

/** From now on senders call, unless another thread looks. True: packets were handled meanwhile. */
bool kl_tagged_rest(struct kl_tagged *tagged);

void kl_tagged_near_free(struct kl_tagged *tagged);

#endif
