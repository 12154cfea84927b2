/* SPDX-License-Identifier: Apache-2.0 */
/**
 * link.h - an RDMA connection: queue pairs, rings, memory, its two directions, and its failure.
 *
 *      link.c       life and failure          send.c      messages out
 *      queue.c      queue pairs               receive.c   messages in
 *      progress.c   completions, sleep        establish.c  how it is made
 *
 * A direction is a connection of net.h: struct kl_verbs_end. A link has one, or one each way (both_ways).
 *
 * Threads:  one at a time per link.
 */
#ifndef KL_NET_VERBS_LINK_H
#define KL_NET_VERBS_LINK_H

#include "base/error.h"
#include "net/net.h"
#include "net/socket/watch.h"
#include "net/verbs/device.h"
#include "net/verbs/memory.h"
#include "net/verbs/record.h"
#include "net/verbs/ring.h"
#include "os/address.h"

enum { KL_VERBS_STAGES = 4, KL_VERBS_STAGE_BYTES = 128 << 10 };

struct kl_verbs_link;

/** One direction, as net.h sees it. */
struct kl_verbs_end {
    struct kl_verbs_link *link; /* NULL: still a connect request */
    struct kl_verbs_conn_request *conn_request;
    bool sends;
};

/** Both kinds of requests begin with this. */
struct kl_verbs_request {
    struct kl_verbs_end *end;
    struct kl_verbs_request *next;
    bool done;
};

struct kl_verbs_send {
    struct kl_verbs_request request;
    const unsigned char *data;
    size_t bytes, asked, written; /* of a large one: requested by the peer, and given to the device */
    uint32_t tag;
    const struct kl_verbs_memory *memory; /* NULL: not registered */
    int left;                             /* its writes that are not complete */
};

struct kl_verbs_message {
    unsigned char *data;
    size_t bytes; /* posted */
    uint32_t tag;
    const struct kl_verbs_memory *memory;
    bool met;
    size_t came, asked, arrived; /* its size; of it requested and written */
};

struct kl_verbs_recv {
    struct kl_verbs_request request;
    int n, unmet, left; /* messages; not matched yet; not complete */
    struct kl_verbs_message message[KL_NET_RECVS];
};

/** A list of requests, oldest first. */
struct kl_verbs_list {
    struct kl_verbs_request *first, *last;
};

/** Memory in pieces of KL_VERBS_STAGE_BYTES, for data that are not registered. */
struct kl_verbs_stage {
    unsigned char *data; /* NULL: not yet */
    struct kl_ibv_mr *mr;
    unsigned used; /* bits */
};

/** The message that a send request of a queue pair belongs to. */
struct kl_verbs_wr {
    struct kl_verbs_send *of; /* NULL: no request */
    int8_t stage;             /* -1: none */
};

struct kl_verbs_queue {
    struct kl_ibv_qp *qp;
    uint32_t inline_bytes;
    uint64_t posted, done; /* send requests */
    unsigned spent;        /* receive requests to post again */
    struct kl_verbs_wr wr[KL_VERBS_SQ];
};

/** A request for data of the peer that is being answered. */
struct kl_verbs_asked {
    struct kl_verbs_cts cts;
    struct kl_verbs_send *of;
    size_t from, written; /* place in the message */
};

/** A request for data of this end. */
struct kl_verbs_piece {
    uint64_t number;
    struct kl_verbs_recv *of; /* NULL: free */
    struct kl_verbs_message *message;
    size_t from, bytes;
    int8_t stage;
};

struct kl_verbs_link {
    struct kl_verbs_device *device;
    int rank, peer;
    uint32_t id;
    char where[KL_ADDRESS_TEXT]; /* the peer's address of the handshake */
    enum kl_side side;
    int fd; /* TCP */
    struct kl_key key;
    uint32_t records_out, records_in;
    size_t have; /* bytes of the record that arrives */
    unsigned char record[KL_VERBS_RECORD];
    bool both_ways;
    struct kl_verbs_end *out, *in; /* NULL: not there */
    struct kl_verbs_conn_params mine, theirs;
    struct kl_verbs_gid gid; /* at this end */

    struct kl_ibv_comp_channel *channel;
    struct kl_ibv_cq *cq;
    int nqueues;
    struct kl_verbs_queue queue[KL_VERBS_QPS_MAX];
    struct kl_verbs_rings *rings;
    struct kl_ibv_mr *mr;

