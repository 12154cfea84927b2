/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/keys.h"

#include <pthread.h>
#include <sodium.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Fails only when the system has no randomness, and then libsodium ends the program at its first use. */
static void init(void)
{
    int rc = sodium_init();

    (void)rc;
}

static void ready(void)
{
    pthread_once(&once, init);
}

/* BLAKE2b over label, its zero, and data: no two pairs give the same bytes. */
static void hash(const struct kl_key *key, const char *label, const void *data, size_t bytes, unsigned char out[32])
{
    crypto_generichash_state s;

    ready();
    crypto_generichash_init(&s, key ? key->bytes : NULL, key ? KL_KEY_BYTES : 0, 32);
    crypto_generichash_update(&s, (const unsigned char *)label, strlen(label) + 1);
    crypto_generichash_update(&s, data, bytes);
    crypto_generichash_final(&s, out, 32);
}

void kl_key_random(void *bytes, size_t n)
{
    ready();
    randombytes_buf(bytes, n);
}

struct kl_key kl_key_from_text(const char *text)
{
    struct kl_key key;

    hash(NULL, "kolo secret", text, strlen(text), key.bytes);
    return key;
}

struct kl_key kl_key_derive(const struct kl_key *key, const char *label, const void *salt, size_t salt_bytes)
{
    struct kl_key derived;

    hash(key, label, salt, salt_bytes, derived.bytes);
    return derived;
}

void kl_key_prove(const struct kl_key *key, const char *label, const void *data, size_t bytes,
                  unsigned char proof[KL_PROOF_BYTES])
{
    hash(key, label, data, bytes, proof);
}

bool kl_key_proof_equal(const unsigned char a[KL_PROOF_BYTES], const unsigned char b[KL_PROOF_BYTES])
{
    ready();
    return !sodium_memcmp(a, b, KL_PROOF_BYTES);
}

void kl_key_wipe(struct kl_key *key)
{
    sodium_memzero(key->bytes, sizeof key->bytes);
}
