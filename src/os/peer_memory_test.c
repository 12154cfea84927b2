/* SPDX-License-Identifier: Apache-2.0 */
#include "os/peer_memory.h"

#include "tests/kolo_test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 3 << 20 };

static uint64_t address_of(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static void what_is_mine_can_be_read(void **state)
{
    char from[] = "a line", to[sizeof from] = "";

    (void)state;
    assert_true(kl_peer_memory_read(getpid(), to, address_of(from), sizeof from));
    assert_string_equal(to, from);
    assert_true(kl_peer_memory_read(getpid(), to, 0, 0));
}

static void a_childs_memory_can_be_read(void **state)
{
    unsigned char *from = malloc(BYTES), *to = malloc(BYTES);
    int ready[2];
    char c;

    (void)state;
    assert_true(from && to && !pipe(ready));
    memset(from, 1, BYTES);
    pid_t child = fork();
    if (!child) {
        memset(from, 2, BYTES); /* its own copy */
        (void)!write(ready[1], "", 1);
        pause();
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    bool ok = kl_peer_memory_read(child, to, address_of(from), BYTES);
    int why = errno;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (!ok && (why == EPERM || why == ENOSYS)) skip(); /* this system does not allow it */
    assert_true(ok && to[0] == 2 && to[BYTES - 1] == 2);
    assert_false(kl_peer_memory_read(child, to, address_of(from), BYTES)); /* it is gone */
    assert_int_equal(errno, ESRCH);
    close(ready[0]), close(ready[1]);
    free(from), free(to);
}

static void memory_that_is_gone_is_no_fault(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *to = malloc(2 * page);

    (void)state;
    assert_true(memory != MAP_FAILED && to);
    munmap(memory + page, page);
    assert_false(kl_peer_memory_read(getpid(), to, address_of(memory), 2 * page));
    assert_int_equal(errno, EFAULT);
    munmap(memory, page);
    free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_mine_can_be_read),
        cmocka_unit_test(a_childs_memory_can_be_read),
        cmocka_unit_test(memory_that_is_gone_is_no_fault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
