/* SPDX-License-Identifier: Apache-2.0 */
/**
 * net.h - a network: devices, and connections that carry messages one way between two ranks.
 *
 * The semantics are those of NCCL's net plugins (v10), so that one can be put behind this table. No call blocks: an
 * unfinished one returns ncclInProgress, and is repeated. In addition there are keys, deadlines, a descriptor to sleep
 * on, a way to end everything at the first error, and errors that name the lost peer and the cause.
 *
 *      receiver                                sender
 *        listen -> handle         --->           connect(handle)      again while ncclInProgress
 *        accept                   <--->                               again while ncclInProgress
 *        irecv, test                             isend, test
 *        close_recv, close_listen                close_send
 *
 * If the sender connected with `both_ways`, the connection may also be used in the other direction:
 *
 *        send_back                --->           recv_back            again while ncclInProgress
 *
 * Then each of the two connections is used and closed as any other, but an error of one is an error of both.
 *
 * Messages:  of one connection arrive in the order of isend. Each matches the first posted receive of its tag; a
 *            message without one waits, and those behind it. A receive may be larger than its message, test returns the
 *            size; a smaller one is ncclInvalidUsage at both ends. Messages of 0 bytes are allowed.
 * Buffers:   belong to the net from isend and irecv until test says done or fails, or until cancel or a close returns.
 * Errors:    a lost connection is ncclRemoteError, and names the peer, its address and the cause. A failed connection
 *            stays failed, with the same sentence, which is logged once; earlier finished requests are still reported
 *            as done.
 * Threads:   one at a time per listener and per connection (or pair of both ways); different ones at once.
 * Source:    the runtime specification, 5.2 and 9.4.
 */
#ifndef KL_NET_NET_H
#define KL_NET_NET_H

#include "base/param.h"
#include "bootstrap/keys.h"
#include "include/nccl.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    KL_NET_HANDLE = 128,  /* bytes */
    KL_NET_REQUESTS = 32, /* of a connection, posted and not yet reported done */
    KL_NET_MEMBERS = 8,   /* of a virtual device */
    KL_NET_RECVS = 8,     /* messages of one irecv, at most; properties have the limit of a net */
    /* connect and accept have timeouts to check: call them again after this time at the latest */
    KL_NET_AGAIN_MS = 20,
    KL_NET_GOODBYE_MS = 20, /* a sender that leaves waits so long for its last message, and its receiver for that */
};

/** Bits for memory that a net can send from and receive into; ncclNetPlugin's NCCL_PTR_*. */
enum kl_net_memory { KL_NET_HOST = 1, KL_NET_CUDA = 2, KL_NET_DMABUF = 4 };

struct kl_net_properties {
    const char *name;     /* valid for the life of the process */
    const char *pci_path; /* below /sys; NULL: a virtual device */
    uint64_t guid;        /* equal for the ports of one card */
    unsigned memory;      /* bits of enum kl_net_memory */
    bool flushes;         /* iflush makes data that came into memory of a GPU visible to it */
    bool force_flush;     /* and has to, also where the GPU needs none */
    int speed_mbps;
    int port;
    float latency_us;
    int max_comms;
    int max_recvs; /* messages of one irecv */
    size_t max_bytes;
    int nmembers; /* of a virtual device, which was merged of others; 0 for a physical one */
    int member[KL_NET_MEMBERS];
};

/** Bytes by which a sender reaches a listener: an address, not a secret. */
struct kl_net_handle {
    unsigned char bytes[KL_NET_HANDLE];
};

/** One end of a connection that is being made. */
struct kl_net_end {
    struct kl_key secret; /* of the communicator: required to connect, and the source of all other keys */
    int rank, peer;       /* not used by listen */
    uint32_t id; /* distinguishes the connections from one rank to the other; equal at both ends. Not used by listen */
    uint64_t deadline; /* base/clock.h; for connect and accept */
    bool both_ways;    /* for connect: it also receives messages from the peer over this connection (recv_back) */
};

/** The messages of one irecv. */
struct kl_net_recv {
    void *data;
    size_t bytes;
    int tag;
    void *mr;
};

struct kl_net {
    const char *name; /* NCCL_NET, and "via NET/<name>" in logs */

    /**
     * Find the devices; on success there is at least one, otherwise ncclSystemError. Any thread, any number of times.
     */
    ncclResult_t (*init)(void);
    int (*devices)(void);
    ncclResult_t (*properties)(int device, struct kl_net_properties *properties);

    /**
     * The virtual device of some physical ones, which is made at the first call, as the next one, and stays. NULL: the net has none.
     * ncclInvalidUsage: it does not merge these.
     */
    ncclResult_t (*merge)(const int *member, int n, int *device);

    /** Listen on a device. One listener serves any number of peers and connections. */
    ncclResult_t (*listen)(int device, const struct kl_net_end *me, struct kl_net_handle *handle, void **listener);

