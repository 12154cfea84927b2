/* SPDX-License-Identifier: Apache-2.0 */
/**
 * lines.h - the protocols LL and LL128 over a fifo: data in lines that carry their own flag.
 *
 * With Simple the receiver sees a step when all of it is written. Here it sees every line of 64 bytes separately, and
 * reads the first ones while the last ones are written: less waiting, for an eighth more bytes.
 *
 *     step's line       ready, bytes, ..., first KL_FIFO_INLINE bytes
 *     flagged lines     56 bytes, flag   56 bytes, flag   ...              flag = step + 1: no value is ever used twice
 *
 * LL stores the data of a line, then its flag. LL128 stores a line with one store of 64 bytes, as NCCL does with 128 bytes
 * over NVLink, if the CPU has such a store and a test finds it atomic; else it stores like LL. The receiver reads both the
 * same way.
 *
 * Memory order: a flag is stored with release after its data (or together with them), loaded with acquire before them.
 * Threads:      as fifo.h. kl_lines_wide_works may be called by any thread.
 * Source:       the graph specification, 13.
 */
#ifndef KL_TRANSPORT_LINES_H
#define KL_TRANSPORT_LINES_H

#include "transport/fifo.h"

enum { KL_LINES_DATA = 56, KL_LINES_PER_STEP = 128 };

/** Bytes that a step carries, and the room that its flagged lines take in a fifo. */
#define KL_LINES_BYTES    (KL_FIFO_INLINE + (size_t)KL_LINES_PER_STEP * KL_LINES_DATA)
#define KL_LINES_LL_BYTES (KL_LINES_PER_STEP * 64u)

/** Are 64-byte stores atomic on this machine? Tested once, which takes about a millisecond. */
bool kl_lines_wide_works(void);

/** Send `bytes` (at most KL_LINES_BYTES) as one step; `wide` as LL128 does. Only after kl_fifo_can_send. */
void kl_lines_publish(struct kl_fifo_tx *tx, const void *data, size_t bytes, bool wide);

/** Is all of the next step here? */
bool kl_lines_ready(struct kl_fifo_rx *rx);

/** The next step's data, once ready: in place, or gathered in `scratch` of KL_LINES_BYTES. NULL: the sender claims more bytes
 * than lines hold, or sent by the protocol Simple. Then kl_fifo_release. */
const void *kl_lines_open(struct kl_fifo_rx *rx, void *scratch, size_t *bytes);

#endif
