/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tags.h - tags of the bootstrap's messages about connections. The upper half is the subject, the lower half the connection.
 */
#ifndef KL_TRANSPORT_TAGS_H
#define KL_TRANSPORT_TAGS_H

enum kl_tag {
    KL_TAG_CONNECT_INFO = 0x4b000000,       /* of an edge, from the receiver */
    KL_TAG_CONNECT_REPLY = 0x4b010000,      /* from its sender */
    KL_TAG_ARENA = 0x4b020000,              /* of memory that ranks share */
    KL_TAG_NONE = 0x4b030000,               /* never sent: for queries of a peer's state */
    KL_TAG_REDUCER = 0x4b040000,            /* of a link to a network that reduces */
    KL_TAG_RELAY_REQUEST = 0x4b050000,      /* of a relayed connection (net/relay_wire.h) */
    KL_TAG_RELAY_CONNECT_INFO = 0x4b060000, /* the same */
    KL_TAG_RELAY_ANSWER = 0x4b070000,       /* the same */
    KL_TAG_CALL = 0x4b080000,               /* of a step in which calls are compared (comm/queue/compare.h) */
    KL_TAG_GPUS = 0x4b090000,               /* of memory that processes with GPUs share */
    KL_TAG_GPUS_RELAY = 0x4b090001,         /* of more, where GPUs have no P2P */
};

#endif
