/* SPDX-License-Identifier: Apache-2.0 */
/**
 * handshake.h - mutual proof of holding the same key, on a new connection.
 *
 *      caller                                host
 *        hello (48 bytes)            --->
 *                                    <---    hello (48 bytes)
 *        proof (32 bytes)            --->
 *                                    <---    answer (40 bytes): an outcome, with the host's proof
 *
 * A hello has the protocol version, the connection type, the job, both ranks, and 24 random bytes. A proof covers both
 * hellos and its side, so it can be neither replayed nor reflected; the host's also covers its outcome. Before the
 * proof, a hello only selects the key to check with. A caller without the key gets the fixed answer "refused" or
 * "unknown", without proof, at once.
 *
 * An admitted connection continues with two seals (seal.h), one per direction, with keys derived from the key and both
 * hellos. The four messages have the same layout in all versions; later ones may differ.
 *
 * All functions are pure; dialer.c and acceptor.c do the I/O.
 */
#ifndef KL_BOOTSTRAP_HANDSHAKE_H
#define KL_BOOTSTRAP_HANDSHAKE_H

#include "bootstrap/seal.h"
#include "os/socket.h"

#define KL_PROTOCOL     6
#define KL_HELLO_BYTES  48
#define KL_ANSWER_BYTES (8 + KL_PROOF_BYTES)
#define KL_NO_RANK      UINT32_MAX

enum kl_connection_type { KL_CONNECTION_ROOT = 1, KL_CONNECTION_PEER, KL_CONNECTION_NET };

enum kl_side { KL_CALLER = 1, KL_HOST };

enum kl_handshake_outcome {
    KL_ADMITTED = 1,
    KL_REFUSED,       /* the proof is wrong; this answer carries none */
    KL_ELSEWHERE,     /* not this connection: there is another one between the two ranks, or about to be */
    KL_OTHER_VERSION, /* the host's hello has its version */
    KL_NOT_HERE,      /* the caller's rank is impossible, or it has reached the wrong host */
    KL_UNKNOWN,       /* no acceptor of that job, type and rank is here; this answer carries no proof */
    KL_EXHAUSTED,     /* the host has no descriptor left for the connection */
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

/** An admitted connection, as one end sees it. */
struct kl_connection {
    int fd;
    struct kl_seal out, in;
};

/** Encode a hello, with fresh random bytes. */
void kl_hello_encode(const struct kl_hello *hello, unsigned char wire[KL_HELLO_BYTES]);

/** Are these the first bytes of a hello? The only check before the proof. */
bool kl_hello_plausible(const unsigned char wire[KL_HELLO_BYTES]);
struct kl_hello kl_hello_decode(const unsigned char wire[KL_HELLO_BYTES]);

/** Make the caller's proof, and check it at the host. */
void kl_handshake_prove(const struct kl_handshake *h, unsigned char proof[KL_PROOF_BYTES]);
bool kl_handshake_proved(const struct kl_handshake *h, const unsigned char proof[KL_PROOF_BYTES]);

/** Make the host's answer, and check it at the caller; false: not made with the key, or not a known outcome. */
void kl_handshake_answer(const struct kl_handshake *h, enum kl_handshake_outcome outcome,
                         unsigned char answer[KL_ANSWER_BYTES]);
bool kl_handshake_answered(const struct kl_handshake *h, const unsigned char answer[KL_ANSWER_BYTES],
                           enum kl_handshake_outcome *outcome);

/** The seals of the side `us`. Only after both ends have proved that they hold the key. */
void kl_handshake_seals(const struct kl_handshake *h, enum kl_side us, struct kl_seal *out, struct kl_seal *in);

/** Overwrite the keys of a copy that is no longer needed. */
void kl_connection_forget(struct kl_connection *connection);

/** Rules that hold for every host, after the proof was right: KL_ADMITTED, or the reason for declining. */
enum kl_handshake_outcome kl_handshake_judge(const struct kl_handshake *h);

#endif
