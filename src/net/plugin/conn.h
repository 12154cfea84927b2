/* SPDX-License-Identifier: Apache-2.0 */
/**
 * conn.h - one end of a connection over a net plugin, and its messages.
 *
 * Messages are posted to the plugin in the order of isend and irecv, as many as it takes; the others wait here. Each buffer is registered
 * for its message, unless the caller has registered it: memory may be unmapped, and mapped anew, between two messages.
 *
 * Beside the plugin's communicator there is a connection of the socket net, made first (join.h): it identifies the peer, and
 * ends with it. A plugin may not notice that its peer has died.
 *
 * Threads: one at a time.
 */
#ifndef KL_NET_PLUGIN_CONN_H
#define KL_NET_PLUGIN_CONN_H

#include "net/plugin/library.h"
#include "os/profiler.h"

struct kl_plugin_conn;

struct kl_plugin_request {
    struct kl_plugin_conn *conn;
    void *request; /* the plugin's; NULL: not posted yet */
    bool used;
    int n; /* 0: a flush, which has no sizes */
    struct kl_net_recv part[KL_NET_RECVS];
    unsigned registered;                   /* a bit per part: `mr` is of this request */
    const struct kl_profile_event *parent; /* of the plugin's events for it; NULL: none */
    int done;                              /* found when the connection failed: it is still reported so, */
    int came[KL_NET_RECVS];                /* with these sizes */
};

/** The connection of the socket net. Each end sends one message, and then waits for one that never comes. */
struct kl_plugin_control {
    void *send, *recv;
    void *watch; /* request of the message that never comes */
    char byte;
};

struct kl_plugin_conn {
    const struct kl_net_library *library;
    void *comm; /* the plugin's; NULL: not there yet, or given back */
    bool sends, cancelled;
    int device, rank, peer;
    struct kl_plugin_control control;
    struct kl_plugin_request request[KL_NET_REQUESTS];
    uint8_t
        waiting[KL_NET_REQUESTS]; /* requests to be posted, oldest first: [first, first + nwaiting) modulo the size */
    unsigned first, nwaiting;
    unsigned misses;  /* tests since the control connection was looked at */
    uint64_t lost_at; /* when it had ended; 0: it has not */
    struct {
        uint64_t at; /* when a call of the plugin failed whose reason the control connection may know; 0: none has */
        const char *call;
        ncclResult_t rc;
    } broken;
    ncclResult_t failed; /* with `text` */
    char text[KL_NET_PLUGIN_TEXT];
};

/** Fails the connection, unless it has failed; returns its failure, which becomes the thread's last error. */
ncclResult_t kl_plugin_conn_fail(struct kl_plugin_conn *c, const char *call, ncclResult_t rc);

ncclResult_t kl_plugin_conn_post(struct kl_plugin_conn *c, int n, const struct kl_net_recv *parts,
                                 struct kl_plugin_request **request);
/** Flush received parts, as iflush of struct kl_net. */
ncclResult_t kl_plugin_conn_flush(struct kl_plugin_conn *c, int n, const struct kl_net_recv *parts,
                                  struct kl_plugin_request **request);
ncclResult_t kl_plugin_conn_test(struct kl_plugin_request *r, bool *done, size_t *sizes);

/** The connection is sound, and the other end has not closed it. One system call. */
bool kl_plugin_conn_peer_is_there(struct kl_plugin_conn *c);

void kl_plugin_conn_cancel(struct kl_plugin_conn *c);

/** Frees it at any stage; NULL is fine. */
void kl_plugin_conn_free(struct kl_plugin_conn *c);

#endif
