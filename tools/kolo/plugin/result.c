/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/result.h"

#include <stdarg.h>
#include <stdio.h>

bool kl_check_fails(struct kl_check_result *r, const char *format, ...)
{
    va_list args;

    if (r->verdict == KL_CHECK_FAILS) return false;
    r->verdict = KL_CHECK_FAILS;
    va_start(args, format);
    vsnprintf(r->figure, sizeof r->figure, format, args);
    va_end(args);
    return false;
}

void kl_check_skips(struct kl_check_result *r, const char *format, ...)
{
    va_list args;

    r->verdict = KL_CHECK_NOT_APPLICABLE;
    va_start(args, format);
    vsnprintf(r->figure, sizeof r->figure, format, args);
    va_end(args);
}

void kl_check_notes(struct kl_check_result *r, const char *format, ...)
{
    va_list args;

    if (r->verdict != KL_CHECK_OK) return;
    va_start(args, format);
    vsnprintf(r->figure, sizeof r->figure, format, args);
    va_end(args);
}
