/* SPDX-License-Identifier: Apache-2.0 */
/**
 * keys.h - keys of a job: creation, derivation, and proofs of possession.
 *
 * Threads:  any; libsodium is initialised at first use.
 * Source:   BLAKE2b (RFC 7693), keyed, through libsodium's crypto_generichash.
 */
#ifndef KL_BOOTSTRAP_KEYS_H
#define KL_BOOTSTRAP_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#define KL_KEY_BYTES   32
#define KL_PROOF_BYTES 32

struct kl_key {
    unsigned char bytes[KL_KEY_BYTES];
};

void kl_key_random(void *bytes, size_t n);

/** The key for a text that the user gives to all ranks (KOLO_SECRET). */
struct kl_key kl_key_from_text(const char *text);

/** Derive a key for one purpose: `label` names the purpose, `salt` distinguishes uses. */
struct kl_key kl_key_derive(const struct kl_key *key, const char *label, const void *salt, size_t salt_bytes);

/** Proof of holding `key`, bound to `label` and to `data`. */
void kl_key_prove(const struct kl_key *key, const char *label, const void *data, size_t bytes,
                  unsigned char proof[KL_PROOF_BYTES]);

/** Compares in constant time. */
bool kl_key_proof_equal(const unsigned char a[KL_PROOF_BYTES], const unsigned char b[KL_PROOF_BYTES]);

/** Overwrite a secret that is no longer needed. */
void kl_key_wipe(struct kl_key *key);

#endif
