/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/jobid.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

void kl_jobid_print(const ncclUniqueId *id, char text[KL_JOBID_TEXT])
{
    for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; i++) {
        unsigned byte = (unsigned char)id->internal[i];
        text[2 * i] = digits[byte >> 4];
        text[2 * i + 1] = digits[byte & 15];
    }
    text[KL_JOBID_TEXT - 1] = 0;
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'F') c = (char)(c - 'A' + 'a');
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

int kl_jobid_parse(const char *text, ncclUniqueId *id)
{
    ncclUniqueId parsed;

    if (strlen(text) != KL_JOBID_TEXT - 1) return -1;
    for (int i = 0; i < NCCL_UNIQUE_ID_BYTES; i++) {
        int high = value_of(text[2 * i]), low = value_of(text[2 * i + 1]);
        if (high < 0 || low < 0) return -1;
        parsed.internal[i] = (char)(high << 4 | low);
    }
    *id = parsed;
    return 0;
}
