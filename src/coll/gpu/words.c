/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/words.h"

#include "coll/gpu/hold.h"

#include <stdlib.h>

enum { PAGE = 4096, WORDS = PAGE / sizeof(uint32_t) };

struct kl_gpu_words_page {
    _Atomic uint32_t *word;
    uint64_t at; /* as GPUs see them */
    struct kl_gpu_words_page *next;
};

/* Another thread may capture in a mode that forbids it; it is no part of any graph. */
static int pin(const struct kl_cuda_driver *driver, void *memory, uint64_t *at)
{
    int mode = KL_CU_CAPTURE_RELAXED;

    (void)driver->cuThreadExchangeStreamCaptureMode(&mode);
    int rc = driver->cuMemHostRegister(memory, PAGE, KL_CU_HOST_PORTABLE_MAPPED);
    if (!rc) rc = driver->cuMemHostGetDevicePointer(at, memory, 0);
    (void)driver->cuThreadExchangeStreamCaptureMode(&mode);
    return rc;
}

static ncclResult_t pin_page(struct kl_gpu_words_page *p, const struct kl_cuda_driver *driver)
{
    void *memory = aligned_alloc(PAGE, PAGE);

    if (!memory) return KL_NOMEM("words for graphs");
    int rc = pin(driver, memory, &p->at);
    if (rc) {
        free(memory);
        return KL_FAIL(ncclUnhandledCudaError, "words for graphs: cuMemHostRegister failed with %s (%d)",
                       kl_cuda_error_name(driver, rc), rc);
    }
    p->word = memory;
    for (size_t i = 0; i < WORDS; i++) kl_store_relaxed(&p->word[i], 0);
    return ncclSuccess;
}

static ncclResult_t add_page(struct kl_gpu_words *words, const struct kl_cuda_driver *driver)
{
    struct kl_gpu_words_page *p = calloc(1, sizeof *p);

    if (!p) return KL_NOMEM("words for graphs");
    ncclResult_t rc = pin_page(p, driver);
    if (rc) {
        free(p);
        return rc;
    }
    p->next = kl_load_relaxed(&words->pages);
    words->used = 0;
    kl_store_release(&words->pages, p); /* pairs with kl_gpu_words_release */
    return ncclSuccess;
}

ncclResult_t kl_gpu_words_take(struct kl_gpu_words *words, const struct kl_cuda_driver *driver, _Atomic uint32_t **word,
                               uint64_t *at)
{
    if (!kl_load_relaxed(&words->pages) || words->used == WORDS) KL_TRY(add_page(words, driver));
    const struct kl_gpu_words_page *p = kl_load_relaxed(&words->pages);
    *word = &p->word[words->used];
    *at = p->at + words->used++ * sizeof(uint32_t);
    return ncclSuccess;
}

void kl_gpu_words_release(struct kl_gpu_words *words)
{
    for (struct kl_gpu_words_page *p = kl_load_acquire(&words->pages); p; p = p->next) /* pairs with add_page */
        kl_gpu_hold(p->word, WORDS);
}

void kl_gpu_words_free(struct kl_gpu_words *words, const struct kl_cuda_driver *driver)
{
    for (struct kl_gpu_words_page *p = kl_load_relaxed(&words->pages), *next; p; p = next) {
        next = p->next;
        (void)driver->cuMemHostUnregister((void *)p->word);
        free((void *)p->word);
        free(p);
    }
    kl_store_relaxed(&words->pages, NULL);
}
