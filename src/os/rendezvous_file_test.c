/* SPDX-License-Identifier: Apache-2.0 */
#include "os/rendezvous_file.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/job_name.h"
#include "os/private_file.h"
#include "tests/kolo_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 60000, SHORT_MS = 10 };

static const char said[] = "thirteen bytes", other[] = "another thing";
static char first[] = "/tmp/kolo-test-XXXXXX", second[] = "/tmp/kolo-test-XXXXXX", name[KL_JOB_NAME];
static const char *const folders[] = {first, second, NULL};
static const char *const nowhere[] = {"/no/such/folder", second, NULL};

/* ---- helpers ---- */

static ncclResult_t write_by(const char *const *in, const char *text, int ms, struct kl_rendezvous_file **file)
{
    return kl_rendezvous_file_write(in, name, text, strlen(text), kl_deadline_in_ms((uint64_t)ms), file);
}

static struct kl_rendezvous_file *written(const char *text)
{
    struct kl_rendezvous_file *file = NULL;

    assert_int_equal(write_by(folders, text, LONG_MS, &file), ncclSuccess);
    return file;
}

static bool reads(const char *const *in, const char *text, int ms)
{
    char heard[64] = "";

    return !kl_rendezvous_file_read(in, name, heard, strlen(text), NULL, kl_deadline_in_ms((uint64_t)ms)) &&
           !strcmp(heard, text);
}

static void expect_nothing(const char *why)
{
    kl_error_quiet(1);
    assert_false(reads(folders, said, SHORT_MS));
    kl_error_quiet(0);
    if (!strstr(kl_error_text(), why)) fail_msg("\"%s\" does not say \"%s\"", kl_error_text(), why);
}

static int count_files(const char *folder)
{
    const struct dirent *entry;
    DIR *d = opendir(folder);
    int n = 0;

    assert_non_null(d);
    while ((entry = readdir(d))) n += entry->d_name[0] != '.';
    closedir(d);
    return n;
}

static void path_of(const char *folder, char path[KL_PRIVATE_PATH])
{
    snprintf(path, KL_PRIVATE_PATH, "%s/%s-rendezvous", folder, name);
}

static void finish(pid_t child, int want)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, want);
}

/* A process writes the file and is killed. */
static void leave_stale(void)
{
    pid_t child = fork();

    if (!child) {
        struct kl_rendezvous_file *file;
        if (!write_by(folders, said, LONG_MS, &file)) raise(SIGKILL);
        _exit(1);
    }
    finish(child, SIGKILL);
    assert_int_equal(count_files(first), 1);
}

static int make_folders(void **state)
{
    (void)state;
    snprintf(first, sizeof first, "/tmp/kolo-test-XXXXXX");
    snprintf(second, sizeof second, "/tmp/kolo-test-XXXXXX");
    kl_job_name_prefix(name);
    strcat(name, "job-0");
    return !mkdtemp(first) || !mkdtemp(second);
}

/* Fails if the test left files behind. */
static int remove_folders(void **state)
{
    (void)state;
    return rmdir(first) || rmdir(second);
}

/* ---- tests ---- */

