/* SPDX-License-Identifier: Apache-2.0 */
#include "os/peer_memory.h"

#include <errno.h>
#include <sys/uio.h>

bool kl_peer_memory_read(int32_t pid, void *to, uint64_t address, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        struct iovec local = {(char *)to + done, bytes - done};
        struct iovec remote = {(void *)(uintptr_t)(address + done), bytes - done}; /* never followed here */
        ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
        if (got < 0 && errno == EINTR) continue;
        if (!got) errno = EFAULT;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}
