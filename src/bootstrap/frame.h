/* SPDX-License-Identifier: Apache-2.0 */
/**
 * frame.h - frames on a stream: a head of 9 bytes, then `length` bytes.
 *
 *      0      1          5          9                 25
 *     +------+----------+----------+-----------------+---------- - - ------+-----------------+--- - -
 *     | type | tag      | length   | seal (16 bytes) | 16 KiB of the body  | seal (16 bytes) | ...
 *     +------+----------+----------+-----------------+---------- - - ------+-----------------+--- - -
 *      \______ sealed as one ______________________/  \______ sealed, the last one shorter ___/
 *
 * Everything is sealed (seal.h): the head by itself, so that no memory is allocated for an unauthenticated length, and
 * the body in pieces, so that large ones are sealed as they are sent, with memory for one piece.
 *
 * The assembler is fed from a stream in pieces of any size; it returns the place for the next bytes, so that large
 * bodies are received in place, and opened there. It does no I/O.
 */
#ifndef KL_BOOTSTRAP_FRAME_H
#define KL_BOOTSTRAP_FRAME_H

#include "bootstrap/seal.h"

#define KL_FRAME_HEAD  9
#define KL_FRAME_MAX   (16u << 20) /* bytes of the longest body */
#define KL_FRAME_PIECE (16u << 10) /* bytes of a body that are sealed as one */

#define KL_FRAME_SEALED_HEAD (KL_FRAME_HEAD + KL_SEAL_BYTES)

/** Bytes on the wire of a frame with a body of one piece: 1 to KL_FRAME_PIECE bytes. */
#define KL_FRAME_SEALED(length) (KL_FRAME_SEALED_HEAD + (length) + KL_SEAL_BYTES)

enum kl_frame_type {
    KL_FRAME_DATA = 1,       /* kl_bootstrap_send */
    KL_FRAME_STEP,           /* a step of a collective exchange */
    KL_FRAME_NOTICE,         /* a failure: record.h */
    KL_FRAME_BYE,            /* the sender leaves in good order */
    KL_FRAME_ANNOUNCE,       /* rank to root: record.h */
    KL_FRAME_INTRODUCE,      /* root to rank: record.h */
    KL_FRAME_REFUSE,         /* root to rank: a notice, instead of the introduction */
    KL_FRAME_STATUS_QUERY,   /* a status query: status_query.h */
    KL_FRAME_STATUS_REPLIES, /* answers to a query, on their way back */
    KL_FRAME_CONTROL,        /* a control message: kl_bootstrap_control_send */
    KL_FRAME_PACKET,         /* kl_bootstrap_packet_send */
    KL_FRAME_TYPES
};

struct kl_frame_head {
    enum kl_frame_type type;
    uint32_t tag;
    uint32_t length;
};

/** A frame with its body, allocated by the assembler. Freed with free(). */
struct kl_frame {
    struct kl_frame *next; /* for the current owner's list */
    struct kl_frame_head head;
    unsigned char body[];
};

/* ---- writing: first the head, then the pieces ---- */

void kl_frame_seal_head(struct kl_seal *seal, const struct kl_frame_head *head, unsigned char to[KL_FRAME_SEALED_HEAD]);

/**
 * Seal the next piece of a body, of which `left` bytes are left; `to` has room for KL_SEAL_BYTES more than the piece.
 * Returns the number of body bytes in it.
 */
size_t kl_frame_seal_piece(struct kl_seal *seal, const void *body, size_t left, unsigned char *to);

/* ---- reading ---- */

/** At the start of a frame: zeroed but for the seal. */
struct kl_assembler {
    struct kl_seal seal;
    unsigned char head[KL_FRAME_SEALED_HEAD];
    size_t have;            /* bytes received of the current piece */
    size_t opened;          /* body bytes opened */
    struct kl_frame *frame; /* NULL until the head is complete */
};

/** Errors of a stream. */
enum kl_frame_fault {
    KL_FRAME_SOUND,
    KL_FRAME_ALTERED,  /* changed on the way: opening fails */
    KL_FRAME_NONSENSE, /* sealed by the other end, but not a frame, or too long */
    KL_FRAME_NO_MEMORY,
};

/** Where the next bytes of the stream go: at most `*bytes`, at least 1. */
unsigned char *kl_assembler_room(struct kl_assembler *a, size_t *bytes);

/**
 * `bytes` of the room have been filled. `*frame` becomes the completed frame, the caller's, or NULL if there is more
 * to come. A body longer than `limit` is KL_FRAME_NONSENSE. After a fault the stream is of no further use.
 */
enum kl_frame_fault kl_assembler_filled(struct kl_assembler *a, size_t bytes, uint32_t limit, struct kl_frame **frame);

/** Free an incomplete frame, and wipe the key. */
void kl_assembler_fini(struct kl_assembler *a);

#endif
