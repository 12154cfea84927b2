/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/guard.h"

#include <string.h>

enum { NONCE = 12, RECORDS_PER_KEY = 1 << 20 };
_Static_assert(NONCE == crypto_aead_aes256gcm_NPUBBYTES, "of the cipher");
_Static_assert(NONCE == crypto_aead_chacha20poly1305_ietf_NPUBBYTES, "of the cipher");
_Static_assert(KL_GUARD_TAG == crypto_aead_aes256gcm_ABYTES, "of the cipher");
_Static_assert(KL_GUARD_TAG == crypto_aead_chacha20poly1305_ietf_ABYTES, "of the cipher");
_Static_assert(KL_GUARD_TAG == crypto_shorthash_siphashx24_BYTES, "of the MAC");

unsigned kl_guard_ciphers(void)
{
    return KL_CIPHER_CHACHA20 | (crypto_aead_aes256gcm_is_available() ? KL_CIPHER_AES256 : 0u);
}

enum kl_cipher kl_guard_choose(unsigned ciphers)
{
    return ciphers & KL_CIPHER_AES256 ? KL_CIPHER_AES256 : KL_CIPHER_CHACHA20;
}

static void use_key(struct kl_guard *guard)
{
    if (guard->cipher == KL_CIPHER_AES256) crypto_aead_aes256gcm_beforenm(&guard->aes, guard->key.bytes);
}

void kl_guard_init(struct kl_guard *guard, enum kl_cipher cipher, const struct kl_key *session, const char *direction)
{
    guard->cipher = cipher;
    guard->count = 0;
    guard->key = kl_key_derive(session, direction, NULL, 0);
    use_key(guard);
}

/* The nonce of the next record; changes the key when due. */
static void next(struct kl_guard *guard, unsigned char nonce[NONCE])
{
    uint64_t n = guard->count++;

    if (n && n % RECORDS_PER_KEY == 0) {
        guard->key = kl_key_derive(&guard->key, "kolo net next", NULL, 0);
        use_key(guard);
    }
    memset(nonce, 0, NONCE);
    for (int i = 0; i < 8; i++) nonce[i] = (unsigned char)(n >> (8 * i));
}

static void encrypt(struct kl_guard *guard, const unsigned char *plain, size_t bytes, unsigned char *wire)
{
    unsigned char nonce[NONCE];

    next(guard, nonce);
    if (guard->cipher == KL_CIPHER_AES256)
        crypto_aead_aes256gcm_encrypt_detached_afternm(wire, wire + bytes, NULL, plain, bytes, NULL, 0, NULL, nonce,
                                                       &guard->aes);
    else
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(wire, wire + bytes, NULL, plain, bytes, NULL, 0, NULL, nonce,
                                                           guard->key.bytes);
}

static bool decrypt(struct kl_guard *guard, const unsigned char *wire, size_t bytes, const unsigned char *tag,
                    unsigned char *plain)
{
    unsigned char nonce[NONCE];

    next(guard, nonce);
    if (guard->cipher == KL_CIPHER_AES256)
        return !crypto_aead_aes256gcm_decrypt_detached_afternm(plain, NULL, wire, bytes, tag, NULL, 0, nonce,
                                                               &guard->aes);
    return !crypto_aead_chacha20poly1305_ietf_decrypt_detached(plain, NULL, wire, bytes, tag, NULL, 0, nonce,
                                                               guard->key.bytes);
}

/* The first 16 bytes of the key are SipHash's. */
static void sign(const struct kl_guard *guard, const unsigned char *plain, unsigned char tag[KL_GUARD_TAG])
{
    crypto_shorthash_siphashx24(tag, plain, KL_GUARD_PLAIN_HEAD, guard->key.bytes);
}

void kl_guard_head(struct kl_guard *guard, const unsigned char plain[KL_GUARD_PLAIN_HEAD],
                   unsigned char wire[KL_GUARD_HEAD])
{
    if (guard->cipher) {
        encrypt(guard, plain, KL_GUARD_PLAIN_HEAD, wire);
        return;
    }
    memcpy(wire, plain, KL_GUARD_PLAIN_HEAD);
    sign(guard, plain, wire + KL_GUARD_PLAIN_HEAD);
}

bool kl_guard_open_head(struct kl_guard *guard, const unsigned char wire[KL_GUARD_HEAD],
                        unsigned char plain[KL_GUARD_PLAIN_HEAD])
{
    unsigned char tag[KL_GUARD_TAG];

    if (guard->cipher) return decrypt(guard, wire, KL_GUARD_PLAIN_HEAD, wire + KL_GUARD_PLAIN_HEAD, plain);
    memcpy(plain, wire, KL_GUARD_PLAIN_HEAD);
    sign(guard, plain, tag);
    return !sodium_memcmp(tag, wire + KL_GUARD_PLAIN_HEAD, KL_GUARD_TAG);
}

void kl_guard_record(struct kl_guard *guard, const void *data, size_t bytes, unsigned char *wire)
{
    encrypt(guard, data, bytes, wire);
}

bool kl_guard_open_record(struct kl_guard *guard, void *data, size_t bytes, const unsigned char tag[KL_GUARD_TAG])
{
    return decrypt(guard, data, bytes, tag, data);
}
