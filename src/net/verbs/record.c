/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/record.h"

#include "bootstrap/wire.h"

#include <string.h>

enum { VERSION = 1, NUMBER_BITS = 24, MTU_MAX = 5, LEAST_MESSAGE = 4096 };

struct kl_key kl_verbs_record_key(const struct kl_handshake *handshake)
{
    unsigned char hellos[2 * KL_HELLO_BYTES];

    memcpy(hellos, handshake->caller, KL_HELLO_BYTES);
    memcpy(hellos + KL_HELLO_BYTES, handshake->host, KL_HELLO_BYTES);
    return kl_key_derive(&handshake->key, "kolo net verbs", hellos, sizeof hellos);
}

static void sign(const unsigned char body[KL_VERBS_RECORD_BODY], const struct kl_key *key, enum kl_side side,
                 uint32_t number, unsigned char proof[KL_PROOF_BYTES])
{
    unsigned char data[KL_VERBS_RECORD_BODY + 4];
    struct kl_writer w = kl_writer_on(data, sizeof data);

    kl_put_bytes(&w, body, KL_VERBS_RECORD_BODY);
    kl_put_u32(&w, number);
    kl_key_prove(key, side == KL_CALLER ? "kolo verbs sender's record" : "kolo verbs listener's record", data,
                 sizeof data, proof);
}

/* ---- parameters ---- */

static void put_params(struct kl_writer *w, const struct kl_verbs_conn_params *t)
{
    kl_put_u8(w, t->link_layer);
    kl_put_u8(w, t->mtu);
    kl_put_u8(w, t->port);
    kl_put_u8(w, t->qps);
    kl_put_u8(w, t->both_ways);
    kl_put_u16(w, t->lid);
    kl_put_bytes(w, t->gid.raw, sizeof t->gid.raw);
    kl_put_u8(w, t->gid_index);
    kl_put_u8(w, t->gid_version);
    for (int i = 0; i < KL_VERBS_QPS_MAX; i++) {
        kl_put_u32(w, t->qpn[i]);
        kl_put_u32(w, t->psn[i]);
    }
    kl_put_u64(w, t->memory);
    kl_put_u32(w, t->rkey);
    kl_put_u32(w, t->max_message);
    kl_put_bytes(w, t->device, sizeof t->device);
}

static bool is_sensible(const struct kl_verbs_conn_params *t)
{
    bool right = t->qps >= 1 && t->qps <= KL_VERBS_QPS_MAX && t->mtu >= 1 && t->mtu <= MTU_MAX && t->gid_version <= 2 &&
                 t->max_message >= LEAST_MESSAGE &&
                 (t->link_layer == KL_IBV_LINK_INFINIBAND || t->link_layer == KL_IBV_LINK_ETHERNET);

    for (int i = 0; right && i < t->qps; i++) right = !(t->qpn[i] >> NUMBER_BITS) && !(t->psn[i] >> NUMBER_BITS);
    return right;
}

static bool get_params(struct kl_reader *r, struct kl_verbs_conn_params *t)
{
    t->link_layer = kl_get_u8(r);
    t->mtu = kl_get_u8(r);
    t->port = kl_get_u8(r);
    t->qps = kl_get_u8(r);
    t->both_ways = kl_get_u8(r) != 0;
    t->lid = kl_get_u16(r);
    kl_get_bytes(r, t->gid.raw, sizeof t->gid.raw);
    t->gid_index = kl_get_u8(r);
    t->gid_version = kl_get_u8(r);
    for (int i = 0; i < KL_VERBS_QPS_MAX; i++) {
        t->qpn[i] = kl_get_u32(r);
        t->psn[i] = kl_get_u32(r);
    }
    t->memory = kl_get_u64(r);
    t->rkey = kl_get_u32(r);
    t->max_message = kl_get_u32(r);
    kl_get_bytes(r, t->device, sizeof t->device);
    t->device[sizeof t->device - 1] = 0;
    return is_sensible(t);
}

/* ---- records ---- */

void kl_verbs_record_encode(const struct kl_verbs_record *r, const struct kl_key *key, enum kl_side side,
                            uint32_t number, unsigned char wire[KL_VERBS_RECORD])
{
    struct kl_writer w = kl_writer_on(wire, KL_VERBS_RECORD_BODY);

    memset(wire, 0, KL_VERBS_RECORD);
    kl_put_u8(&w, VERSION);
    kl_put_u8(&w, (uint8_t)r->type);
    if (r->type == KL_VERBS_PARAMS) put_params(&w, &r->params);
    if (r->type == KL_VERBS_REFUSED) {
        kl_put_u64(&w, r->sent);
        kl_put_u64(&w, r->posted);
        kl_put_u32(&w, r->tag);
    }
    if (r->type == KL_VERBS_FAILED) kl_put_bytes(&w, r->reason, sizeof r->reason);
    sign(wire, key, side, number, wire + KL_VERBS_RECORD_BODY);
}

bool kl_verbs_record_parse(const unsigned char body[KL_VERBS_RECORD_BODY], struct kl_verbs_record *r)
{
    struct kl_reader from = kl_reader_on(body, KL_VERBS_RECORD_BODY);
    unsigned version = kl_get_u8(&from), type = kl_get_u8(&from);

    memset(r, 0, sizeof *r);
    if (version != VERSION || type < KL_VERBS_PARAMS || type > KL_VERBS_FAILED) return false;
    r->type = (enum kl_verbs_record_type)type;
    if (r->type == KL_VERBS_PARAMS) return get_params(&from, &r->params);
    if (r->type == KL_VERBS_REFUSED) {
        r->sent = kl_get_u64(&from);
        r->posted = kl_get_u64(&from);
        r->tag = kl_get_u32(&from);
    }
    if (r->type == KL_VERBS_FAILED) kl_get_bytes(&from, r->reason, sizeof r->reason);
    r->reason[sizeof r->reason - 1] = 0;
    return true;
}

bool kl_verbs_record_decode(const unsigned char wire[KL_VERBS_RECORD], const struct kl_key *key, enum kl_side side,
                            uint32_t number, struct kl_verbs_record *r)
{
    unsigned char right[KL_PROOF_BYTES];

    sign(wire, key, side, number, right);
    return kl_key_proof_equal(wire + KL_VERBS_RECORD_BODY, right) && kl_verbs_record_parse(wire, r);
}
