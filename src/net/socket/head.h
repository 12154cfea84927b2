/* SPDX-License-Identifier: Apache-2.0 */
/**
 * head.h - the head of a frame.
 *
 *      0           8      12     16               24
 *     +-----------+------+------+----------------+
 *     | bytes     | tag  | kind | sequence       |   little-endian; sealed as guard.h describes
 *     +-----------+------+------+----------------+
 *
 * The sequence counts the frames of one direction of one socket from 0.
 */
#ifndef KL_NET_SOCKET_HEAD_H
#define KL_NET_SOCKET_HEAD_H

#include "net/socket/guard.h"

#define KL_HEAD_MAX_BYTES ((uint64_t)1 << 40) /* of a message */

enum kl_head_kind {
    KL_HEAD_MESSAGE = 1, /* its data follow */
    KL_HEAD_SPREAD,      /* its data is sent over the lanes */
    KL_HEAD_PART,        /* on a lane: the next part */
    KL_HEAD_BACK,        /* from the listener: messages of the connection with the tag as id follow (twin.h) */
    KL_HEAD_TOO_LARGE,   /* to the sender, twice: the size of its message, and the posted size */
    KL_HEAD_KINDS
};

struct kl_head {
    uint64_t bytes; /* of the data, or depending on the kind */
    uint32_t tag;
    uint32_t kind; /* enum kl_head_kind */
    uint64_t sequence;
};

void kl_head_encode(const struct kl_head *head, unsigned char plain[KL_GUARD_PLAIN_HEAD]);

/** False: unknown kind, or longer than any message. */
bool kl_head_decode(const unsigned char plain[KL_GUARD_PLAIN_HEAD], struct kl_head *head);

#endif
