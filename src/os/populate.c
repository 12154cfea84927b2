/* SPDX-License-Identifier: Apache-2.0 */
#include "os/populate.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void kl_populate(void *at, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)at + page - 1) / page * page, end = ((uintptr_t)at + bytes) / page * page;
    const int saved = errno;

    if (end > first)
        madvise((void *)first, end - first, MADV_POPULATE_WRITE); /* failure is harmless: pages fault in later */
    errno = saved;
}
