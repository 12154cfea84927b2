/* SPDX-License-Identifier: Apache-2.0 */
/**
 * seal.h - authenticated encryption of one direction of a connection, in pieces. A piece that was changed, repeated,
 * omitted, reordered, reflected, or taken from another connection does not open.
 *
 * Pieces are numbered from 0. A piece's number is its nonce and is never sent: both ends count. A key serves one
 * direction of one connection (kl_handshake_seals), so no number is used twice with it.
 *
 * Threads:  one at a time.
 * Source:   ChaCha20-Poly1305 (RFC 8439), through libsodium's crypto_aead_chacha20poly1305_ietf.
 */
#ifndef KL_BOOTSTRAP_SEAL_H
#define KL_BOOTSTRAP_SEAL_H

#include "bootstrap/keys.h"

#include <stdint.h>

#define KL_SEAL_BYTES 16 /* bytes that a sealed piece is longer */

struct kl_seal {
    struct kl_key key;
    uint64_t number; /* of the next piece */
};

/** Seal `bytes` of `from` into `to`, which has room for KL_SEAL_BYTES more and may be the same buffer. */
void kl_seal_close(struct kl_seal *seal, const void *from, size_t bytes, unsigned char *to);

/**
 * Open in place a piece with `bytes` of plaintext. False: it is not the piece that the other end sealed next. Its bytes
 * are undefined then, and no later piece opens either.
 */
bool kl_seal_open(struct kl_seal *seal, unsigned char *piece, size_t bytes);

#endif
