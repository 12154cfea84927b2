/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kolo_test.h"
#include "tools/kolo/cmd.h"
#include "tools/kolo/launch.h"
#include "tools/kolo/spawn.h"

#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_SLEEP "sleep 1000"
enum { LONG_MS = 900000 };

struct outcome {
    int code;
    char *out, *err;
};

/* All of a scratch file, which is closed. */
static char *contents(FILE *f)
{
    long n = ftell(f);
    char *text = calloc(1, (size_t)n + 1);

    rewind(f);
    assert_int_equal(fread(text, 1, (size_t)n, f), n);
    fclose(f);
    return text;
}

/* Shell for scripts below: a rank says that it is ready; a rank waits until another one is. */
#define READY       "mkdir $RANK; "
#define AWAIT(rank) "until test -d " #rank "; do sleep 0.01; done; "

/* The folder that scripts run in, with the files of READY. */
static void remove_scratch(const char *dir)
{
    char path[64];

    for (int r = 0; r < 8; r++) {
        snprintf(path, sizeof path, "%s/%d", dir, r);
        rmdir(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

/* Run `sh -c script` on n ranks with the settings of `like`. */
static struct outcome launch(const struct kl_launch *like, int n, const char *script)
{
    char sh[] = "sh", c[] = "-c", text[512], dir[] = "/tmp/kolo-launch-XXXXXX";
    char *argv[] = {sh, c, text, NULL};
    struct outcome o = {0};
    struct kl_launch job = *like;

    assert_non_null(mkdtemp(dir));
    snprintf(text, sizeof text, "cd %s; %s", dir, script);
    job.who = "kolo run";
    job.path = "/bin/sh";
    job.argv = argv;
    job.nranks = n;
    if (!job.nhosts) job.nhosts = 1;
    job.out = fdopen(memfd_create("out", MFD_CLOEXEC), "w+");
    job.err = fdopen(memfd_create("err", MFD_CLOEXEC), "w+");
    o.code = kl_launch(&job);
    o.out = contents(job.out);
    o.err = contents(job.err);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left */
    assert_int_equal(errno, ECHILD);
    remove_scratch(dir);
    return o;
}

static void forget(struct outcome *o)
{
    free(o->out);
    free(o->err);
}

static void expect_line(const char *text, const char *line)
{
    size_t n = strlen(line);

    for (const char *at = text; (at = strstr(at, line)); at += n)
        if ((at == text || at[-1] == '\n') && at[n] == '\n') return;
    fail_msg("no line \"%s\" in:\n%s", line, text);
}

static int count(const char *text, const char *what)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, what)); at++) n++;
    return n;
}

static int count_lines(const char *text)
{
    int n = 0;

    while (*text) n += *text++ == '\n';
    return n;
}

static const struct script_case {
    const char *script;
    uint64_t grace_ms; /* passes before each signal, unless both ranks end by themselves: a late rank needs it */
    int code;
    const char *line; /* in the report; NULL: there is none */
} script_cases[] = {
    {"true", LONG_MS, EXIT_OK, NULL},
    {"false", LONG_MS, EXIT_PROBLEM, "kolo run: rank 1: exit code 1, by itself"},
    {"exit 7", LONG_MS, 7, "kolo run: rank 0: exit code 7, by itself"},
    {"kill -9 $$", LONG_MS, 128 + SIGKILL, "kolo run: rank 1: signal 9 (Killed), by itself"},
    {"test $RANK = 0 || exit 3; exec " LONG_SLEEP, 2000, 3,
     "kolo run: rank 0: signal 15 (Terminated), sent by kolo run"},
    {"test $RANK = 0 || { " AWAIT(0) "exit 3; }; trap 'exit 0' TERM; " READY "while :; do sleep 0.01; done", 2000, 3,
     "kolo run: rank 0: exit code 0, after kolo run sent signal 15 (Terminated)"},
    {"test $RANK = 0 || { " AWAIT(0) "exit 3; }; trap '' TERM; " READY "while :; do " LONG_SLEEP "; done", 100, 3,
     "kolo run: rank 0: signal 9 (Killed), sent by kolo run"},
};

static void endings_are_reported(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, script_cases)
    {
        struct outcome o = launch(&(struct kl_launch){.grace_ms = c->grace_ms}, 2, c->script);

        expect_case(c->script, o.code == c->code);
        /* One line per rank, and one at the death unless all had ended by then. */
        expect_case(c->script, c->line ? count(o.err, "kolo run: ") >= 2 && count(o.err, "kolo run: ") <= 3 : !*o.err);
        if (c->line) expect_line(o.err, c->line);
        forget(&o);
    }
}

