/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/frame.h"

#include "bootstrap/wire.h"

#include <stdlib.h>
#include <string.h>

void kl_frame_encode(const struct kl_frame_head *frame, unsigned char head[KL_FRAME_HEAD])
{
    struct kl_writer w = kl_writer_on(head, KL_FRAME_HEAD);

    kl_put_bytes(&w, "KF", 2);
    kl_put_u8(&w, KL_FRAME_VERSION);
    kl_put_u8(&w, (uint8_t)frame->type);
    kl_put_u32(&w, frame->tag);
    kl_put_u32(&w, frame->length);
}

static bool decode(const unsigned char head[KL_FRAME_HEAD], struct kl_frame_head *frame)
{
    struct kl_reader r = kl_reader_on(head + 3, KL_FRAME_HEAD - 3);
    struct kl_frame_head f = {.type = kl_get_u8(&r)};

    f.tag = kl_get_u32(&r);
    f.length = kl_get_u32(&r);
    if (memcmp(head, "KF", 2) || head[2] != KL_FRAME_VERSION) return false;
    if (f.type < KL_FRAME_DATA || f.type >= KL_FRAME_TYPES || f.length > KL_FRAME_MAX) return false;
    *frame = f;
    return true;
}

unsigned char *kl_assembler_room(struct kl_assembler *a, size_t *bytes)
{
    if (!a->frame) {
        *bytes = KL_FRAME_HEAD - a->have;
        return a->head + a->have;
    }
    size_t done = a->have - KL_FRAME_HEAD;
    *bytes = a->frame->head.length - done;
    return a->frame->body + done;
}

static ncclResult_t begin_body(struct kl_assembler *a, uint32_t limit)
{
    struct kl_frame_head frame;

    if (!decode(a->head, &frame) || frame.length > limit) return ncclRemoteError;
    a->frame = malloc(sizeof *a->frame + frame.length);
    if (!a->frame) return ncclSystemError;
    a->frame->next = NULL;
    a->frame->head = frame;
    return ncclSuccess;
}

ncclResult_t kl_assembler_filled(struct kl_assembler *a, size_t bytes, uint32_t limit, struct kl_frame **frame)
{
    a->have += bytes;
    *frame = NULL;
    if (!a->frame && a->have == KL_FRAME_HEAD) {
        ncclResult_t rc = begin_body(a, limit);
        if (rc) return rc;
    }
    if (a->frame && a->have == KL_FRAME_HEAD + (size_t)a->frame->head.length) {
        *frame = a->frame;
        a->frame = NULL;
        a->have = 0;
    }
    return ncclSuccess;
}

void kl_assembler_fini(struct kl_assembler *a)
{
    free(a->frame);
    *a = (struct kl_assembler){0};
}
