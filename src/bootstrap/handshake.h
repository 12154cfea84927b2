/* SPDX-License-Identifier: Apache-2.0 */
/**
 * handshake.h - how two ends of a new connection prove to each other that they hold the same key.
 *
 *      caller                                host
 *        hello (48 bytes)            --->
 *                                    <---    hello (48 bytes)
 *        proof (32 bytes)            --->
 *                                    <---    answer (40 bytes): an outcome, with the host's proof
 *
 * A hello says which protocol version and which kind of connection, of which job, from which rank to which, and holds 24
 * random bytes. A proof covers both hellos, so it is good for one connection only, and the side that makes it, so it cannot
 * be sent back; the host's covers its outcome, too. Before the proof, a hello only says whose key the proof is tried with.
 * A caller without the key gets the fixed answer "refused" or "unknown", which proves nothing, and is told so at once.
 *
 * Who is admitted goes on with two seals (seal.h), one for each direction, whose keys come from the key and both hellos: what
 * follows the handshake is of this connection and of nobody else.
 *
 * The layout of the four messages is the same in all versions; only what follows them may differ.
 *
 * Everything here is pure; caller.c and acceptor.c play the two parts.
 */
#ifndef KL_BOOTSTRAP_HANDSHAKE_H
#define KL_BOOTSTRAP_HANDSHAKE_H

#include "bootstrap/seal.h"
#include "os/socket.h"

#define KL_PROTOCOL     5
#define KL_HELLO_BYTES  48
#define KL_ANSWER_BYTES (8 + KL_PROOF_BYTES)
#define KL_NO_RANK      UINT32_MAX

enum kl_connection_type { KL_CONNECTION_ROOT = 1, KL_CONNECTION_PEER, KL_CONNECTION_NET };

enum kl_side { KL_CALLER = 1, KL_HOST };

enum kl_handshake_outcome {
    KL_ADMITTED = 1,
    KL_REFUSED,       /* the proof is wrong; this answer carries none */
    KL_ELSEWHERE,     /* not this connection: there is another between us, or about to be */
    KL_OTHER_VERSION, /* the host's hello says which it speaks */
    KL_NOT_HERE,      /* the caller cannot be whom it says, or has come to somebody else */
    KL_UNKNOWN,       /* nobody of that job, type and rank is here; this answer carries no proof */
    KL_HANDSHAKE_OUTCOMES
};

struct kl_hello {
    uint16_t version;
    uint8_t type;      /* enum kl_connection_type */
    uint8_t side;      /* enum kl_side */
    uint32_t from, to; /* ranks; the root is KL_NO_RANK */
    uint32_t name;     /* of the job: kl_id_name */
};

/** One end's view of a handshake. */
struct kl_handshake {
    struct kl_key key;
    unsigned char caller[KL_HELLO_BYTES], host[KL_HELLO_BYTES];
};

/** A connection on which somebody was admitted, as one end has it. */
struct kl_connection {
    int fd;
    struct kl_seal out, in;
};

/** Our hello, with fresh random bytes. */
void kl_hello_encode(const struct kl_hello *hello, unsigned char wire[KL_HELLO_BYTES]);

/** Are these the first bytes of a hello? All that may be asked before the proof. */
bool kl_hello_plausible(const unsigned char wire[KL_HELLO_BYTES]);
struct kl_hello kl_hello_decode(const unsigned char wire[KL_HELLO_BYTES]);

/** The caller's proof, and the host's check of it. */
void kl_handshake_prove(const struct kl_handshake *h, unsigned char proof[KL_PROOF_BYTES]);
bool kl_handshake_proved(const struct kl_handshake *h, const unsigned char proof[KL_PROOF_BYTES]);

/** The host's answer, and the caller's check of it; false: not from a holder of the key, or no known outcome. */
void kl_handshake_answer(const struct kl_handshake *h, enum kl_handshake_outcome outcome,
                         unsigned char answer[KL_ANSWER_BYTES]);
bool kl_handshake_answered(const struct kl_handshake *h, const unsigned char answer[KL_ANSWER_BYTES],
                           enum kl_handshake_outcome *outcome);

/** The seals of the side `us`. Once it is clear that both ends hold the key. */
void kl_handshake_seals(const struct kl_handshake *h, enum kl_side us, struct kl_seal *out, struct kl_seal *in);

/** Overwrite the keys of a copy that is no longer needed. */
void kl_connection_forget(struct kl_connection *connection);

/** The rules that hold for every host, once the proof was right: KL_ADMITTED, or why not. */
enum kl_handshake_outcome kl_handshake_judge(const struct kl_handshake *h);

#endif
