/* SPDX-License-Identifier: Apache-2.0 */
/** buffers.h - the memory of one operation on one rank: of any kind, at any offset, between guards that must not be
 * written. */
#ifndef KOLO_SOAK_BUFFERS_H
#define KOLO_SOAK_BUFFERS_H

#include "tests/soak/program.h"

struct soak_block {
    unsigned char *start, *data; /* start: the allocated memory; data: between the guards */
    size_t bytes;                /* of the data */
    int kind;
};

struct soak_buffers {
    struct soak_block block[2]; /* send buffer, receive buffer; in place: the second only */
    unsigned char *send, *recv; /* NULL where nothing is sent or received, now and then */
    uint64_t sum;               /* of the send buffer */
};

/** Memory for it, with the contribution of rank `me` of n in it. False: out of memory. `seed` draws kinds and
 * offsets. */
bool soak_buffers_make(struct soak_buffers *b, const struct soak_operation *o, int n, int me, uint64_t *seed);

/** Check it when the operation is done: the error in `text`; false: none. */
bool soak_buffers_wrong(const struct soak_buffers *b, const struct soak_operation *o, int n, int me, char *text,
                        size_t size);

void soak_buffers_free(struct soak_buffers *b);

#endif
