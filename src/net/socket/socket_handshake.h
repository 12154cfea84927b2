/* SPDX-License-Identifier: Apache-2.0 */
/**
 * socket_handshake.h - the handshake on a new socket: both ends prove themselves and exchange parameters, without blocking.
 *
 * It reads no byte beyond the handshake; later bytes are left to the owner of the socket.
 *
 * Threads:  one at a time.
 */
#ifndef KL_NET_SOCKET_SOCKET_HANDSHAKE_H
#define KL_NET_SOCKET_SOCKET_HANDSHAKE_H

#include "net/socket/session_params.h"

enum kl_socket_handshake_stage {
    KL_HANDSHAKE_CONNECTS,
    KL_HANDSHAKE_AWAITS_HELLO,
    KL_HANDSHAKE_AWAITS_PROOF,
    KL_HANDSHAKE_DONE
};

enum kl_socket_handshake_result {
    KL_HANDSHAKE_OK,
    KL_HANDSHAKE_PENDING,
    KL_HANDSHAKE_LOST,    /* errno says why; 0: the other side closed; EPROTO: another protocol */
    KL_HANDSHAKE_REFUSED, /* see `outcome` */
};

struct kl_socket_handshake {
    enum kl_side side;
    enum kl_socket_handshake_stage stage;
    int fd; /* -1: none */
    struct kl_hello me;
    struct kl_handshake handshake;         /* including the key */
    struct kl_session_params mine, theirs; /* the listener derives its own from the sender's */
    enum kl_handshake_outcome outcome;
    size_t have; /* bytes received of the current message */
    unsigned char in[KL_ANSWER_BYTES + KL_SESSION_PARAMS_BYTES];
};

/** Begin as the sender, on a socket whose connect has begun; or as the listener, on an accepted one. */
void kl_socket_handshake_call(struct kl_socket_handshake *o, int fd, const struct kl_hello *me,
                              const struct kl_key *key, const struct kl_session_params *params);
void kl_socket_handshake_host(struct kl_socket_handshake *o, int fd, const struct kl_hello *me,
                              const struct kl_key *key, bool crypt);

/** Make progress. The socket stays in `fd` in all cases. */
enum kl_socket_handshake_result kl_socket_handshake_progress(struct kl_socket_handshake *o);

/** Close the socket, unless it was taken (-1), and wipe the key. */
void kl_socket_handshake_close(struct kl_socket_handshake *o);

/** The events that epoll has to watch for it. */
uint32_t kl_socket_handshake_events(const struct kl_socket_handshake *o);

#endif
