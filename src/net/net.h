/* SPDX-License-Identifier: Apache-2.0 */
/**
 * net.h - a network as Kolo uses it: devices, and connections that carry messages one way between two ranks.
 *
 * The semantics are those of NCCL's net plugins (v10), so that one can be put behind this table. Nothing blocks: what is not
 * finished is ncclInProgress, and is called again. Beyond a plugin's there are keys, deadlines, a descriptor to sleep on, a
 * way to end everything at the first error, and an error that says which peer was lost and why.
 *
 *      receiver                                sender
 *        listen -> handle         --->           connect(handle)      again while ncclInProgress
 *        accept                   <--->                               again while ncclInProgress
 *        irecv, test                             isend, test
 *        close_recv, close_listen                close_send
 *
 * The same two ranks may send the other way over what they have: where the sender connected with `both_ways`,
 *
 *        send_back                --->           recv_back            again while ncclInProgress
 *
 * Then each of the two connections is used and closed as any other, but an error of one is an error of both.
 *
 * Messages:  of one connection arrive in the order of isend. Each meets the first posted receive of its tag; one whose tag nobody
 *            has posted yet waits, and those behind it. A receive may be larger than its message, test says how large that
 *            was; a smaller one is ncclInvalidUsage at both ends. A message of 0 bytes is one.
 * Buffers:   belong to the net from isend and irecv until test says done or fails, or until cancel or a close returns.
 * Errors:    a lost connection is ncclRemoteError, and names the peer, its address and the cause. What fails once fails from
 *            then on, with the same sentence, which is logged once; requests that were finished before are still reported so.
 * Threads:   one at a time per listener and per connection, or two that go both ways; different ones at once.
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
    KL_NET_RECVS = 8,     /* messages of one irecv, at most; properties say how many a net takes */
    KL_NET_AGAIN_MS = 20, /* connect and accept have clocks to look at: call them again after so long at the latest */
};

enum kl_net_memory { /* bits of what a net can send from and receive into; ncclNetPlugin's NCCL_PTR_* */
                     KL_NET_HOST = 1,
                     KL_NET_CUDA = 2,
                     KL_NET_DMABUF = 4
};

struct kl_net_properties {
    const char *name;     /* stays valid */
    const char *pci_path; /* below /sys; NULL: a virtual device */
    uint64_t guid;        /* ports of one card have the same */
    unsigned memory;      /* bits of enum kl_net_memory */
    int speed_mbps;
    int port;
    float latency_us;
    int max_comms;
    int max_recvs; /* messages of one irecv */
    size_t max_bytes;
};

/** Bytes that tell a sender how to reach a listener: an address, no secret. */
struct kl_net_handle {
    unsigned char bytes[KL_NET_HANDLE];
};

/** One end of a connection that is being made. */
struct kl_net_end {
    struct kl_key secret; /* of the communicator: who has it may connect, and all other keys come from it */
    int rank, peer;       /* listen does not look at the peer */
    uint32_t id;          /* which of the connections from one to the other; both ends say the same. Nor at this */
    uint64_t deadline;    /* base/clock.h; for connect and accept */
    bool both_ways;       /* for connect: it takes back over the same connection what the peer sends (recv_back) */
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

    /** Look for devices; afterwards there is at least one, or ncclSystemError. Any thread, any number of times. */
    ncclResult_t (*init)(void);
    int (*devices)(void);
    ncclResult_t (*properties)(int device, struct kl_net_properties *properties);

    /** Listen on a device. One listener serves any number of peers and connections. */
    ncclResult_t (*listen)(int device, const struct kl_net_end *me, struct kl_net_handle *handle, void **listener);

    /**
     * Connect to a listener. ncclInProgress: `*send`, NULL at the first call, is an attempt: call again with it and the same
     * arguments, or end it with close_send. A failure has ended it, and `*send` is NULL.
     */
    ncclResult_t (*connect)(int device, const struct kl_net_end *me, const struct kl_net_handle *handle, void **send);

    /** Take the connection of `me->peer` and `me->id`. ncclInProgress: not here yet. Others may be accepted before and after. */
    ncclResult_t (*accept)(void *listener, const struct kl_net_end *me, void **recv);

    /**
     * Send to whom `recv` receives from, over the same connection. `*send` NULL: it goes one way only, so connect. Like recv_back
     * NULL in a net where all do.
     */
    ncclResult_t (*send_back)(void *recv, const struct kl_net_end *me, void **send);

    /** Has the receiver of `send` begun to send back what `me->id` says? ncclInProgress: not yet, and perhaps it connects instead. */
    ncclResult_t (*recv_back)(void *send, const struct kl_net_end *me, void **recv);

    /** Make memory known to the device; `mr` goes with every request that uses it. `memory`: one bit. */
    ncclResult_t (*reg_mr)(void *connection, void *data, size_t bytes, enum kl_net_memory memory, void **mr);
    ncclResult_t (*dereg_mr)(void *connection, void *mr);

    /** Send; a small message may wait for test, or go with the next one. `*request` NULL: there is no room now, ask again. */
    ncclResult_t (*isend)(void *send, const void *data, size_t bytes, int tag, void *mr, void **request);

    /** Receive `n` messages, of tags that differ or are met in this order. */
    ncclResult_t (*irecv)(void *recv, int n, const struct kl_net_recv *recvs, void **request);

    /** Make what was received visible to the device. `*request` NULL: it is. */
    ncclResult_t (*iflush)(void *recv, int n, const struct kl_net_recv *recvs, void **request);

    /** Work on the connection; is this request done? Then it is gone, and `sizes`, unless NULL, has the size of each message. */
    ncclResult_t (*test)(void *request, bool *done, size_t *sizes);

    /**
     * Before a sleep: `*fd` becomes readable (poll, epoll) when work on what is posted here may get further. The order is:
     * sleep_on, test once more, sleep. Work looks for hosts that vanished, too: sleep for a second at most. The descriptor is the
     * connection's or the listener's; -1: this net has none, look again from time to time. Or, of a listener, look again at once: somebody has come,
     * perhaps while another one was asked for.
     */
    ncclResult_t (*sleep_on)(void *connection, int *fd);
    ncclResult_t (*sleep_on_listener)(void *listener, int *fd);

    /** End a connection because of an error elsewhere: the peer notices, requests fail, and no buffer is touched any more. */
    void (*cancel)(void *connection);

    /** Free; NULL is fine. Messages that were reported as sent still arrive. */
    void (*close_send)(void *send);
    void (*close_recv)(void *recv);
    void (*close_listen)(void *listener);
};

extern const struct kl_net kl_net_socket;

/** The plugin that this process uses, once kl_net_hold has found one. Its data are neither encrypted nor authenticated. */
extern struct kl_net kl_net_plugin;

/**
 * The net for a communicator, initialised: the first plugin of NCCL_NET_PLUGIN that can be used, else Kolo's sockets. `wanted`, unless
 * "", is the name that it must have, whatever the case. ncclInvalidUsage: there is none of this name. Give it back with
 * kl_net_drop; NULL is fine there. Any thread.
 */
ncclResult_t kl_net_hold(const char *wanted, const struct kl_net **net);
void kl_net_drop(const struct kl_net *net);

/** The library of the plugin in use, opened once more, and its name (255 bytes); NULL: there is none. It may have plugins of other kinds. */
void *kl_net_plugin_library(char *file);

extern const struct kl_param_set kl_net_param_set;
extern const struct kl_param_set kl_net_plugin_param_set;

#endif
