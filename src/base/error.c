/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_text[KL_ERROR_TEXT];
static _Thread_local int quiet_failures;

static const char *const result_texts[] = {
    [ncclSuccess] = "no error",
    [ncclUnhandledCudaError] = "unhandled device error (run with NCCL_DEBUG=INFO for details)",
    [ncclSystemError] = "unhandled system error (run with NCCL_DEBUG=INFO for details)",
    [ncclInternalError] = "internal error, or the communicator was aborted",
    [ncclInvalidArgument] = "invalid argument (run with NCCL_DEBUG=WARN for details)",
    [ncclInvalidUsage] = "invalid usage (run with NCCL_DEBUG=WARN for details)",
    [ncclRemoteError] = "remote process exited or there was a network error",
    [ncclInProgress] = "operation in progress",
};

const char *kl_result_text(ncclResult_t code)
{
    size_t i = (size_t)code;

    return i < sizeof result_texts / sizeof result_texts[0] ? result_texts[i] : "unknown result code";
}

static void record(const char *file, int line, const char *text)
{
    snprintf(last_text, sizeof last_text, "%s", text);
    kl_log(quiet_failures ? KL_LOG_INFO : KL_LOG_WARN, KL_LOG_ALL, file, line, "%s", text);
}

void kl_fail(const char *file, int line, const char *fmt, ...)
{
    char text[KL_ERROR_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    record(file, line, text);
}

void kl_fail_errno(const char *file, int line, const char *fmt, ...)
{
    int saved = errno;
    char text[KL_ERROR_TEXT], reason[128];
    va_list ap;

    va_start(ap, fmt);
    int used = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (used >= 0 && (size_t)used < sizeof text)
        snprintf(text + used, sizeof text - (size_t)used, ": %s", strerror_r(saved, reason, sizeof reason));
    record(file, line, text);
    errno = saved;
}

const char *kl_error_text(void)
{
    return last_text;
}

void kl_error_adopt(const char *text)
{
    if (text != last_text) snprintf(last_text, sizeof last_text, "%s", text);
}

int kl_error_quiet(int quiet)
{
    int before = quiet_failures;

    quiet_failures = quiet;
    return before;
}
