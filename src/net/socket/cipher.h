/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cipher.h - protection of one direction of one socket: a key of its own, and a record count.
 *
 *                   head (24 bytes) on the wire               data on the wire
 *     in plain      head, SipHash-2-4 of it (16 bytes)        as they are
 *     encrypted     encrypted, with its tag (16 bytes)        records of KL_CIPHER_RECORD bytes at most, each encrypted, with its tag
 *
 * In plain, a head contains its sequence number, so it cannot be forged, repeated, omitted or moved; data has only
 * TCP's checksum. Encrypted, every record's number is its nonce, which protects all bytes likewise. A key changes every
 * 2^20 records, far below the limits of both ciphers.
 *
 * SipHash-2-4 with 128 bits is a pseudo-random function for short inputs, hence a MAC: 36 ns for 24 bytes here, where
 * keyed BLAKE2b takes 410. AES-256-GCM is used if both ends have instructions for it, else ChaCha20-Poly1305; nonces
 * are counters, so XChaCha20's long ones are not needed.
 *
 * Threads:  one at a time.
 * Source:   Aumasson and Bernstein, SipHash: a fast short-input PRF (Indocrypt 2012); RFC 8439; NIST SP 800-38D;
 *           libsodium.
 */
#ifndef KL_NET_SOCKET_CIPHER_H
#define KL_NET_SOCKET_CIPHER_H

#include "bootstrap/keys.h"

#include <sodium.h>
#include <stdint.h>

enum {
    KL_CIPHER_PLAIN_HEAD = 24,
    KL_CIPHER_TAG = 16,
    KL_CIPHER_SEALED_HEAD = KL_CIPHER_PLAIN_HEAD + KL_CIPHER_TAG,
    KL_CIPHER_RECORD = 32 << 10,
};

/** Bit mask of an end's ciphers; one bit for the one in use. 0 is plain. */
enum kl_cipher { KL_CIPHER_PLAIN = 0, KL_CIPHER_CHACHA20 = 1, KL_CIPHER_AES256 = 2 };

/** Keyed for one direction; the other end has an equal one. */
struct kl_cipher_state {
    enum kl_cipher cipher;
    struct kl_key key;
    uint64_t count;                  /* records so far: the next nonce */
    crypto_aead_aes256gcm_state aes; /* the expanded key; KL_CIPHER_AES256 only */
};

/** The ciphers of this machine, as bits. */
unsigned kl_cipher_available(void);

/** The best cipher that both ends have. */
enum kl_cipher kl_cipher_choose(unsigned ciphers);

/** Derive a key from the session's; `direction` distinguishes the two. */
void kl_cipher_init(struct kl_cipher_state *state, enum kl_cipher cipher, const struct kl_key *session,
                    const char *direction);

void kl_cipher_seal_head(struct kl_cipher_state *state, const unsigned char plain[KL_CIPHER_PLAIN_HEAD],
                         unsigned char wire[KL_CIPHER_SEALED_HEAD]);

/** False: not sealed by the other end, or out of sequence. `plain` is then undefined. */
bool kl_cipher_open_head(struct kl_cipher_state *state, const unsigned char wire[KL_CIPHER_SEALED_HEAD],
                         unsigned char plain[KL_CIPHER_PLAIN_HEAD]);

/** Encrypt a record; `wire` gets `bytes` and the tag. */
void kl_cipher_seal_record(struct kl_cipher_state *state, const void *data, size_t bytes, unsigned char *wire);

/** Decrypt a record in place. */
bool kl_cipher_open_record(struct kl_cipher_state *state, void *data, size_t bytes,
                           const unsigned char tag[KL_CIPHER_TAG]);

#endif
