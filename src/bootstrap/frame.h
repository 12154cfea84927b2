/* SPDX-License-Identifier: Apache-2.0 */
/**
 * frame.h - frames on a stream: a header of 12 bytes, then `length` bytes.
 *
 *      0       2         3      4          8             12
 *     +-------+---------+------+----------+-------------+---------------
 *     | "KF"  | version | type | tag      | length      | body ...
 *     +-------+---------+------+----------+-------------+---------------
 *
 * The assembler is fed from a stream in pieces of any size; it knows where the next bytes go, so that large bodies are
 * received in place. It does no I/O.
 */
#ifndef KL_BOOTSTRAP_FRAME_H
#define KL_BOOTSTRAP_FRAME_H

#include "include/nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KL_FRAME_HEAD    12
#define KL_FRAME_VERSION 1
#define KL_FRAME_MAX     (16u << 20) /* bytes of the longest body */

enum kl_frame_type {
    KL_FRAME_DATA = 1,  /* kl_bootstrap_send */
    KL_FRAME_STEP,      /* a step of a collective exchange */
    KL_FRAME_NOTICE,    /* somebody failed: record.h */
    KL_FRAME_BYE,       /* the sender leaves in good order */
    KL_FRAME_ANNOUNCE,  /* rank to root: record.h */
    KL_FRAME_INTRODUCE, /* root to rank: record.h */
    KL_FRAME_REFUSE,    /* root to rank: a notice, instead of the introduction */
    KL_FRAME_TYPES
};

struct kl_frame_head {
    enum kl_frame_type type;
    uint32_t tag;
    uint32_t length;
};

/** A frame with its body, allocated by the assembler. Freed with free(). */
struct kl_frame {
    struct kl_frame *next; /* for whoever owns it */
    struct kl_frame_head head;
    unsigned char body[];
};

void kl_frame_encode(const struct kl_frame_head *frame, unsigned char head[KL_FRAME_HEAD]);

/** Zeroed: at the start of a frame. */
struct kl_assembler {
    unsigned char head[KL_FRAME_HEAD];
    size_t have;            /* bytes of header and body so far */
    struct kl_frame *frame; /* NULL until the header is complete */
};

/** Where the next bytes of the stream go: at most `*bytes`, at least 1. */
unsigned char *kl_assembler_room(struct kl_assembler *a, size_t *bytes);

/**
 * `bytes` of the room have been filled. `*frame` becomes the completed frame, the caller's, or NULL if there is more
 * to come. A malformed header, or a body longer than `limit`: ncclRemoteError; no memory: ncclSystemError. Both silent.
 */
ncclResult_t kl_assembler_filled(struct kl_assembler *a, size_t bytes, uint32_t limit, struct kl_frame **frame);

/** Free what is half done. */
void kl_assembler_fini(struct kl_assembler *a);

#endif
