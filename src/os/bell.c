/* SPDX-License-Identifier: Apache-2.0 */
#include "os/bell.h"

#include "os/files.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int kl_bell_open(void)
{
    int bell;

    do bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    while (bell < 0 && kl_files_make_room(errno));
    return bell;
}

void kl_bell_ring(int bell)
{
    const uint64_t one = 1;
    int saved = errno;
    ssize_t rung = write(bell, &one, sizeof one); /* fails only after 2^64 - 2 writes without a read */

    (void)rung;
    errno = saved;
}

void kl_bell_hear(int bell)
{
    uint64_t rings;
    ssize_t heard = read(bell, &rings, sizeof rings);

    (void)heard;
}
