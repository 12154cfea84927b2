/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/frame.h"

#include "bootstrap/wire.h"

#include <stdlib.h>

/* ---- writing ---- */

static size_t piece_of(size_t left)
{
    return left < KL_FRAME_PIECE ? left : KL_FRAME_PIECE;
}

void kl_frame_seal_head(struct kl_seal *seal, const struct kl_frame_head *head, unsigned char to[KL_FRAME_SEALED_HEAD])
{
    struct kl_writer w = kl_writer_on(to, KL_FRAME_HEAD);

    kl_put_u8(&w, (uint8_t)head->type);
    kl_put_u32(&w, head->tag);
    kl_put_u32(&w, head->length);
    kl_seal_close(seal, to, KL_FRAME_HEAD, to);
}

size_t kl_frame_seal_piece(struct kl_seal *seal, const void *body, size_t left, unsigned char *to)
{
    kl_seal_close(seal, body, piece_of(left), to);
    return piece_of(left);
}

/* ---- reading ---- */

static bool decode(const unsigned char head[KL_FRAME_HEAD], struct kl_frame_head *frame)
{
    struct kl_reader r = kl_reader_on(head, KL_FRAME_HEAD);
    struct kl_frame_head f = {.type = kl_get_u8(&r)};

    f.tag = kl_get_u32(&r);
    f.length = kl_get_u32(&r);
    if (f.type < KL_FRAME_DATA || f.type >= KL_FRAME_TYPES || f.length > KL_FRAME_MAX) return false;
    *frame = f;
    return true;
}

/* Plaintext bytes of the next sealed piece. */
static size_t awaited(const struct kl_assembler *a)
{
    return a->frame ? piece_of(a->frame->head.length - a->opened) : KL_FRAME_HEAD;
}

/* A piece is received with its seal, which overlaps the next piece's place. */
unsigned char *kl_assembler_room(struct kl_assembler *a, size_t *bytes)
{
    *bytes = awaited(a) + KL_SEAL_BYTES - a->have;
    return (a->frame ? a->frame->body + a->opened : a->head) + a->have;
}

static enum kl_frame_fault begin_body(struct kl_assembler *a, uint32_t limit)
{
    struct kl_frame_head frame;

    if (!decode(a->head, &frame) || frame.length > limit) return KL_FRAME_NONSENSE;
    a->frame = malloc(sizeof *a->frame + frame.length + KL_SEAL_BYTES);
    if (!a->frame) return KL_FRAME_NO_MEMORY;
    a->frame->next = NULL;
    a->frame->head = frame;
    a->opened = 0;
    return KL_FRAME_SOUND;
}

enum kl_frame_fault kl_assembler_filled(struct kl_assembler *a, size_t bytes, uint32_t limit, struct kl_frame **frame)
{
    enum kl_frame_fault fault = KL_FRAME_SOUND;
    size_t piece = awaited(a);

    a->have += bytes;
    *frame = NULL;
    if (a->have < piece + KL_SEAL_BYTES) return KL_FRAME_SOUND;
    if (!kl_seal_open(&a->seal, a->frame ? a->frame->body + a->opened : a->head, piece)) return KL_FRAME_ALTERED;
    a->have = 0;
    if (a->frame)
        a->opened += piece;
    else
        fault = begin_body(a, limit);
    if (fault || a->opened < a->frame->head.length) return fault;
    *frame = a->frame;
    a->frame = NULL;
    return KL_FRAME_SOUND;
}

void kl_assembler_fini(struct kl_assembler *a)
{
    free(a->frame);
    kl_key_wipe(&a->seal.key);
    *a = (struct kl_assembler){0};
}
