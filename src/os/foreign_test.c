/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing the memory of another process, and only of the one that is meant. */
#include "os/foreign.h"

#include "base/clock.h"
#include "tests/kolo_test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 3 << 20 };

static uint64_t mark = 0x1234567890abcdefu;
static unsigned char *data;

/* A process with the same addresses and other contents, which waits to be killed. */
static pid_t start(void)
{
    int ready[2];
    char byte;

    assert_int_equal(pipe(ready), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        memset(data, 7, BYTES);
        if (write(ready[1], "", 1) == 1) pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static uint64_t address(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

static void what_it_has_is_read(void **state)
{
    unsigned char *to = calloc(1, BYTES);
    pid_t pid = start();
    struct kl_foreign child = kl_foreign_self(&mark);
    struct kl_foreign_seen seen = {0};

    (void)state;
    child.pid = pid;
    if (!kl_foreign_read(&child, &seen, to, address(data), BYTES)) {
        stop(pid);
        free(to);
        printf("skipped what_it_has_is_read: process_vm_readv is not allowed here\n");
        return;
    }
    for (size_t i = 0; i < BYTES; i++) assert_int_equal(to[i], 7);
    assert_false(kl_foreign_read(&child, &seen, to, address(data) + BYTES - 1, 2)); /* beyond the end of its memory */
    child.mark++;
    assert_false(kl_foreign_read(&child, &seen, to, address(data), BYTES)); /* another process */
    child.mark--;
    child.mark_at = address(data) + BYTES;
    assert_false(kl_foreign_read(&child, &seen, to, address(data), BYTES));
    stop(pid);
    child.mark_at = address(&mark);
    assert_false(kl_foreign_read(&child, &seen, to, address(data), BYTES)); /* gone */
    free(to);
}

static void what_it_has_is_written(void **state)
{
    static const unsigned char from[] = {1, 2, 3};
    unsigned char to[4] = {0};
    pid_t pid = start();
    struct kl_foreign child = kl_foreign_self(&mark);
    struct kl_foreign_seen seen = {0};

    (void)state;
    child.pid = pid;
    if (!kl_foreign_is_open(&child)) {
        stop(pid);
        skip();
    }
    assert_true(kl_foreign_write(&child, &seen, address(data) + 5, from, sizeof from));
    assert_true(kl_foreign_read(&child, &seen, to, address(data) + 4, sizeof to));
    assert_memory_equal(to, "\7\1\2\3", sizeof to);
    assert_int_equal(data[5], 0); /* not written in this process */
    /* beyond the end of its memory */
    assert_false(kl_foreign_write(&child, &seen, address(data) + BYTES - 1, from, 2));
    child.mark++;
    assert_false(kl_foreign_is_open(&child));
    assert_false(kl_foreign_write(&child, &seen, address(data), from, 1)); /* another process */
    child.mark--;
    assert_true(kl_foreign_read(&child, &seen, to, address(data), 1));
    assert_int_equal(to[0], 7);
    stop(pid);
    assert_false(kl_foreign_write(&child, &seen, address(data), from, 1)); /* gone */
}

/* For as long as the pid cannot be reused. */
static void a_mark_holds_for_a_while(void **state)
{
    unsigned char to[4];
    pid_t pid = start();
    struct kl_foreign child = {.pid = pid, .mark_at = address(data), .mark = 0x0707070707070707u};
    struct kl_foreign_seen seen = {0};

    (void)state;
    if (!kl_foreign_read(&child, &seen, to, address(data), sizeof to)) {
        stop(pid);
        skip();
    }
    assert_true(kl_foreign_write(&child, &seen, address(data), "", 1)); /* where its mark was */
    const bool holds = kl_foreign_read(&child, &seen, to, address(data), sizeof to);
    assert_true(holds || kl_now_coarse_ns() - seen.at >= (uint64_t)KL_FOREIGN_SEEN_MS * 1000000u);
    seen.at -= (uint64_t)KL_FOREIGN_SEEN_MS * 1000000u;
    assert_false(kl_foreign_read(&child, &seen, to, address(data), sizeof to));
    assert_false(kl_foreign_write(&child, &seen, address(data), to, sizeof to));
    stop(pid);
}

static void what_does_not_exist_is_not_read(void **state)
{
    struct kl_foreign nobody = kl_foreign_self(&mark);
    struct kl_foreign_seen seen = {0};
    unsigned char to[8];

    (void)state;
    nobody.pid = -1;
    assert_false(kl_foreign_read(&nobody, &seen, to, address(data), sizeof to));
    nobody.pid = 0x7fffffff;
    assert_false(kl_foreign_read(&nobody, &seen, to, address(data), sizeof to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_has_is_read),
        cmocka_unit_test(what_it_has_is_written),
        cmocka_unit_test(a_mark_holds_for_a_while),
        cmocka_unit_test(what_does_not_exist_is_not_read),
    };

    /* With unmapped memory behind it. */
    data = mmap(NULL, BYTES + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED || mprotect(data + BYTES, 65536, PROT_NONE)) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
