/* SPDX-License-Identifier: Apache-2.0 */
/* Any text of an asm statement becomes C++ with its braces in pairs. */
#include "compat/cuda/nvcc/ptx.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long open_braces(const char *text)
{
    long open = 0;
    bool quoted = false;

    for (; *text && open >= 0; text++) {
        if (quoted && *text == '\\')
            text++;
        else if (*text == '"')
            quoted = !quoted;
        else if (!quoted)
            open += (*text == '{') - (*text == '}');
    }
    return open;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = must_copy((const char *)data, size);
    struct text out = {0};

    (void)ptx_translate(text, 4, 1, &out);
    if (out.at && open_braces(out.at)) abort();
    text_drop(&out);
    free(text);
    return 0;
}
