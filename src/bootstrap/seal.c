/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/seal.h"

#include "bootstrap/wire.h"

#include <sodium.h>

enum { NONCE = crypto_aead_chacha20poly1305_ietf_NPUBBYTES };

_Static_assert(KL_SEAL_BYTES == crypto_aead_chacha20poly1305_ietf_ABYTES, "the size of a tag");
_Static_assert(KL_KEY_BYTES == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "keys are used as they are");

static void number_to_nonce(uint64_t number, unsigned char nonce[NONCE])
{
    struct kl_writer w = kl_writer_on(nonce, NONCE);

    kl_put_u32(&w, 0);
    kl_put_u64(&w, number);
}

void kl_seal_close(struct kl_seal *seal, const void *from, size_t bytes, unsigned char *to)
{
    unsigned char nonce[NONCE];

    number_to_nonce(seal->number++, nonce);
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(to, to + bytes, NULL, from, bytes, NULL, 0, NULL, nonce,
                                                       seal->key.bytes);
}

bool kl_seal_open(struct kl_seal *seal, unsigned char *piece, size_t bytes)
{
    unsigned char nonce[NONCE];

    number_to_nonce(seal->number, nonce);
    if (crypto_aead_chacha20poly1305_ietf_decrypt_detached(piece, NULL, piece, bytes, piece + bytes, NULL, 0, nonce,
                                                           seal->key.bytes))
        return false;
    seal->number++;
    return true;
}
