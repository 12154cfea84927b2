/* SPDX-License-Identifier: Apache-2.0 */
/* Hundreds of ranks at one root, with strangers connecting at the same time. */
#include "bootstrap/test_jobs.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { CROWD = 64 };
#else
enum { CROWD = 512 };
#endif
enum { STRANGERS = 400, CALLS = 10000, ABSENT = CROWD / 3 };

static struct rank ranks[CROWD];

/* ---- strangers ---- */

static _Atomic bool all_served;
static sem_t go_home;
static union kl_address local;

static int call_the_listener(void)
{
    int fd = socket(local.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0) (void)connect(fd, &local.any, kl_address_bytes(&local)); /* in progress; or the listener is gone */
    return fd;
}

/* One in three is silent, one sends bytes that are not a hello, and one hangs up. They reconnect all the time, and
 * the silent ones stay until all ranks are served. */
static void *annoy(void *arg)
{
    static int fds[STRANGERS];
    static const char nonsense[] =
        "GET / HTTP/1.1\r\n\r\nand more of it, so that it is as long as any hello could be .........";

    (void)arg;
    for (int i = 0; i < STRANGERS; i++) fds[i] = -1;
    for (int call = 0, i = 0; call < CALLS && !kl_load_acquire(&all_served); call++, i = call % STRANGERS) {
        if (fds[i] >= 0 && i % 3 == 1) (void)send(fds[i], nonsense, sizeof nonsense, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (fds[i] >= 0 && i % 3) {
            close(fds[i]);
            fds[i] = -1;
        }
        if (fds[i] < 0) fds[i] = call_the_listener();
    }
    while (sem_wait(&go_home)) continue;
    for (int i = 0; i < STRANGERS; i++)
        if (fds[i] >= 0) close(fds[i]);
    return NULL;
}

static void strangers_do_not_keep_ranks_away(void **state)
{
    ncclUniqueId id;
    struct kl_id opened;
    pthread_t thread;

    (void)state;
    sem_init(&go_home, 0, 0);
    assert_int_equal(kl_bootstrap_id_create(&id), ncclSuccess);
    assert_true(kl_id_unpack(&id, &opened));
    local = opened.address[0];
    assert_int_equal(pthread_create(&thread, NULL, annoy, NULL), 0);
    setup_ranks(ranks, CROWD, &id, NULL);
    run_ranks(ranks, CROWD);
    kl_store_release(&all_served, true);
    sem_post(&go_home);
    pthread_join(thread, NULL);
    expect_joined(ranks, CROWD);
}

/* ---- a missing rank ---- */

/* All ranks but one come, and wait for so long. Returns the first that does not name the missing one; NULL: none. */
static const struct rank *wait_for_the_absent(int seconds)
{
    const struct rank *wrong = NULL;
    ncclUniqueId id;
    char want[64];

    assert_int_equal(kl_bootstrap_id_create(&id), ncclSuccess);
    setup_ranks(ranks, CROWD, &id, NULL);
    for (int r = 0; r < CROWD; r++) ranks[r].config.timeout_ms = 1000 * seconds;
    snprintf(want, sizeof want, "1 of %d ranks did not join within %d s: rank %d;", CROWD, seconds, ABSENT);
    for (int r = 0; r < CROWD; r++)
        if (r != ABSENT) assert_int_equal(pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]), 0);
    for (int r = 0; r < CROWD; r++) {
        if (r == ABSENT) continue;
        pthread_join(ranks[r].thread, NULL);
        assert_int_equal(ranks[r].joined, ncclRemoteError);
        if (!wrong && !strstr(ranks[r].text, want)) wrong = &ranks[r];
    }
    return wrong;
}

/* Where the machine is so busy that more of them are late, all wait longer. */
static void the_missing_rank_is_named_among_hundreds(void **state)
{
    (void)state;
    if (!wait_for_the_absent(4)) return;
    const struct rank *wrong = wait_for_the_absent(30);
    if (wrong) fail_msg("rank %d: %s", (int)(wrong - ranks), wrong->text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        leak_test(strangers_do_not_keep_ranks_away),
        leak_test(the_missing_rank_is_named_among_hundreds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
