/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/seal.h"

#include <string.h>

enum { NONCE = 12, RECORDS_PER_KEY = 1 << 20 };
_Static_assert(NONCE == crypto_aead_aes256gcm_NPUBBYTES, "of the cipher");
_Static_assert(NONCE == crypto_aead_chacha20poly1305_ietf_NPUBBYTES, "of the cipher");
_Static_assert(KL_SEAL_TAG == crypto_aead_aes256gcm_ABYTES, "of the cipher");
_Static_assert(KL_SEAL_TAG == crypto_aead_chacha20poly1305_ietf_ABYTES, "of the cipher");
_Static_assert(KL_SEAL_TAG == crypto_shorthash_siphashx24_BYTES, "of the MAC");

unsigned kl_seal_ciphers(void)
{
    return KL_CIPHER_CHACHA20 | (crypto_aead_aes256gcm_is_available() ? KL_CIPHER_AES256 : 0u);
}

enum kl_cipher kl_seal_choose(unsigned ciphers)
{
    return ciphers & KL_CIPHER_AES256 ? KL_CIPHER_AES256 : KL_CIPHER_CHACHA20;
}

static void use_key(struct kl_seal *seal)
{
    if (seal->cipher == KL_CIPHER_AES256) crypto_aead_aes256gcm_beforenm(&seal->aes, seal->key.bytes);
}

void kl_seal_init(struct kl_seal *seal, enum kl_cipher cipher, const struct kl_key *session, const char *direction)
{
    seal->cipher = cipher;
    seal->count = 0;
    seal->key = kl_key_derive(session, direction, NULL, 0);
    use_key(seal);
}

/* The nonce of the next record; the key is changed when it is time. */
static void next(struct kl_seal *seal, unsigned char nonce[NONCE])
{
    uint64_t n = seal->count++;

    if (n && n % RECORDS_PER_KEY == 0) {
        seal->key = kl_key_derive(&seal->key, "kolo net next", NULL, 0);
        use_key(seal);
    }
    memset(nonce, 0, NONCE);
    for (int i = 0; i < 8; i++) nonce[i] = (unsigned char)(n >> (8 * i));
}

static void encrypt(struct kl_seal *seal, const unsigned char *plain, size_t bytes, unsigned char *wire)
{
    unsigned char nonce[NONCE];

    next(seal, nonce);
    if (seal->cipher == KL_CIPHER_AES256)
        crypto_aead_aes256gcm_encrypt_detached_afternm(wire, wire + bytes, NULL, plain, bytes, NULL, 0, NULL, nonce,
                                                       &seal->aes);
    else
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(wire, wire + bytes, NULL, plain, bytes, NULL, 0, NULL, nonce,
                                                           seal->key.bytes);
}

static bool decrypt(struct kl_seal *seal, const unsigned char *wire, size_t bytes, const unsigned char *tag,
                    unsigned char *plain)
{
    unsigned char nonce[NONCE];

    next(seal, nonce);
    if (seal->cipher == KL_CIPHER_AES256)
        return !crypto_aead_aes256gcm_decrypt_detached_afternm(plain, NULL, wire, bytes, tag, NULL, 0, nonce,
                                                               &seal->aes);
    return !crypto_aead_chacha20poly1305_ietf_decrypt_detached(plain, NULL, wire, bytes, tag, NULL, 0, nonce,
                                                               seal->key.bytes);
}

/* The first 16 bytes of the key are SipHash's. */
static void sign(const struct kl_seal *seal, const unsigned char *plain, unsigned char tag[KL_SEAL_TAG])
{
    crypto_shorthash_siphashx24(tag, plain, KL_SEAL_PLAIN_HEAD, seal->key.bytes);
}

void kl_seal_head(struct kl_seal *seal, const unsigned char plain[KL_SEAL_PLAIN_HEAD], unsigned char wire[KL_SEAL_HEAD])
{
    if (seal->cipher) {
        encrypt(seal, plain, KL_SEAL_PLAIN_HEAD, wire);
        return;
    }
    memcpy(wire, plain, KL_SEAL_PLAIN_HEAD);
    sign(seal, plain, wire + KL_SEAL_PLAIN_HEAD);
}

bool kl_seal_open_head(struct kl_seal *seal, const unsigned char wire[KL_SEAL_HEAD],
                       unsigned char plain[KL_SEAL_PLAIN_HEAD])
{
    unsigned char tag[KL_SEAL_TAG];

    if (seal->cipher) return decrypt(seal, wire, KL_SEAL_PLAIN_HEAD, wire + KL_SEAL_PLAIN_HEAD, plain);
    memcpy(plain, wire, KL_SEAL_PLAIN_HEAD);
    sign(seal, plain, tag);
    return !sodium_memcmp(tag, wire + KL_SEAL_PLAIN_HEAD, KL_SEAL_TAG);
}

void kl_seal_record(struct kl_seal *seal, const void *data, size_t bytes, unsigned char *wire)
{
    encrypt(seal, data, bytes, wire);
}

bool kl_seal_open_record(struct kl_seal *seal, void *data, size_t bytes, const unsigned char tag[KL_SEAL_TAG])
{
    return decrypt(seal, data, bytes, tag, data);
}
