/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/check.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK = 12 /* frames */, TELL_MS = 10000 };

const struct kl_check kl_checks[KL_CHECKS] = {
    {1, "symbols", "A table has a printable name, and every function that is always needed, in the library itself.",
     kl_check_symbols},
    {2, "cycles", "A plugin is initialised and finalized for any number of communicators, also at once.",
     kl_check_cycles},
    {3, "properties",
     "Properties have a stable name, host memory, a speed, and limits in (0, 1 TiB], and no byte more than their "
     "version.",
     kl_check_properties},
    {4, "connecting",
     "listen, connect and accept never block: a communicator that is not there yet is NULL; 20 ms at most, 1 ms for 99 "
     "of 100.",
     kl_check_connecting},
    {5, "handle",
     "A handle has 128 bytes, and is valid wherever it is copied; connect may be called as often as needed.",
     kl_check_handle},
    {6, "calls", "isend, irecv and test never block, also while the peer does nothing, or is stopped.", kl_check_calls},
    {7, "order",
     "32 requests may be outstanding; messages of a tag match receives in their order, and messages of "
     "one receive match by their tags.",
     kl_check_order},
    {8, "sizes",
     "A receive may be larger than its message, up to 1 GiB; test writes the size of each when it is done, and not "
     "before; "
     "one of more than 2 GiB is refused.",
     kl_check_sizes},
    {9, "buffers", "Only bytes of the message are written; a sender's buffer may change once its request is done.",
     kl_check_buffers},
    {10, "leaks", "Requests are reused: a long run needs no more memory or descriptors than a short one.",
     kl_check_leaks},
    {11, "closing", "Communicators may be closed in any order, also with requests outstanding.", kl_check_closing},
    {12, "memory", "Any host memory can be registered, any number of times; a NULL handle is passed back.",
     kl_check_memory},
    {13, "threads",
     "Different communicators may be used by different threads at once, one by threads in turn, and memory registered "
     "meanwhile.",
     kl_check_threads},
    {14, "errors",
     "A peer that dies is an error of each outstanding request, and of connect, in a bounded time; then close returns.",
     kl_check_errors},
    {15, "environment", "A plugin leaves the environment of the process as it is, and goes on after a fork.",
     kl_check_environment},
    {16, "remains", "After finalize no thread, signal handler or descriptor of the plugin remains.", kl_check_remains},
    {17, "collnet",
     "All members connect, or connect ends; operations that reduceSupport names have the right results at each of "
     "them, in "
     "their order.",
     kl_check_collnet},
    {18, "tuner",
     "A tuner leaves cells of -1, and memory beyond the table, as they are, and some candidate; it answers for any "
     "function.",
     kl_check_tuner},
    {19, "profiler",
     "A profiler takes events without parents, children of stopped parents, and of other processes, and more events "
     "than it "
     "keeps.",
     kl_check_profiler},
    {20, "env",
     "getEnv returns NULL for an unset variable, and a text that stays until the next call with its name, in any "
     "thread.",
     kl_check_env},
    {21, "rma",
     "A signal comes when its data, and those before it, are there; each put gives a request, however many are "
     "outstanding.",
     kl_check_rma},
};

/* ---- processes ---- */

static void describe_end(int status, struct kl_check_result *r)
{
    char call[KL_CHECK_CALL];

    snprintf(call, sizeof call, "%s", *r->call ? r->call : "none");
    if (WIFSIGNALED(status))
        kl_check_fails(r, "the process was killed by signal %d (%s); call of the plugin: %s", WTERMSIG(status),
                       strsignal(WTERMSIG(status)), call);
    else if (WEXITSTATUS(status))
        kl_check_fails(r, "the process ended with status %d; call of the plugin: %s", WEXITSTATUS(status), call);
}

static struct kl_check_result *shared_result; /* of this process's check */

/* Names the frames of the thread that got the signal. */
static void write_stack(int signal)
{
    char *to = shared_result->stack;
    void *frame[STACK];
    const int n = backtrace(frame, STACK);
    size_t used = 0;
    Dl_info own;

    (void)signal;
    const int last = n > 0 && dladdr(frame[0], &own) ? n : 0;
    for (int i = 2; i < last && used < sizeof shared_result->stack;
         i++) { /* behind this function and the kernel's frame */
        Dl_info in;
        if (!dladdr(frame[i], &in)) continue;
        if (in.dli_fbase == own.dli_fbase) break; /* the call's own caller, and those above */
        const char *file = strrchr(in.dli_fname, '/');
        used += (size_t)snprintf(to + used, sizeof shared_result->stack - used, "%s%s (%s+%#zx)", used ? " < " : "",
                                 in.dli_sname ? in.dli_sname : "?", file ? file + 1 : in.dli_fname,
                                 (size_t)((char *)frame[i] - (char *)in.dli_fbase));
    }
    kl_store_release(&shared_result->has_told, 1);
}

/* Let the thread that is in a call say where it is. One that keeps signals away, or that the kernel keeps, says nothing. */
static void ask_for_stack(pid_t pid, const struct kl_check_result *r)
{
    const uint64_t deadline = kl_deadline_in_ms(TELL_MS);
    const struct timespec pause = {.tv_nsec = 2000000};

    if (syscall(SYS_tgkill, pid, r->thread ? r->thread : pid, SIGURG)) return;
    while (!kl_load_acquire(&r->has_told) && !kl_deadline_passed(deadline)) nanosleep(&pause, NULL);
}

/* False: it has not ended by then, and is killed. */
static bool await(pid_t pid, int seconds, const struct kl_check_result *r, int *status)
{
    const uint64_t deadline = kl_deadline_in_ms((uint64_t)seconds * 1000);
    const struct timespec pause = {.tv_nsec = 2000000};

    while (!waitpid(pid, status, WNOHANG)) {
        if (kl_deadline_passed(deadline)) {
            ask_for_stack(pid, r);
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL);
            waitpid(pid, status, 0);
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

static void run_here(const struct kl_check *check, const char *file, struct kl_check_result *shared)
{
    const struct sigaction tell = {.sa_handler = write_stack};
    void *frame[1];

    shared_result = shared;
    (void)backtrace(frame, 1); /* loads its library now */
    sigaction(SIGURG, &tell, NULL);
    setpgid(0, 0);
    kl_error_quiet(1);
    check->run(file, shared);
    fflush(NULL);
    _exit(0);
}

void kl_check_run(const struct kl_check *check, const char *file, int seconds, struct kl_check_result *result)
{
    struct kl_check_result *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;

    *result = (struct kl_check_result){.verdict = KL_CHECK_OK};
    if (shared == MAP_FAILED) {
        kl_check_fails(result, "no memory");
        return;
    }
    fflush(NULL);
    const pid_t pid = fork();
    if (!pid) run_here(check, file, shared);
    if (pid < 0)
        kl_check_fails(shared, "cannot start a process: %s", strerror(errno));
    else if (!await(pid, seconds, shared, &status))
        kl_check_fails(shared, "it has not ended in %d s; call of the plugin: %s%s%s", seconds,
                       *shared->call ? shared->call : "none", *shared->stack ? "; in " : "", shared->stack);
    else
        describe_end(status, shared);
    *result = *shared;
    munmap(shared, sizeof *shared);
}
