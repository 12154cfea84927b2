/* SPDX-License-Identifier: Apache-2.0 */
/**
 * opening.h - the handshake on a new socket: both ends prove themselves and exchange terms, without blocking.
 *
 * It reads no byte beyond the handshake; later bytes are left to the owner of the socket.
 *
 * Threads:  one at a time.
 */
#ifndef KL_NET_SOCKET_OPENING_H
#define KL_NET_SOCKET_OPENING_H

#include "net/socket/terms.h"

enum kl_opening_stage { KL_OPENING_CONNECTS, KL_OPENING_AWAITS_HELLO, KL_OPENING_AWAITS_PROOF, KL_OPENING_DONE };

enum kl_opened {
    KL_OPENED,
    KL_OPENED_NOT_YET,
    KL_OPENED_LOST,    /* errno says why; 0: the other side closed; EPROTO: another protocol */
    KL_OPENED_REFUSED, /* see `outcome` */
};

struct kl_opening {
    enum kl_side side;
    enum kl_opening_stage stage;
    int fd; /* -1: none */
    struct kl_hello me;
    struct kl_handshake handshake; /* including the key */
    struct kl_terms mine, theirs;  /* the listener derives its own from the sender's */
    enum kl_handshake_outcome outcome;
    size_t have; /* bytes received of the current message */
    unsigned char in[KL_ANSWER_BYTES + KL_TERMS_BYTES];
};

/** Begin as the sender, on a socket whose connect has begun; or as the listener, on an accepted one. */
void kl_opening_call(struct kl_opening *o, int fd, const struct kl_hello *me, const struct kl_key *key,
                     const struct kl_terms *terms);
void kl_opening_host(struct kl_opening *o, int fd, const struct kl_hello *me, const struct kl_key *key, bool crypt);

/** Make progress. The socket stays in `fd` in all cases. */
enum kl_opened kl_opening_move(struct kl_opening *o);

/** Close the socket, unless it was taken (-1), and wipe the key. */
void kl_opening_close(struct kl_opening *o);

/** The events that epoll has to watch for it. */
uint32_t kl_opening_events(const struct kl_opening *o);

#endif
