/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is translated or refused, and the text between its tokens stays. */
#include "compat/cuda/nvcc/translate.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t lines(const char *text, size_t bytes)
{
    size_t n = 0;

    for (size_t i = 0; i < bytes; i++) n += text[i] == '\n';
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere; /* error messages are dropped */
    struct text out = {0};

    if (!nowhere) nowhere = fopen("/dev/null", "w");
    if (!nowhere) abort();
    struct translate_options options = {.report = nowhere};
    if (translate((const char *)data, size, &options, &out, nowhere) &&
        lines(out.at, out.bytes) < lines((const char *)data, size))
        abort();
    text_drop(&out);
    return 0;
}
