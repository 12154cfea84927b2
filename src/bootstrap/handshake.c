/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/handshake.h"

#include "bootstrap/wire.h"

#include <string.h>

static const char mark[8] = "KOLOboot"; /* no zero at its end */

enum { NONCE = 24 };

void kl_hello_encode(const struct kl_hello *hello, unsigned char wire[KL_HELLO_BYTES])
{
    struct kl_writer w = kl_writer_on(wire, KL_HELLO_BYTES);
    unsigned char nonce[NONCE];

    kl_key_random(nonce, sizeof nonce);
    kl_put_bytes(&w, mark, sizeof mark);
    kl_put_u16(&w, hello->version);
    kl_put_u8(&w, hello->type);
    kl_put_u8(&w, hello->side);
    kl_put_u32(&w, hello->from);
    kl_put_u32(&w, hello->to);
    kl_put_u32(&w, hello->name);
    kl_put_bytes(&w, nonce, sizeof nonce);
}

bool kl_hello_plausible(const unsigned char wire[KL_HELLO_BYTES])
{
    return !memcmp(wire, mark, sizeof mark);
}

struct kl_hello kl_hello_decode(const unsigned char wire[KL_HELLO_BYTES])
{
    struct kl_reader r = kl_reader_on(wire + sizeof mark, KL_HELLO_BYTES - sizeof mark);
    struct kl_hello hello = {.version = kl_get_u16(&r)};

    hello.type = kl_get_u8(&r);
    hello.side = kl_get_u8(&r);
    hello.from = kl_get_u32(&r);
    hello.to = kl_get_u32(&r);
    hello.name = kl_get_u32(&r);
    return hello;
}

static void prove(const struct kl_handshake *h, enum kl_side side, uint8_t outcome, unsigned char proof[KL_PROOF_BYTES])
{
    unsigned char said[2 + 2 * KL_HELLO_BYTES];
    struct kl_writer w = kl_writer_on(said, sizeof said);

    kl_put_u8(&w, (uint8_t)side);
    kl_put_u8(&w, outcome);
    kl_put_bytes(&w, h->caller, sizeof h->caller);
    kl_put_bytes(&w, h->host, sizeof h->host);
    kl_key_prove(&h->key, "kolo handshake", said, sizeof said, proof);
}

void kl_handshake_prove(const struct kl_handshake *h, unsigned char proof[KL_PROOF_BYTES])
{
    prove(h, KL_CALLER, 0, proof);
}

bool kl_handshake_proved(const struct kl_handshake *h, const unsigned char proof[KL_PROOF_BYTES])
{
    unsigned char right[KL_PROOF_BYTES];

    kl_handshake_prove(h, right);
    return kl_key_proof_equal(proof, right);
}

/* The host sends no proof to a caller that may not have the key. */
static bool carries_proof(enum kl_handshake_outcome outcome)
{
    return outcome != KL_REFUSED && outcome != KL_UNKNOWN;
}

void kl_handshake_answer(const struct kl_handshake *h, enum kl_handshake_outcome outcome,
                         unsigned char answer[KL_ANSWER_BYTES])
{
    memset(answer, 0, KL_ANSWER_BYTES);
    answer[0] = (unsigned char)outcome;
    if (carries_proof(outcome)) prove(h, KL_HOST, (uint8_t)outcome, answer + 8);
}

bool kl_handshake_answered(const struct kl_handshake *h, const unsigned char answer[KL_ANSWER_BYTES],
                           enum kl_handshake_outcome *outcome)
{
    unsigned char right[KL_PROOF_BYTES];

    if (answer[0] < KL_ADMITTED || answer[0] >= KL_HANDSHAKE_OUTCOMES) return false;
    prove(h, KL_HOST, answer[0], right);
    if (carries_proof(answer[0]) && !kl_key_proof_equal(answer + 8, right)) return false;
    *outcome = answer[0];
    return true;
}

/* Depends on the random bytes of both hellos: no two connections share a key, whichever side is malicious. */
static struct kl_seal seal_of(const struct kl_handshake *h, const char *direction)
{
    unsigned char said[2 * KL_HELLO_BYTES];
    struct kl_writer w = kl_writer_on(said, sizeof said);

    kl_put_bytes(&w, h->caller, sizeof h->caller);
    kl_put_bytes(&w, h->host, sizeof h->host);
    return (struct kl_seal){.key = kl_key_derive(&h->key, direction, said, sizeof said)};
}

void kl_handshake_seals(const struct kl_handshake *h, enum kl_side us, struct kl_seal *out, struct kl_seal *in)
{
    *(us == KL_CALLER ? out : in) = seal_of(h, "kolo caller to host");
    *(us == KL_CALLER ? in : out) = seal_of(h, "kolo host to caller");
}

void kl_connection_forget(struct kl_connection *c)
{
    kl_key_wipe(&c->out.key);
    kl_key_wipe(&c->in.key);
}

enum kl_handshake_outcome kl_handshake_judge(const struct kl_handshake *h)
{
    struct kl_hello theirs = kl_hello_decode(h->caller), ours = kl_hello_decode(h->host);

    if (theirs.version != ours.version) return KL_OTHER_VERSION;
    if (theirs.side != KL_CALLER || theirs.type != ours.type || theirs.to != ours.from) return KL_NOT_HERE;
    return KL_ADMITTED;
}