static void the_death_is_announced_at_once(void **state)
{
    struct outcome o = launch(&(struct kl_launch){.grace_ms = 250}, 3, "test $RANK != 1 || exit 3; exec " LONG_SLEEP);

    (void)state;
    expect_line(o.err, "kolo run: rank 1: exit code 3, by itself; the others have 0.25 s to end");
    forget(&o);
}

static void verdicts_are_silent(void **state)
{
    struct outcome o = launch(&(struct kl_launch){.verdict = 1, .grace_ms = LONG_MS}, 2, "exit 1");

    (void)state;
    assert_int_equal(o.code, EXIT_PROBLEM);
    assert_string_equal(o.err, "");
    forget(&o);
}

static void time_is_limited(void **state)
{
    struct outcome o = launch(&(struct kl_launch){.timeout_ms = 200, .grace_ms = LONG_MS}, 2, "exec " LONG_SLEEP);

    (void)state;
    assert_int_equal(o.code, EXIT_PROBLEM);
    expect_line(o.err, "kolo run: not finished after 0.2 s");
    expect_line(o.err, "kolo run: rank 1: signal 15 (Terminated), sent by kolo run");
    forget(&o);
}

static bool say_stuck(void *context)
{
    return ++*(int *)context == 2;
}

static void a_stuck_job_is_ended(void **state)
{
    int asked = 0;
    struct kl_launch like = {.grace_ms = LONG_MS, .is_stuck = say_stuck, .context = &asked};
    struct outcome o = launch(&like, 2, "kill -STOP $$"); /* stopped ranks get the signal too */

    (void)state;
    assert_int_equal(o.code, EXIT_PROBLEM);
    assert_int_equal(asked, 2);
    expect_line(o.err, "kolo run: rank 0: signal 15 (Terminated), sent by kolo run");
    forget(&o);
}

static void output_keeps_its_lines_and_its_stream(void **state)
{
    const char *script =
        "for i in 1 2 3 4 5 6 7 8 9; do printf 'out '; echo $RANK; echo err $RANK >&2; done; printf end";
    struct outcome o = launch(&(struct kl_launch){.tag = true}, 3, script);

    (void)state;
    assert_int_equal(o.code, EXIT_OK);
    assert_int_equal(count_lines(o.out), 3 * 10);
    assert_int_equal(count_lines(o.err), 3 * 9);
    for (int r = 0; r < 3; r++) {
        char line[32];

        snprintf(line, sizeof line, "[%d] out %d", r, r);
        expect_line(o.out, line);
        snprintf(line, sizeof line, "[%d] end", r); /* the line without an end gets one */
        expect_line(o.out, line);
        snprintf(line, sizeof line, "[%d] err %d", r, r);
        expect_line(o.err, line);
        assert_null(strstr(o.out, "err"));
    }
    forget(&o);
}

static void much_output_arrives(void **state)
{
    struct outcome o = launch(&(struct kl_launch){0}, 2, "seq 100000");

    (void)state;
    assert_int_equal(o.code, EXIT_OK);
    assert_int_equal(count_lines(o.out), 200000);
    assert_int_equal(strlen(o.out), 2 * 588895);
    forget(&o);
}

static ncclResult_t some_id(ncclUniqueId *id)
{
    memset(id, 0xa5, sizeof *id);
    return ncclSuccess;
}

static void ranks_know_their_place(void **state)
{
    struct kl_launch like = {.nhosts = 2, .make_id = some_id, .topo_file = "/t.xml"};
    const char *script =
        "echo $KOLO_RANK/$KOLO_SIZE $KOLO_LOCAL_RANK/$KOLO_LOCAL_SIZE $RANK/$WORLD_SIZE "
        "$LOCAL_RANK/$LOCAL_WORLD_SIZE ${NCCL_HOSTID##*-} $NCCL_TOPO_FILE ${#KOLO_COMM_ID} $MASTER_ADDR";
    struct outcome o = launch(&like, 4, script);

    (void)state;
    expect_line(o.out, "0/4 0/2 0/4 0/2 0 /t.xml 256 127.0.0.1");
    expect_line(o.out, "1/4 1/2 1/4 1/2 0 /t.xml 256 127.0.0.1");
    expect_line(o.out, "2/4 0/2 2/4 0/2 1 /t.xml 256 127.0.0.1");
    expect_line(o.out, "3/4 1/2 3/4 1/2 1 /t.xml 256 127.0.0.1");
    forget(&o);
}

static void ranks_inherit_no_descriptors(void **state)
{
    close_range(3, ~0u, CLOSE_RANGE_CLOEXEC); /* descriptors that this test inherited are not the launcher's */
    struct outcome o = launch(&(struct kl_launch){0}, 2, "for f in /proc/self/fd/*; do echo ${f##*/}; done");

    (void)state;
    assert_int_equal(o.code, EXIT_OK);
    for (const char *at = o.out; *at; at = strchr(at, '\n') + 1)
        assert_true(strtol(at, NULL, 10) <= 3); /* 3: the shell reading */
    forget(&o);
}

