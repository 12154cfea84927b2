/* SPDX-License-Identifier: Apache-2.0 */
/** place.h - where a device is on PCI, as text: "0000:3b:00.0", or without the domain, or the function. */
#ifndef KL_CUDA_PLACE_H
#define KL_CUDA_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

/** Domain (0 if the text has none), bus and device. False: the text is no such place. Threads: any. */
static inline bool kl_cuda_read_place(const char *text, unsigned place[3])
{
    unsigned field[3] = {0};
    int n = 0;

    for (bool more = true; more && n < 3; n++) {
        char *end;
        unsigned long value = strtoul(text, &end, 16);
        if (end == text || value > UINT_MAX) return false;
        field[n] = (unsigned)value;
        more = *end == ':';
        text = end + 1;
    }
    if (n < 2) return false;
    place[0] = n == 3 ? field[0] : 0;
    place[1] = field[n - 2];
    place[2] = field[n - 1];
    return true;
}

#endif
