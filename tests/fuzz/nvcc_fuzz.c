/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is translated or refused, and what is between its tokens stays. */
#include "compat/cuda/nvcc/translate.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t lines(const char *text, size_t bytes)
{
    size_t n = 0;

    for (size_t i = 0; i < bytes; i++) n += text[i] == '\n';
    return n;
}

/* What it says of errors is of no interest; what the fuzzer says is. */
static bool translate_quietly(const char *text, size_t bytes, struct text *out)
{
    int before = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
    bool good;

    (void)dup2(nowhere, STDERR_FILENO);
    good = translate(text, bytes, out);
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
    (void)close(nowhere);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text out = {0};

    if (translate_quietly((const char *)data, size, &out) && lines(out.at, out.bytes) < lines((const char *)data, size))
        abort();
    text_drop(&out);
    return 0;
}
