/* SPDX-License-Identifier: Apache-2.0 */
#include "base/filelimit.h"

#include "tests/kolo_test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 4096 };

/* Run in a child, because a lowered limit stays; 0: passed. */
static void expect_status(int (*run)(FILE *file), int want)
{
    FILE *file = tmpfile();
    int status;

    assert_non_null(file);
    pid_t child = fork();
    if (!child) {
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){LIMIT, LIMIT});
        _exit(run(file));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), want);
    fclose(file);
}

static int sizes(FILE *file)
{
    (void)file;
    return !kl_filelimit_allows(LIMIT) || kl_filelimit_allows(LIMIT + 1) || errno != EFBIG;
}

static int fill(FILE *file)
{
    static const char page[LIMIT];
    struct kl_filelimit_guard guard;

    kl_filelimit_begin(&guard);
    bool first = fwrite(page, 1, sizeof page, file) == sizeof page && !fflush(file);
    bool second = fwrite(page, 1, sizeof page, file) == sizeof page && !fflush(file);
    bool too_large = errno == EFBIG;
    kl_filelimit_end(&guard);
    return !first || second || !too_large || errno != EFBIG;
}

/* After the guard ends, signal mask and handlers are as before. */
static int write_on(FILE *file)
{
    if (fill(file)) return 1;
    return write(fileno(file), "x", 1) != 1; /* SIGXFSZ kills the child here */
}

/* A SIGXFSZ that the program had blocked and that was pending before is still pending. */
static int keep(FILE *file)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGXFSZ);
    if (fill(file)) return 1;
    return sigpending(&set) || sigismember(&set, SIGXFSZ) != 1;
}

static void sizes_are_known(void **state)
{
    (void)state;
    assert_true(kl_filelimit_allows(LIMIT));
    expect_status(sizes, 0);
}

static void a_write_beyond_fails(void **state)
{
    (void)state;
    expect_status(fill, 0);
    expect_status(write_on, 128 + SIGXFSZ);
    expect_status(keep, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_known),
        cmocka_unit_test(a_write_beyond_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
