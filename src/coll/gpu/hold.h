/* SPDX-License-Identifier: Apache-2.0 */
/**
 * hold.h - words of captured work of failed communicators, which stay 1: replays that are in flight end, however many.
 *
 * A replay waits for a word to be 1 and sets it back, so that setting it once lets one replay pass. From the first call
 * on the process's event loop sets all of these words again every few milliseconds.
 *
 * Ownership: the words stay where they are until the process ends, as those of failed communicators do.
 * Threads:   any.
 */
#ifndef KL_COLL_GPU_HOLD_H
#define KL_COLL_GPU_HOLD_H

#include "base/atomic.h"

#include <stddef.h>
#include <stdint.h>

/** Set `n` words to 1, and again until the process ends. Later calls for the same first word may have more. */
void kl_gpu_hold(_Atomic uint32_t *word, size_t n);

#endif
