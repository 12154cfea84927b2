/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/session_params.h"

#include "bootstrap/wire.h"
#include "net/socket/config.h"
#include "net/socket/cipher.h"

#include <string.h>

enum { VERSION = 2 };

/* ---- keys ---- */

struct kl_key kl_session_params_handshake_key(const struct kl_key *secret)
{
    return kl_key_derive(secret, "kolo net", NULL, 0);
}

struct kl_key kl_session_params_session_key(const struct kl_handshake *handshake)
{
    unsigned char hellos[2 * KL_HELLO_BYTES];

    memcpy(hellos, handshake->caller, KL_HELLO_BYTES);
    memcpy(hellos + KL_HELLO_BYTES, handshake->host, KL_HELLO_BYTES);
    return kl_key_derive(&handshake->key, "kolo net session", hellos, sizeof hellos);
}

/* ---- session parameters ---- */

static void sign(const unsigned char body[KL_SESSION_PARAMS_BODY], const struct kl_key *session, enum kl_side side,
                 unsigned char proof[KL_PROOF_BYTES])
{
    kl_key_prove(session, side == KL_CALLER ? "kolo net sender's terms" : "kolo net listener's terms", body,
                 KL_SESSION_PARAMS_BODY, proof);
}

void kl_session_params_encode(const struct kl_session_params *params, const struct kl_key *session, enum kl_side side,
                              unsigned char wire[KL_SESSION_PARAMS_BYTES])
{
    struct kl_writer w = kl_writer_on(wire, KL_SESSION_PARAMS_BYTES);

    memset(wire, 0, KL_SESSION_PARAMS_BYTES);
    kl_put_u8(&w, VERSION);
    kl_put_u8(&w, params->crypt);
    kl_put_u8(&w, (uint8_t)params->ciphers);
    kl_put_u8(&w, params->both_ways);
    kl_put_u16(&w, (uint16_t)params->lane);
    kl_put_u16(&w, (uint16_t)params->lanes);
    kl_put_bytes(&w, params->group, KL_GROUP);
    sign(wire, session, side, wire + KL_SESSION_PARAMS_BODY);
}

static bool sensible(const struct kl_session_params *t, unsigned version)
{
    return version == VERSION && t->ciphers <= (KL_CIPHER_CHACHA20 | KL_CIPHER_AES256) &&
           t->lanes <= KL_SOCKET_MAX_LANES && t->lane <= t->lanes && !(t->both_ways && t->lanes);
}

bool kl_session_params_decode(const unsigned char wire[KL_SESSION_PARAMS_BYTES], const struct kl_key *session,
                              enum kl_side side, struct kl_session_params *params)
{
    struct kl_reader r = kl_reader_on(wire, KL_SESSION_PARAMS_BODY);
    unsigned char right[KL_PROOF_BYTES];

    sign(wire, session, side, right);
    if (!kl_key_proof_equal(wire + KL_SESSION_PARAMS_BODY, right)) return false;
    unsigned version = kl_get_u8(&r);
    *params = (struct kl_session_params){.crypt = kl_get_u8(&r) != 0};
    params->ciphers = kl_get_u8(&r);
    params->both_ways = kl_get_u8(&r) != 0;
    params->lane = kl_get_u16(&r);
    params->lanes = kl_get_u16(&r);
    kl_get_bytes(&r, params->group, KL_GROUP);
    return sensible(params, version);
}

/* ---- handles: mark, version, address, zeros ---- */

static const char mark[8] = "KOLOsock"; /* no zero at its end */

void kl_session_params_put_handle(const union kl_address *address, struct kl_net_handle *handle)
{
    struct kl_writer w = kl_writer_on(handle->bytes, sizeof handle->bytes);
    unsigned char wire[KL_ADDRESS_WIRE];

    memset(handle, 0, sizeof *handle);
    kl_address_pack(address, wire);
    kl_put_bytes(&w, mark, sizeof mark);
    kl_put_u16(&w, VERSION);
    kl_put_bytes(&w, wire, sizeof wire);
}

bool kl_session_params_get_handle(const struct kl_net_handle *handle, union kl_address *address)
{
    struct kl_reader r = kl_reader_on(handle->bytes + sizeof mark, sizeof handle->bytes - sizeof mark);
    unsigned char wire[KL_ADDRESS_WIRE];

    if (memcmp(handle->bytes, mark, sizeof mark) != 0 || kl_get_u16(&r) != VERSION) return false;
    kl_get_bytes(&r, wire, sizeof wire);
    return kl_address_unpack(wire, address) && !kl_address_is_none(address) && kl_address_port(address);
}
