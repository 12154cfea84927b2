/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "base/log.h"
#include "base/threadtext.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

_Static_assert((int)KL_ERROR_TEXT == (int)KL_THREAD_TEXT, "a failure's text is one of a thread's");

static _Thread_local int quiet_failures;
static _Thread_local bool apart;

/* Last failure of any thread. */
static struct {
    pthread_mutex_t lock;
    char text[KL_ERROR_TEXT]; /* protected by the lock */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const result_texts[] = {
    [ncclSuccess] = "no error",
    [ncclUnhandledCudaError] = "unhandled device error (run with NCCL_DEBUG=INFO for details)",
    [ncclSystemError] = "unhandled system error (run with NCCL_DEBUG=INFO for details)",
    [ncclInternalError] = "internal error, or the communicator was aborted",
    [ncclInvalidArgument] = "invalid argument (run with NCCL_DEBUG=WARN for details)",
    [ncclInvalidUsage] = "invalid usage (run with NCCL_DEBUG=WARN for details)",
    [ncclRemoteError] = "remote process exited or there was a network error",
    [ncclInProgress] = "operation in progress",
    [ncclTimeout] = "a kernel waited for too long",
};

const char *kl_result_text(ncclResult_t code)
{
    size_t i = (size_t)code;

    return i < sizeof result_texts / sizeof result_texts[0] ? result_texts[i] : "unknown result code";
}

/* ---- the process's last failure, also in a forked child ---- */

static void lock_process(void)
{
    pthread_mutex_lock(&process.lock);
}

static void unlock_process(void)
{
    pthread_mutex_unlock(&process.lock);
}

/* Installed before all other fork handlers, so that fork takes this lock last: other code takes it while holding locks
 * of its own. */
__attribute__((constructor(101))) static void install_fork_handlers(void)
{
    pthread_atfork(lock_process, unlock_process, unlock_process);
}

static void keep_for_all(const char *text)
{
    lock_process();
    snprintf(process.text, sizeof process.text, "%s", text);
    unlock_process();
}

void kl_error_apart(bool is_apart)
{
    apart = is_apart;
}

const char *kl_error_of_process(void)
{
    char *own = kl_thread_text(KL_TEXT_ERROR);

    if (!own) return kl_error_text();
    lock_process();
    snprintf(own, KL_ERROR_TEXT, "%s", process.text);
    unlock_process();
    return own;
}

/* ---- the calling thread's last failure ---- */

static void keep(const char *text)
{
    char *last = kl_thread_text(KL_TEXT_ERROR);

    if (!apart && !quiet_failures) keep_for_all(text);
    if (last && last != text) snprintf(last, KL_ERROR_TEXT, "%s", text);
}

static void record(const char *file, int line, const char *text)
{
    keep(text);
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

const char *kl_errno_remedy(int err)
{
    static _Thread_local char files[64];
    struct rlimit limit;

    if (err == EMFILE && getrlimit(RLIMIT_NOFILE, &limit)) return "; raise `ulimit -n`";
    if (err == EMFILE) {
        snprintf(files, sizeof files, "; raise `ulimit -n` (it is %llu)", (unsigned long long)limit.rlim_cur);
        return files;
    }
    if (err == ENFILE) return "; the system has too many files open: raise fs.file-max";
    if (err == ENOBUFS) return "; the system has no memory for sockets";
    return "";
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
        snprintf(text + used, sizeof text - (size_t)used, ": %s%s", strerror_r(saved, reason, sizeof reason),
                 kl_errno_remedy(saved));
    record(file, line, text);
    errno = saved;
}

const char *kl_error_text(void)
{
    const char *last = kl_thread_text(KL_TEXT_ERROR);

    return last ? last : "there is no memory for the text of the last failure";
}

void kl_error_adopt(const char *text)
{
    keep(text);
}

int kl_error_quiet(int quiet)
{
    int before = quiet_failures;

    quiet_failures = quiet;
    return before;
}