/* Background processes of a rank end with the job, and do not delay its end. */
static void background_processes_are_swept(void **state)
{
    struct outcome o = launch(&(struct kl_launch){0}, 2, LONG_SLEEP " & echo $!");

    (void)state;
    assert_int_equal(o.code, EXIT_OK);
    for (char *at = o.out; *at; at++) {
        pid_t pid = (pid_t)strtol(at, &at, 10);
        assert_int_equal(waitpid(pid, NULL, 0), -1); /* not ours: it had to end with its parent's group */
        while (!kill(pid, 0)) usleep(1000);
    }
    forget(&o);
}

static void interrupts_are_passed_on(void **state)
{
    /* When all are ready, rank 0 sends its parent, the launcher, a signal. */
    const char *script =
        "trap 'echo got; exit 5' INT; " READY "test $RANK != 0 || { " AWAIT(1) AWAIT(2) "kill -INT $PPID; }; "
                                                                                        "while :; do sleep 0.01; done";
    (void)state;
    signal(SIGINT, SIG_DFL); /* a shell cannot trap a signal that was ignored when it began */
    struct outcome o = launch(&(struct kl_launch){.grace_ms = LONG_MS}, 3, script);

    assert_int_equal(o.code, 5);
    assert_int_equal(count_lines(o.out), 3);
    expect_line(o.err, "kolo run: rank 2: exit code 5, after kolo run sent signal 2 (Interrupt)");
    forget(&o);
}

static void a_missing_program_is_said(void **state)
{
    static const struct {
        const char *name;
        int err;
    } cases[] = {{"no-such-program-here", ENOENT}, {"/no/such/program", ENOENT},
                 {"/etc/passwd/x", ENOENT},        {"", ENOENT},
                 {"/etc/passwd", EACCES},          {"/tmp", EISDIR}};
    char *file;

    (void)state;
    assert_int_equal(kl_find_program("sh", &file), 0);
    assert_non_null(strstr(file, "/sh"));
    free(file);
    FOR_EACH_CASE(c, cases) expect_case(c->name, kl_find_program(c->name, &file) == c->err && !file);
}

/* ---- the launcher itself is killed ---- */

static const char be_launcher[] = "be-launcher";

/* Ranks that start processes of their own, and tell all pids. */
static int launcher_main(void)
{
    char sh[] = "sh", c[] = "-c", script[] = LONG_SLEEP " & echo $$; echo $!; wait";
    char *argv[] = {sh, c, script, NULL};
    struct kl_launch job = {
        .who = "kolo run", .path = "/bin/sh", .argv = argv, .nranks = 2, .nhosts = 1, .out = stdout, .err = stderr};

    return kl_launch(&job);
}

static void nothing_survives_the_launcher(void **state)
{
    char self[] = "/proc/self/exe", role[sizeof be_launcher];
    char *argv[] = {self, role, NULL};
    posix_spawn_file_actions_t actions;
    pid_t launcher, pid[4];
    char line[32];
    int fds[2], n = 0;

    (void)state;
    memcpy(role, be_launcher, sizeof role);
    assert_int_equal(pipe(fds), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    posix_spawn_file_actions_addclose(&actions, fds[0]);
    assert_int_equal(posix_spawn(&launcher, self, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);

    FILE *told = fdopen(fds[0], "r");
    while (n < 4 && fgets(line, sizeof line, told)) pid[n++] = (pid_t)strtol(line, NULL, 10);
    assert_int_equal(n, 4);
    prctl(PR_SET_CHILD_SUBREAPER,
          1); /* processes that the launcher leaves become our children, and can be waited for */
    kill(launcher, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0) continue; /* hangs, and so fails, if one lives on */
    for (int i = 0; i < n; i++) assert_int_equal(kill(pid[i], 0), -1);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    fclose(told);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endings_are_reported),          cmocka_unit_test(the_death_is_announced_at_once),
        cmocka_unit_test(verdicts_are_silent),           cmocka_unit_test(time_is_limited),
        cmocka_unit_test(a_stuck_job_is_ended),          cmocka_unit_test(output_keeps_its_lines_and_its_stream),
        cmocka_unit_test(much_output_arrives),           cmocka_unit_test(ranks_know_their_place),
        cmocka_unit_test(ranks_inherit_no_descriptors),  cmocka_unit_test(background_processes_are_swept),
        cmocka_unit_test(interrupts_are_passed_on),      cmocka_unit_test(a_missing_program_is_said),
        cmocka_unit_test(nothing_survives_the_launcher),
    };

    kl_spawn_hidden(argc, argv);
    if (argc > 1 && !strcmp(argv[1], be_launcher)) return launcher_main();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
