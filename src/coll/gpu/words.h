/* SPDX-License-Identifier: Apache-2.0 */
/**
 * words.h - words in pinned memory for which captured work of streams waits: each is 0 at first, set to 1, and set back.
 *
 * Ownership: words stay where they are until kl_gpu_words_free. Zeroed, there are none.
 * Errors:    no memory: ncclSystemError, ncclUnhandledCudaError.
 * Threads:   one at a time; kl_gpu_words_release any.
 */
#ifndef KL_COLL_GPU_WORDS_H
#define KL_COLL_GPU_WORDS_H

#include "base/atomic.h"
#include "device/cuda/context.h"

struct kl_gpu_words {
    _Atomic(struct kl_gpu_words_page *) pages; /* newest first */
    size_t used;                               /* words of the newest */
};

/** A new word, as the CPU and as GPUs see it. One of the driver's contexts is current. The thread may capture. */
ncclResult_t kl_gpu_words_take(struct kl_gpu_words *words, const struct kl_cuda_driver *driver, _Atomic uint32_t **word,
                               uint64_t *at);

/** Set all of them: no stream waits any longer. */
void kl_gpu_words_release(struct kl_gpu_words *words);

/** No stream uses them any more; one of the driver's contexts is current. */
void kl_gpu_words_free(struct kl_gpu_words *words, const struct kl_cuda_driver *driver);

#endif