static void what_is_written_is_read(void **state)
{
    char path[KL_PRIVATE_PATH];
    struct stat st;

    (void)state;
    pid_t child = fork(); /* it may look before the file is written */
    if (!child) _exit(!reads(folders, said, LONG_MS));
    struct kl_rendezvous_file *file = written(said);
    path_of(first, path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    finish(child, 0);
    assert_int_equal(count_files(first), 1);
    kl_rendezvous_file_remove(file);
    assert_int_equal(count_files(first), 0);
    kl_rendezvous_file_remove(NULL);
    expect_nothing("nobody has written");
}

static void what_the_dead_have_left_is_not_read(void **state)
{
    (void)state;
    leave_stale();
    expect_nothing("nobody has written");
    assert_int_equal(count_files(first), 0); /* the reader that found it has removed it */
}

static void what_the_dead_have_left_is_replaced(void **state)
{
    (void)state;
    leave_stale();
    struct kl_rendezvous_file *file = written(other);
    assert_true(reads(folders, other, LONG_MS));
    kl_rendezvous_file_remove(file);
}

static void make(const char *folder, const char *named, const char *end)
{
    char path[KL_PRIVATE_PATH];

    snprintf(path, sizeof path, "%s/%s%s", folder, named, end);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    close(fd);
}

/* A writer removes stale files of other jobs, drafts among them; it leaves live files, and other kinds of files. */
static void leftovers_of_other_jobs_are_removed(void **state)
{
    char prefix[KL_JOB_NAME], path[KL_PRIVATE_PATH];
    struct kl_rendezvous_file *live = written(said);

    (void)state;
    kl_job_name_prefix(prefix);
    make(first, prefix, "dead-0-rendezvous");
    make(first, prefix, "dead-0-rendezvous.0123456789abcdef");
    make(first, prefix, "dead-0-cuda-00");
    snprintf(name + strlen(prefix), sizeof name - strlen(prefix), "job-1");
    struct kl_rendezvous_file *file = written(said);
    assert_int_equal(count_files(first), 3);
    kl_rendezvous_file_remove(file);
    kl_rendezvous_file_remove(live);
    snprintf(path, sizeof path, "%s/%sdead-0-cuda-00", first, prefix);
    assert_int_equal(unlink(path), 0);
}

static void the_next_writer_waits(void **state)
{
    struct kl_rendezvous_file *file = written(said), *next;
    char who[64];
    int fds[2];

    (void)state;
    kl_error_quiet(1);
    assert_int_equal(write_by(folders, other, SHORT_MS, &next), ncclRemoteError);
    kl_error_quiet(0);
    snprintf(who, sizeof who, "made by process %d", (int)getpid());
    assert_non_null(strstr(kl_error_text(), who));
    assert_true(reads(folders, said, LONG_MS));
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (!child) {
        char c;
        bool wrote = !write_by(folders, other, LONG_MS, &next);
        close(fds[1]);
        if (wrote && !read(fds[0], &c, 1)) kl_rendezvous_file_remove(next);
        _exit(!wrote);
    }
    close(fds[0]);
    kl_rendezvous_file_remove(file);
    assert_true(reads(folders, other, LONG_MS));
    close(fds[1]);
    finish(child, 0);
}

static void all_find_the_next_folder(void **state)
{
    struct kl_rendezvous_file *file = NULL;
    const char *const only[] = {"/no/such/folder", "/proc", NULL};

    (void)state;
    assert_int_equal(write_by(nowhere, said, LONG_MS, &file), ncclSuccess);
    assert_int_equal(count_files(second), 1);
    assert_true(reads(folders, said, LONG_MS));
    kl_rendezvous_file_remove(file);
    assert_int_equal(count_files(second), 0);
    kl_error_quiet(1);
    assert_int_equal(write_by(only, said, LONG_MS, &file), ncclSystemError);
    kl_error_quiet(0);
    assert_non_null(strstr(kl_error_text(), "/no/such/folder"));
    assert_non_null(strstr(kl_error_text(), "/proc"));
}

/* Objects at the path: a link, a file that others can read, a pipe, a folder. None is touched, and no call blocks on
 * them. */
static void what_is_in_the_way_is_left_alone(void **state)
{
    char path[KL_PRIVATE_PATH];

    (void)state;
    path_of(first, path);
    for (int kind = 0; kind < 4; kind++) {
        int made = kind == 0   ? symlink("/etc/hostname", path)
                   : kind == 1 ? mknod(path, S_IFREG | 0644, 0) || chmod(path, 0644)
                   : kind == 2 ? mkfifo(path, 0600)
                               : mkdir(path, 0700);
        assert_int_equal(made, 0);
        expect_nothing("somebody else's");
        struct kl_rendezvous_file *file = written(said);
        assert_int_equal(count_files(second), 1);
        assert_true(reads(folders, said, LONG_MS));
        kl_rendezvous_file_remove(file);
        assert_int_equal(remove(path), 0);
    }
}

/* A file size limit is an error, not the death of the process. */
static void no_room_is_said(void **state)
{
    (void)state;
    pid_t child = fork();
    if (!child) {
        struct kl_rendezvous_file *file;
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, 0});
        kl_error_quiet(1);
        _exit(write_by(folders, said, LONG_MS, &file) != ncclSystemError || !strstr(kl_error_text(), "File too large"));
    }
    finish(child, 0);
    assert_int_equal(count_files(first) + count_files(second), 0);
}