    /**
     * Connect to a listener. ncclInProgress: `*send`, NULL at the first call, is a connect request: call again with it and the
     * same arguments, or end it with close_send. A failure has ended it, and `*send` is NULL.
     */
    ncclResult_t (*connect)(int device, const struct kl_net_end *me, const struct kl_net_handle *handle, void **send);

    /**
     * Accept the connection of `me->peer` and `me->id`. ncclInProgress: not here yet. Others may be accepted before and
     * after.
     */
    ncclResult_t (*accept)(void *listener, const struct kl_net_end *me, void **recv);

    /**
     * Send to the sender of `recv`, over the same connection. `*send` NULL: it is one-way, so connect. As recv_back,
     * NULL in a net whose connections all are.
     */
    ncclResult_t (*send_back)(void *recv, const struct kl_net_end *me, void **send);

    /**
     * Has the receiver of `send` begun to send back with `me->id`? ncclInProgress: not yet, and it may connect instead.
     */
    ncclResult_t (*recv_back)(void *send, const struct kl_net_end *me, void **recv);

    /** Register memory with the device; `mr` is passed with every request that uses it. `memory`: KL_NET_HOST, KL_NET_CUDA. */
    ncclResult_t (*reg_mr)(void *connection, void *data, size_t bytes, enum kl_net_memory memory, void **mr);

    /**
     * The same for memory of a GPU, by the descriptor of its DMA-BUF, in which `data` is at `offset`. The descriptor stays
     * the caller's. NULL in a net without KL_NET_DMABUF.
     */
    ncclResult_t (*reg_mr_dmabuf)(void *connection, void *data, size_t bytes, uint64_t offset, int fd, void **mr);
    ncclResult_t (*dereg_mr)(void *connection, void *mr);

    /** Send; a small message may wait for test, or go with the next one. `*request` NULL: no room now, try again. */
    ncclResult_t (*isend)(void *send, const void *data, size_t bytes, int tag, void *mr, void **request);

    /** Receive `n` messages, of different tags, or matched in this order. */
    ncclResult_t (*irecv)(void *recv, int n, const struct kl_net_recv *recvs, void **request);

    /** Make received data visible to the GPU whose memory they are in. `*request` NULL: they already are. */
    ncclResult_t (*iflush)(void *recv, int n, const struct kl_net_recv *recvs, void **request);

    /**
     * Make progress on the connection, and test this request. *done: it has been freed, and `sizes`, unless NULL, has
     * the size of each message.
     */
    ncclResult_t (*test)(void *request, bool *done, size_t *sizes);

    /**
     * Before a sleep: `*fd` becomes readable (poll, epoll) when posted requests may progress. The order is: sleep_on,
     * test once more, sleep. Testing also detects hosts that vanished: sleep for a second at most. The descriptor
     * belongs to the connection or the listener; -1: this net has none, test again from time to time. For a listener -1
     * can also mean: test again at once, because a connection has arrived, perhaps while another was asked for.
     */
    ncclResult_t (*sleep_on)(void *connection, int *fd);
    ncclResult_t (*sleep_on_listener)(void *listener, int *fd);

    /**
     * End a connection because of an error elsewhere: the peer notices, requests fail, and buffers are no longer
     * accessed.
     */
    void (*cancel)(void *connection);

    /**
     * Before close_send: should a last message tell the receiver of the end? NULL: never, the end of a connection says it.
     * False: the receiver has left.
     */
    bool (*wants_goodbye)(void *send);

    /** Free; NULL is fine. Messages that were reported as sent still arrive. */
    void (*close_send)(void *send);
    void (*close_recv)(void *recv);
    void (*close_listen)(void *listener);
};

extern const struct kl_net kl_net_socket;
extern const struct kl_net kl_net_verbs; /* RDMA: InfiniBand and RoCE */

/** The plugin that this process uses, once kl_net_ref has found one. Its data are neither encrypted nor authenticated. */
extern struct kl_net kl_net_plugin;

/**
 * The net for a communicator, initialised: the first plugin of NCCL_NET_PLUGIN that can be used, else the first of Kolo's own (nets.c). `wanted`, unless
 * "", is the name that it must have, in upper or lower case. ncclInvalidUsage: there is none of this name. Give it back with
 * kl_net_unref; NULL is fine there. Any thread.
 */
ncclResult_t kl_net_ref(const char *wanted, const struct kl_net **net);
void kl_net_unref(const struct kl_net *net);

/** The library of the plugin in use, opened once more, and its name (255 bytes); NULL: there is none. It may have plugins of other kinds. */
void *kl_net_plugin_library(char *file);

extern const struct kl_param_set kl_net_param_set;
extern const struct kl_param_set kl_verbs_param_set;
extern const struct kl_param_set kl_net_plugin_param_set;

#endif
