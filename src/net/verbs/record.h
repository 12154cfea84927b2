/* SPDX-License-Identifier: Apache-2.0 */
/**
 * record.h - records between the two ends of an RDMA connection, over its TCP connection: KL_VERBS_RECORD bytes each.
 *
 *      sender                              listener
 *        PARAMS                  --->
 *                                <---        PARAMS           it is ready to receive
 *        READY                   --->                         so is the sender; the TCP connection stays open
 *        REFUSED or FAILED       <-->                         at any time: why this end gives up
 *
 * Each is authenticated with a key that both ends derived from the handshake of the TCP connection, and bound to its
 * side and place in the sequence. The addresses, keys and random sequence numbers in the parameters are all that protects the
 * data, which RDMA neither encrypts nor authenticates.
 */
#ifndef KL_NET_VERBS_RECORD_H
#define KL_NET_VERBS_RECORD_H

#include "bootstrap/handshake.h"
#include "net/verbs/abi.h"
#include "net/verbs/config.h"

enum {
    KL_VERBS_RECORD_BODY = 416,
    KL_VERBS_RECORD = KL_VERBS_RECORD_BODY + KL_PROOF_BYTES,
    KL_VERBS_REASON = 400,
    KL_VERBS_NAME_WIRE = 64
};

enum kl_verbs_record_type { KL_VERBS_PARAMS = 1, KL_VERBS_READY, KL_VERBS_REFUSED, KL_VERBS_FAILED };

/** One end's half of a connection. */
struct kl_verbs_conn_params {
    uint8_t link_layer, mtu, port, qps;
    bool both_ways;
    uint16_t lid;
    union kl_ibv_gid gid;
    uint8_t gid_index, gid_version;
    uint32_t qpn[KL_VERBS_QPS_MAX], psn[KL_VERBS_QPS_MAX]; /* 24 bits */
    uint64_t memory;                                       /* of its rings (ring.h) */
    uint32_t rkey;
    uint32_t max_message; /* bytes of one write */
    char device[KL_VERBS_NAME_WIRE];
};

struct kl_verbs_record {
    enum kl_verbs_record_type type;
    struct kl_verbs_conn_params params; /* PARAMS */
    uint64_t sent, posted;              /* REFUSED: bytes of the message and of its receive */
    uint32_t tag;
    char reason[KL_VERBS_REASON]; /* FAILED */
};

/** The key of a connection, from its handshake. */
struct kl_key kl_verbs_record_key(const struct kl_handshake *handshake);

/** Record `number` of this side. */
void kl_verbs_record_encode(const struct kl_verbs_record *r, const struct kl_key *key, enum kl_side side,
                            uint32_t number, unsigned char wire[KL_VERBS_RECORD]);

/** False: not authentic, or nonsense. Silent. */
bool kl_verbs_record_decode(const unsigned char wire[KL_VERBS_RECORD], const struct kl_key *key, enum kl_side side,
                            uint32_t number, struct kl_verbs_record *r);

/** Without the proof. */
bool kl_verbs_record_parse(const unsigned char body[KL_VERBS_RECORD_BODY], struct kl_verbs_record *r);

#endif