/* A child outlives the killed writer: the file is stale then. */
static void a_child_does_not_keep_it(void **state)
{
    int fds[2], told[2];
    char c;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(pipe(told), 0);
    pid_t writer = fork();
    if (!writer) {
        struct kl_rendezvous_file *file;
        close(fds[1]);
        if (write_by(folders, said, LONG_MS, &file)) _exit(1);
        if (!fork()) _exit(write(told[1], "x", 1) != 1 || read(fds[0], &c, 1) != 0); /* until the test ends it */
        raise(SIGKILL);
    }
    close(fds[0]);
    close(told[1]);
    finish(writer, SIGKILL);
    assert_int_equal(read(told[0], &c, 1), 1); /* the child runs: the fork handlers are done */
    expect_nothing("nobody has written");
    close(fds[1]);
    assert_int_equal(read(told[0], &c, 1), 0); /* the child has ended, too */
    close(told[0]);
}

static bool is_other(const void *data)
{
    return !memcmp(data, other, 5);
}

static void what_is_refused_is_looked_at_again(void **state)
{
    struct kl_rendezvous_file *file = written(said);
    char heard[sizeof said] = "";

    (void)state;
    kl_error_quiet(1);
    assert_int_equal(kl_rendezvous_file_read(folders, name, heard, strlen(said), is_other, kl_deadline_in_ms(SHORT_MS)),
                     ncclRemoteError);
    kl_error_quiet(0);
    assert_non_null(strstr(kl_error_text(), "made by process"));
    pid_t child = fork();
    if (!child)
        _exit(kl_rendezvous_file_read(folders, name, heard, strlen(other), is_other, kl_deadline_in_ms(LONG_MS)));
    kl_rendezvous_file_remove(file);
    file = written(other);
    finish(child, 0);
    kl_rendezvous_file_remove(file);
}

/* Writers of one name, some of which die while they hold it, and a reader: at most one holds it at a time, and the
 * reader gets the contents of the current holder. */
static void one_has_it_at_a_time(void **state)
{
    enum { WRITERS = 3, TIMES = 40 };
    pid_t writer[WRITERS];

    (void)state;
    for (int w = 0; w < WRITERS; w++) {
        writer[w] = fork();
        for (int i = 0; !writer[w] && i < TIMES; i++) {
            pid_t one = fork();
            if (!one) {
                struct kl_rendezvous_file *file;
                char text[16];
                snprintf(text, sizeof text, "writer %2d %3d", w, i);
                if (write_by(folders, text, LONG_MS, &file) || !reads(folders, text, 0)) _exit(1);
                if (i % 3) kl_rendezvous_file_remove(file);
                _exit(0);
            }
            int status;
            if (waitpid(one, &status, 0) != one || status) _exit(1);
            if (i == TIMES - 1) _exit(0);
        }
    }
    char text[16];
    kl_error_quiet(1);
    for (int i = 0, w, n; i < 200; i++)
        if (!kl_rendezvous_file_read(folders, name, text, 13, NULL, 0)) {
            text[13] = 0;
            assert_int_equal(sscanf(text, "writer %2d %3d", &w, &n), 2);
        }
    for (int w = 0; w < WRITERS; w++) finish(writer[w], 0);
    expect_nothing("nobody has written");
    kl_error_quiet(0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folders, remove_folders)
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read),
        TEST(what_the_dead_have_left_is_not_read),
        TEST(what_the_dead_have_left_is_replaced),
        TEST(leftovers_of_other_jobs_are_removed),
        TEST(the_next_writer_waits),
        TEST(all_find_the_next_folder),
        TEST(what_is_in_the_way_is_left_alone),
        TEST(no_room_is_said),
        TEST(a_child_does_not_keep_it),
        TEST(what_is_refused_is_looked_at_again),
        TEST(one_has_it_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