    /* out: messages */
    struct kl_verbs_send send[KL_NET_REQUESTS];
    struct kl_verbs_request *free_sends;
    struct kl_verbs_list waiting, announced; /* not in a slot yet; large, not requested in full */
    uint64_t messages_out, peer_taken;       /* slots written, and of them free again */
    uint64_t slot_wr[KL_VERBS_SLOTS];
    uint64_t cts_seen, cts_done; /* requests of the peer: arrived, answered */
    struct kl_verbs_asked asked[KL_VERBS_REQUESTED];
    struct kl_verbs_stage stage_out;
    bool went_back;   /* this end has gone back over this link, once and for all */
    bool called_back; /* the peer goes back over this link */
    uint32_t back;    /* with this id */

    /* in: messages */
    struct kl_verbs_recv recv[KL_NET_REQUESTS];
    struct kl_verbs_request *free_recvs;
    struct kl_verbs_list posted;       /* not matched in full */
    uint64_t messages_in, taken, told; /* arrived, consumed, and the peer knows */
    uint64_t cts_out;                  /* requests for data */
    struct kl_verbs_piece piece[KL_VERBS_REQUESTED];
    struct {
        struct kl_verbs_recv *of;
        struct kl_verbs_message *message;
    } pull[KL_NET_REQUESTS * KL_NET_RECVS]; /* large messages that are not requested in full: a ring */
    uint64_t pulls, pulled;
    struct kl_verbs_stage stage_in;
    bool left_in; /* the peer sends no more */

    int epoll; /* for sleep_on; -1: not yet */
    struct kl_watched watched_fd, watched_channel;
    bool armed;
    unsigned events; /* of the channel, not acknowledged */
    uint64_t looked; /* when the peer was last looked for */
    uint64_t ended;  /* when its TCP connection was found closed; 0: it is open */

    ncclResult_t failed;
    char why[KL_ERROR_TEXT];
};

/** The identifier of a request of the device, and of its completion. */
enum kl_verbs_wr_kind { KL_VERBS_WR_SEND, KL_VERBS_WR_RECV };
struct kl_verbs_wr_id {
    enum kl_verbs_wr_kind kind;
    int queue;
    uint64_t number;
};
enum { KL_VERBS_QUEUE_SHIFT = 48, KL_VERBS_KIND_SHIFT = 56 };

static inline uint64_t kl_verbs_wr_id_encode(enum kl_verbs_wr_kind kind, int queue, uint64_t number)
{
    return (uint64_t)kind << KL_VERBS_KIND_SHIFT | (uint64_t)queue << KL_VERBS_QUEUE_SHIFT | number;
}

static inline struct kl_verbs_wr_id kl_verbs_wr_id(uint64_t id)
{
    return (struct kl_verbs_wr_id){.kind = (enum kl_verbs_wr_kind)(id >> KL_VERBS_KIND_SHIFT),
                                   .queue = (int)(id >> KL_VERBS_QUEUE_SHIFT & 0xff),
                                   .number = id & (((uint64_t)1 << KL_VERBS_QUEUE_SHIFT) - 1)};
}

/** One without queue pairs. */
ncclResult_t kl_verbs_link_create(struct kl_verbs_device *d, const struct kl_net_end *me, enum kl_side side,
                                  struct kl_verbs_link **link);

/** With its queue pairs. NULL is fine. */
void kl_verbs_link_free(struct kl_verbs_link *l);

/** A direction. ncclSystemError: no memory. */
ncclResult_t kl_verbs_end_create(struct kl_verbs_link *l, bool sends, struct kl_verbs_end **end);

/** Fail, unless it has: no data move afterwards, and the peer notices. Returns the recorded code. */
ncclResult_t kl_verbs_fail(struct kl_verbs_link *l, ncclResult_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

/** ncclSuccess, or the recorded failure, whose sentence becomes the thread's. */
ncclResult_t kl_verbs_report(const struct kl_verbs_link *l);

/** Send a record; one that does not fit is lost, as its connection is dead. */
void kl_verbs_link_tell(struct kl_verbs_link *l, const struct kl_verbs_record *record);

/** Read a record. False: it is not here in full. `*ended`: the TCP connection is closed, or its bytes are forged. */
bool kl_verbs_link_receive(struct kl_verbs_link *l, struct kl_verbs_record *record, bool *ended);

void kl_verbs_list_append(struct kl_verbs_list *list, struct kl_verbs_request *r);
void kl_verbs_list_remove(struct kl_verbs_list *list, const struct kl_verbs_request *r);

/** A free piece of the stage, registered at the first call, or -1: none is free, or the link has failed. */
int kl_verbs_stage_take(struct kl_verbs_link *l, struct kl_verbs_stage *stage);

#endif
