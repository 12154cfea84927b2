/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/cipher.h"

#include <string.h>

enum { NONCE = 12, RECORDS_PER_KEY = 1 << 20 };
_Static_assert(NONCE == crypto_aead_aes256gcm_NPUBBYTES, "of the cipher");
_Static_assert(NONCE == crypto_aead_chacha20poly1305_ietf_NPUBBYTES, "of the cipher");
_Static_assert(KL_CIPHER_TAG == crypto_aead_aes256gcm_ABYTES, "of the cipher");
_Static_assert(KL_CIPHER_TAG == crypto_aead_chacha20poly1305_ietf_ABYTES, "of the cipher");
_Static_assert(KL_CIPHER_TAG == crypto_shorthash_siphashx24_BYTES, "of the MAC");

unsigned kl_cipher_available(void)
{
    return KL_CIPHER_CHACHA20 | (crypto_aead_aes256gcm_is_available() ? KL_CIPHER_AES256 : 0u);
}

enum kl_cipher kl_cipher_choose(unsigned ciphers)
{
    return ciphers & KL_CIPHER_AES256 ? KL_CIPHER_AES256 : KL_CIPHER_CHACHA20;
}

static void use_key(struct kl_cipher_state *state)
{
    if (state->cipher == KL_CIPHER_AES256) crypto_aead_aes256gcm_beforenm(&state->aes, state->key.bytes);
}

void kl_cipher_init(struct kl_cipher_state *state, enum kl_cipher cipher, const struct kl_key *session,
                    const char *direction)
{
    state->cipher = cipher;
    state->count = 0;
    state->key = kl_key_derive(session, direction, NULL, 0);
    use_key(state);
}

/* The nonce of the next record; changes the key when due. */
static void next(struct kl_cipher_state *state, unsigned char nonce[NONCE])
{
    uint64_t n = state->count++;

    if (n && n % RECORDS_PER_KEY == 0) {
        state->key = kl_key_derive(&state->key, "kolo net next", NULL, 0);
        use_key(state);
    }
    memset(nonce, 0, NONCE);
    for (int i = 0; i < 8; i++) nonce[i] = (unsigned char)(n >> (8 * i));
}

static void encrypt(struct kl_cipher_state *state, const unsigned char *plain, size_t bytes, unsigned char *wire)
{
    unsigned char nonce[NONCE];

    next(state, nonce);
    if (state->cipher == KL_CIPHER_AES256)
        crypto_aead_aes256gcm_encrypt_detached_afternm(wire, wire + bytes, NULL, plain, bytes, NULL, 0, NULL, nonce,
                                                       &state->aes);
    else
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(wire, wire + bytes, NULL, plain, bytes, NULL, 0, NULL, nonce,
                                                           state->key.bytes);
}

static bool decrypt(struct kl_cipher_state *state, const unsigned char *wire, size_t bytes, const unsigned char *tag,
                    unsigned char *plain)
{
    unsigned char nonce[NONCE];

    next(state, nonce);
    if (state->cipher == KL_CIPHER_AES256)
        return !crypto_aead_aes256gcm_decrypt_detached_afternm(plain, NULL, wire, bytes, tag, NULL, 0, nonce,
                                                               &state->aes);
    return !crypto_aead_chacha20poly1305_ietf_decrypt_detached(plain, NULL, wire, bytes, tag, NULL, 0, nonce,
                                                               state->key.bytes);
}

/* The first 16 bytes of the key are SipHash's. */
static void sign(const struct kl_cipher_state *state, const unsigned char *plain, unsigned char tag[KL_CIPHER_TAG])
{
    crypto_shorthash_siphashx24(tag, plain, KL_CIPHER_PLAIN_HEAD, state->key.bytes);
}

void kl_cipher_seal_head(struct kl_cipher_state *state, const unsigned char plain[KL_CIPHER_PLAIN_HEAD],
                         unsigned char wire[KL_CIPHER_SEALED_HEAD])
{
    if (state->cipher) {
        encrypt(state, plain, KL_CIPHER_PLAIN_HEAD, wire);
        return;
    }
    memcpy(wire, plain, KL_CIPHER_PLAIN_HEAD);
    sign(state, plain, wire + KL_CIPHER_PLAIN_HEAD);
}

bool kl_cipher_open_head(struct kl_cipher_state *state, const unsigned char wire[KL_CIPHER_SEALED_HEAD],
                         unsigned char plain[KL_CIPHER_PLAIN_HEAD])
{
    unsigned char tag[KL_CIPHER_TAG];

    if (state->cipher) return decrypt(state, wire, KL_CIPHER_PLAIN_HEAD, wire + KL_CIPHER_PLAIN_HEAD, plain);
    memcpy(plain, wire, KL_CIPHER_PLAIN_HEAD);
    sign(state, plain, tag);
    return !sodium_memcmp(tag, wire + KL_CIPHER_PLAIN_HEAD, KL_CIPHER_TAG);
}

void kl_cipher_seal_record(struct kl_cipher_state *state, const void *data, size_t bytes, unsigned char *wire)
{
    encrypt(state, data, bytes, wire);
}

bool kl_cipher_open_record(struct kl_cipher_state *state, void *data, size_t bytes,
                           const unsigned char tag[KL_CIPHER_TAG])
{
    return decrypt(state, data, bytes, tag, data);
}
