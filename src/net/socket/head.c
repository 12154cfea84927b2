/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/head.h"

#include "bootstrap/wire.h"

void kl_head_encode(const struct kl_head *head, unsigned char plain[KL_CIPHER_PLAIN_HEAD])
{
    struct kl_writer w = kl_writer_on(plain, KL_CIPHER_PLAIN_HEAD);

    kl_put_u64(&w, head->bytes);
    kl_put_u32(&w, head->tag);
    kl_put_u32(&w, head->kind);
    kl_put_u64(&w, head->sequence);
}

bool kl_head_decode(const unsigned char plain[KL_CIPHER_PLAIN_HEAD], struct kl_head *head)
{
    struct kl_reader r = kl_reader_on(plain, KL_CIPHER_PLAIN_HEAD);

    head->bytes = kl_get_u64(&r);
    head->tag = kl_get_u32(&r);
    head->kind = kl_get_u32(&r);
    head->sequence = kl_get_u64(&r);
    return head->kind >= KL_HEAD_MESSAGE && head->kind < KL_HEAD_KINDS && head->bytes <= KL_HEAD_MAX_BYTES;
}
