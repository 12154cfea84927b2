/* SPDX-License-Identifier: Apache-2.0 */
/* Each case runs in a forked child that has not logged before. Its standard output is a socket that keeps every
 * write(2) apart, so the lines collected here prove "one write per line". */
#include "base/log.h"

#include "base/param.h"
#include "tests/kolo_test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WRITES = 64, WRITE_BYTES = 4096 };

struct output {
    int n;
    char text[MAX_WRITES][WRITE_BYTES];
    pid_t pid;
};

static struct output out; /* of the last child */

static void become_child(int output, const char *const *environment)
{
    dup2(output, STDOUT_FILENO);
    clearenv();
    setenv("HOME", "/nonexistent", 1);
    for (; *environment; environment++) putenv((char *)(uintptr_t)*environment);
}

/* Run `say` with exactly `environment`; its output is in `out`. */
static void run(const char *const *environment, void (*say)(void))
{
    int ends[2], status;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    out.pid = fork();
    if (!out.pid) {
        become_child(ends[1], environment);
        say();
        _exit(0);
    }
    close(ends[1]);
    for (out.n = 0; out.n < MAX_WRITES; out.n++) {
        ssize_t n = recv(ends[0], out.text[out.n], WRITE_BYTES - 1, 0);
        if (n <= 0) break;
        out.text[out.n][n] = 0;
    }
    close(ends[0]);
    assert_int_equal(waitpid(out.pid, &status, 0), out.pid);
    assert_int_equal(status, 0);
}

#define RUN(say, ...) run((const char *const[]){__VA_ARGS__, NULL}, (say))

/* Does any write match? */
static bool said(const char *pattern)
{
    regex_t re;
    bool found = false;

    assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    for (int i = 0; i < out.n; i++) found |= !regexec(&re, out.text[i], 0, NULL, 0);
    regfree(&re);
    return found;
}

static void expect_said(const char *pattern)
{
    if (!said(pattern)) fail_msg("nothing matches \"%s\"; first of %d: %s", pattern, out.n, out.n ? out.text[0] : "");
}

static void one_of_each(void)
{
    kl_log(KL_LOG_VERSION, KL_LOG_ALL, "v.c", 1, "a-version");
    KL_WARN("a-warning");
    KL_ATTN("to-note");
    KL_INFO(KL_INIT, "an-info");
    kl_log(KL_LOG_ABORT, KL_INIT, "a.c", 1, "an-abort");
    KL_TRACE(KL_INIT, "a-trace");
}

static const struct {
    const char *variable, *heard; /* first letters of the lines that are printed */
} levels[] = {
    {"NCCL_DEBUG=", ""},           {"NCCL_DEBUG=NONE", ""},        {"NCCL_DEBUG=VERSION", "v"},
    {"NCCL_DEBUG=WARN", "vw"},     {"NCCL_DEBUG=ATTN", "vwn"},     {"NCCL_DEBUG=INFO", "vwni"},
    {"NCCL_DEBUG=ABORT", "vwnia"}, {"NCCL_DEBUG=TRACE", "vwniat"}, {"NCCL_DEBUG=version", "v"},
    {"NCCL_DEBUG=Info", "vwni"},   {"NCCL_DEBUG=LOUD", ""},        {"NCCL_DEBUG=3", ""},
    {"NCCL_DEBUG_SUBSYS=ALL", ""},
};

static void levels_include_those_below(void **state)
{
    static const char *const words[] = {"a-version", "a-warning", "to-note", "an-info", "an-abort", "a-trace"};

    (void)state;
    FOR_EACH_CASE(c, levels)
    {
        size_t heard = strlen(c->heard);

        RUN(one_of_each, c->variable);
        for (size_t i = 0; i < 6; i++) expect_case(c->variable, said(words[i]) == (i < heard));
        if (!heard) expect_case(c->variable, out.n == 0);
    }
}

static void say_each_subsystem(void)
{
    KL_INFO(KL_INIT, "<init>");
    KL_INFO(KL_NET, "<net>");
    KL_INFO(KL_ENV, "<env>");
    KL_INFO(KL_RAS, "<ras>");
    KL_INFO(KL_NET | KL_RAS, "<either>");
    KL_WARN("<warn>");
}

static const struct {
    const char *variable;
    bool init, net, env, ras, either;
} subsystems[] = {
    {"NCCL_DEBUG_SUBSYS=", true, false, true, false, false},
    {"NCCL_DEBUG_SUBSYS=NET", false, true, false, false, true},
    {"NCCL_DEBUG_SUBSYS=ras,net", false, true, false, true, true},
    {"NCCL_DEBUG_SUBSYS=ALL", true, true, true, true, true},
    {"NCCL_DEBUG_SUBSYS=^RAS", true, true, true, false, true},
    {"NCCL_DEBUG_SUBSYS=^NET,RAS", true, false, true, false, false},
    {"NCCL_DEBUG_SUBSYS=^ALL", false, false, false, false, false},
    {"NCCL_DEBUG_SUBSYS=DESTROY", false, false, false, false, false},    /* a subsystem of a later NCCL */
    {"NCCL_DEBUG_SUBSYS=NET,NONSENSE", true, false, true, false, false}, /* refused: the default */
};

static void subsystems_filter_all_but_warnings(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, subsystems)
    {
        RUN(say_each_subsystem, "NCCL_DEBUG=INFO", c->variable);
        expect_case(c->variable, said("<init>") == c->init);
        expect_case(c->variable, said("<net>") == c->net);
        expect_case(c->variable, said("<env>") == c->env);
        expect_case(c->variable, said("<ras>") == c->ras);
        expect_case(c->variable, said("<either>") == c->either);
        expect_case(c->variable, said("<warn>"));
    }
    expect_said("NCCL WARN NCCL_DEBUG_SUBSYS=\"NET,NONSENSE\" \\(environment\\) is refused");
}

static void say_all_shapes(void)
{
    kl_log(KL_LOG_VERSION, KL_LOG_ALL, "v.c", 1, "Kolo %d", 1);
    kl_log(KL_LOG_INFO, KL_INIT, "i.c", 1, "no device");
    kl_log_set_device(12);
    kl_log(KL_LOG_INFO, KL_INIT, "i.c", 1, "info %s", "text");
    kl_log(KL_LOG_WARN, KL_LOG_ALL, "/home/x/kolo/src/comm/setup/init.c", 77, "warn");
    kl_log(KL_LOG_TRACE, KL_INIT, "src/comm/setup/init.c", 78, "trace");
    kl_log(KL_LOG_TRACE, KL_CALL, "c.c", 1, "call(1)");
    kl_log_set_device(-1);
    kl_log(KL_LOG_WARN, KL_LOG_ALL, "init.c", 5, "no device either");
}

static void lines_have_nccls_shape(void **state)
{
    char host[256], prefix[400], pattern[600];

    (void)state;
    gethostname(host, sizeof host);
    host[strcspn(host, ".")] = 0;
    RUN(say_all_shapes, "NCCL_DEBUG=TRACE", "NCCL_DEBUG_SUBSYS=INIT,CALL");
    snprintf(prefix, sizeof prefix, "%s:%d:%d ", host, (int)out.pid, (int)out.pid);

    static const struct {
        bool prefixed;
        const char *before, *after;
    } shapes[] = {
        {false, "^Kolo 1\n$", ""},
        {true, "^", "NCCL INFO no device\n$"},
        {true, "^", "\\[12\\] NCCL INFO info text\n$"},
        {true, "^\n\\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\\] ", "\\[12\\] comm/setup/init.c:77 NCCL WARN warn\n$"},
        {true, "^", "\\[12\\] [0-9]+\\.[0-9]{6} comm/setup/init.c:78 NCCL TRACE trace\n$"},
        {true, "^", "NCCL CALL call\\(1\\)\n$"},
        {true, "^\n\\[[^]]*\\] ", "init.c:5 NCCL WARN no device either\n$"},
    };
    FOR_EACH_CASE(c, shapes)
    {
        snprintf(pattern, sizeof pattern, "%s%s%s", c->before, c->prefixed ? prefix : "", c->after);
        expect_said(pattern);
    }
    assert_int_equal(out.n, 7); /* settings are of subsystem ENV and are not printed */
}

static void say_settings(void)
{
    struct {
        char secret[32];
    } config;
    static const struct kl_param rows[] = {{.name = "KOLO_SECRET",
                                            .dfl = "",
                                            .doc = "",
                                            .type = KL_PARAM_TYPE_STRING,
                                            .secrecy = KL_PARAM_IS_SECRET,
                                            .bytes = 32}};
    static const struct kl_param_set set = {"test", sizeof config, rows, 1};

    for (int i = 0; i < 3; i++) kl_param_load(&set, &config);
    setenv("KOLO_SECRET", "other", 1);
    kl_param_load(&set, &config);
    setenv("KOLO_SECRET", "longer than thirty-two bytes, which is all there is room for", 1);
    kl_param_load(&set, &config);
}

static int count(const char *word)
{
    int n = 0;

    for (int i = 0; i < out.n; i++) n += strstr(out.text[i], word) != NULL;
    return n;
}

static void settings_are_said_once_and_secrets_never(void **state)
{
    (void)state;
    RUN(say_settings, "NCCL_DEBUG=INFO", "NCCL_DEBUG_TIMESTAMP_LEVELS=", "KOLO_SECRET=swordfish");
    assert_int_equal(count("NCCL INFO NCCL_DEBUG set by environment to INFO\n"), 1);
    assert_int_equal(count("NCCL INFO KOLO_SECRET set by environment to (set)\n"), 2); /* it changed once */
    assert_int_equal(count("WARN KOLO_SECRET=\"(set)\" (environment) is refused: expected text of at most 31 bytes"),
                     1);
    assert_int_equal(count("swordfish") + count("other") + count("thirty-two"), 0);
}

/* ---- the file ---- */

static char folder[] = "/tmp/kolo_log_XXXXXX";

/* Read and remove folder/name; "" if there is none. */
static const char *take_file(const char *name)
{
    static char text[WRITE_BYTES];
    char path[512];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    unlink(path);
    text[n] = 0;
    return text;
}

static void a_file_takes_the_lines(void **state)
{
    char variable[300], name[300], host[256];

    (void)state;
    gethostname(host, sizeof host);
    host[strcspn(host, ".")] = 0;
    snprintf(variable, sizeof variable, "NCCL_DEBUG_FILE=%s/a%%h-%%p%%%%%%x%%", folder);
    RUN(one_of_each, "NCCL_DEBUG=INFO", variable);
    assert_int_equal(out.n, 0);
    snprintf(name, sizeof name, "a%s-%d%%%%x%%", host, (int)out.pid);
    const char *text = take_file(name);
    assert_non_null(strstr(text, "a-version\n"));
    assert_non_null(strstr(text, "NCCL INFO an-info\n"));

    RUN(one_of_each, "NCCL_DEBUG=VERSION", variable); /* a version alone is for the terminal */
    assert_int_equal(out.n, 1);
    RUN(one_of_each, "NCCL_DEBUG=WARN", "NCCL_DEBUG_FILE=/nonexistent/folder/x");
    assert_true(said("a-warning"));
}

static void say_after_resets(void)
{
    KL_INFO(KL_INIT, "one");
    kl_log_reset();
    KL_INFO(KL_INIT, "two");
    setenv("NCCL_DEBUG", "WARN", 1);
    kl_log_reset();
    KL_INFO(KL_INIT, "three");
    KL_WARN("four");
    unsetenv("NCCL_DEBUG_FILE");
    kl_log_reset();
    KL_WARN("five");
}

static void reading_again_keeps_the_file(void **state)
{
    char variable[300];

    (void)state;
    snprintf(variable, sizeof variable, "NCCL_DEBUG_FILE=%s/r", folder);
    RUN(say_after_resets, "NCCL_DEBUG=INFO", variable);
    assert_int_equal(out.n, 1);
    assert_true(said("WARN five\n"));
    const char *text = take_file("r");
    assert_non_null(strstr(text, "INFO one\n"));
    assert_non_null(strstr(text, "INFO two\n"));
    assert_null(strstr(text, "three"));
    assert_non_null(strstr(text, "WARN four\n"));
}

static void write_conf(const char *name, const char *text)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void configuration_files_count(void **state)
{
    char variable[300], pattern[400];

    (void)state;
    write_conf("conf", "# mine\nNCCL_DEBUG=INFO\nnonsense\nNCCL_DEBUG_TIMESTAMP_LEVELS=NONE\n");
    snprintf(variable, sizeof variable, "NCCL_CONF_FILE=%s/conf", folder);
    RUN(one_of_each, variable);
    snprintf(pattern, sizeof pattern, "NCCL INFO NCCL_DEBUG set by %s/conf:2 to INFO\n", folder);
    expect_said(pattern);
    snprintf(pattern, sizeof pattern, "NCCL WARN %s/conf:3 is not NAME=VALUE; the line is left out\n", folder);
    expect_said(pattern);
    take_file("conf");

    RUN(one_of_each, "NCCL_DEBUG=WARN", variable);
    snprintf(pattern, sizeof pattern, "NCCL WARN %s/conf cannot be read; no setting is taken from it\n", folder);
    expect_said(pattern);
}

/* ---- the time ---- */

static const struct {
    const char *format, *levels, *warn, *info;
} times[] = {
    {"NCCL_DEBUG_TIMESTAMP_FORMAT=", "NCCL_DEBUG_TIMESTAMP_LEVELS=INFO", "^\n[a-zA-Z]",
     "^\\[[-0-9]{10} [:0-9]{8}\\] [a-zA-Z]"},
    {"NCCL_DEBUG_TIMESTAMP_FORMAT=<%S.%3f>_", "NCCL_DEBUG_TIMESTAMP_LEVELS=ALL", "^\n<[0-9]{2}\\.[0-9]{3}> ",
     "^<[0-9]{2}\\.[0-9]{3}> "},
    {"NCCL_DEBUG_TIMESTAMP_FORMAT=%9f|%%3f|%0f|", "NCCL_DEBUG_TIMESTAMP_LEVELS=^INFO", "^\n[0-9]{9}\\|%3f\\|",
     "^[a-zA-Z]"},
    {"NCCL_DEBUG_TIMESTAMP_FORMAT=100%", "NCCL_DEBUG_TIMESTAMP_LEVELS=WARN", "^\n100", "^[a-zA-Z]"},
    {"NCCL_DEBUG_TIMESTAMP_FORMAT=%n%n", "NCCL_DEBUG_TIMESTAMP_LEVELS=NONE", "^\n[a-zA-Z]", "^[a-zA-Z]"},
};

static void say_two(void)
{
    KL_WARN("w");
    KL_INFO(KL_INIT, "i");
}

static void times_are_as_asked(void **state)
{
    char pattern[200];

    (void)state;
    FOR_EACH_CASE(c, times)
    {
        RUN(say_two, "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT", c->format, c->levels);
        snprintf(pattern, sizeof pattern, "%s.*NCCL WARN w\n$", c->warn);
        expect_said(pattern);
        snprintf(pattern, sizeof pattern, "%s.*NCCL INFO i\n$", c->info);
        expect_said(pattern);
    }
}

static void a_time_that_does_not_fit_is_the_default_one(void **state)
{
    char variable[300] = "NCCL_DEBUG_TIMESTAMP_FORMAT=";

    (void)state;
    for (int i = 0; i < 110; i++) strcat(variable, "%c"); /* 24 bytes each */
    RUN(say_two, "NCCL_DEBUG=WARN", variable);
    expect_said("^\n\\[[-0-9]{10} [:0-9]{8}\\] [a-zA-Z]");
}

/* ---- edges ---- */

static void say_info_warn_info(void)
{
    KL_INFO(KL_INIT, "before");
    KL_WARN("warning");
    KL_INFO(KL_INIT, "after");
}

static void a_warning_can_raise_the_level(void **state)
{
    (void)state;
    RUN(say_info_warn_info, "NCCL_DEBUG=WARN", "NCCL_WARN_ENABLE_DEBUG_INFO=1");
    assert_false(said("before"));
    assert_true(said("after"));
    RUN(say_info_warn_info, "NCCL_DEBUG=WARN", "NCCL_WARN_ENABLE_DEBUG_INFO=0");
    assert_false(said("after"));
    RUN(say_info_warn_info, "NCCL_DEBUG=VERSION", "NCCL_WARN_ENABLE_DEBUG_INFO=1");
    assert_int_equal(out.n, 0);
}

static void say_strange_things(void)
{
    char text[WRITE_BYTES];

    KL_INFO(KL_INIT, "a%cb%cc%cd\te", '\n', '\r', 27);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    KL_INFO(KL_INIT, "%s", text);
}

static void a_line_stays_a_line(void **state)
{
    (void)state;
    RUN(say_strange_things, "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT");
    expect_said("NCCL INFO a\\?b\\?c\\?d\te\n$");
    expect_said("NCCL INFO x{255}x{255}x{255}x{255}x{255}x{255}x{255}x*\n$"); /* at least 1785 characters, then cut */
    assert_int_equal(out.n, 2);
}

static void fail_to_write(void)
{
    errno = ENOTTY;
    KL_INFO(KL_INIT, "for nobody");
    if (errno != ENOTTY) _exit(1);
}

static void errno_survives_a_line(void **state)
{
    (void)state;
    RUN(fail_to_write, "NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=/dev/full");
    assert_int_equal(out.n, 0);
}

/* Only a machine whose name has a dot can show that lines omit the domain. */
static void say_on_another_host(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWUTS) && unshare(CLONE_NEWUTS)) return;
    if (!sethostname("short.example.org", 17)) KL_INFO(KL_INIT, "hello");
}

static void hosts_have_short_names(void **state)
{
    (void)state;
    RUN(say_on_another_host, "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT");
    if (out.n)
        expect_said("^short:[0-9]+:[0-9]+ NCCL INFO hello\n$");
    else
        printf("not tried, since no UTS namespace can be made here\n");
}

static int calls;

static int counted(void)
{
    return ++calls;
}

static void say_costly_things(void)
{
    KL_INFO(KL_INIT, "%d", counted());
    KL_INFO(KL_NET, "%d", counted());
    KL_WARN("<%d>", calls);
}

static void what_is_off_is_not_evaluated(void **state)
{
    (void)state;
    RUN(say_costly_things, "NCCL_DEBUG=INFO");
    assert_true(said("<1>"));
}

static void say_in_a_child(void)
{
    int status;

    KL_INFO(KL_INIT, "parent");
    pid_t child = fork();
    if (!child) {
        KL_INFO(KL_INIT, "child of %d is %d", (int)getppid(), (int)getpid());
        _exit(0);
    }
    waitpid(child, &status, 0);
}

static void a_forked_child_has_its_own_pid(void **state)
{
    int parent, child, pid, tid;
    const char *line = NULL;

    (void)state;
    RUN(say_in_a_child, "NCCL_DEBUG=INFO");
    for (int i = 0; i < out.n; i++)
        if (strstr(out.text[i], "child of")) line = out.text[i];
    assert_non_null(line);
    assert_int_equal(sscanf(strstr(line, "child of"), "child of %d is %d", &parent, &child), 2);
    assert_int_equal(sscanf(strchr(line, ':'), ":%d:%d ", &pid, &tid), 2);
    assert_int_equal(parent, out.pid);
    assert_int_equal(pid, child);
    assert_int_equal(tid, child);
}

enum { THREADS = 8, LINES = 6 };

static void *say_lines(void *arg)
{
    (void)arg;
    for (int i = 0; i < LINES; i++) KL_INFO(KL_NET, "line %d", i);
    return NULL;
}

/* All threads use the log for the first time at once, while the main thread reads the variables again. */
static void say_from_threads(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, say_lines, NULL);
    for (int i = 0; i < 20; i++) kl_log_reset();
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void threads_need_no_care(void **state)
{
    (void)state;
    RUN(say_from_threads, "NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=NET");
    assert_int_equal(count("NCCL INFO line"), THREADS * LINES);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder); /* fails if a test left something behind */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_include_those_below),
        cmocka_unit_test(subsystems_filter_all_but_warnings),
        cmocka_unit_test(lines_have_nccls_shape),
        cmocka_unit_test(settings_are_said_once_and_secrets_never),
        cmocka_unit_test(a_file_takes_the_lines),
        cmocka_unit_test(reading_again_keeps_the_file),
        cmocka_unit_test(configuration_files_count),
        cmocka_unit_test(times_are_as_asked),
        cmocka_unit_test(a_time_that_does_not_fit_is_the_default_one),
        cmocka_unit_test(a_warning_can_raise_the_level),
        cmocka_unit_test(a_line_stays_a_line),
        cmocka_unit_test(errno_survives_a_line),
        cmocka_unit_test(hosts_have_short_names),
        cmocka_unit_test(what_is_off_is_not_evaluated),
        cmocka_unit_test(a_forked_child_has_its_own_pid),
        cmocka_unit_test(threads_need_no_care),
    };

    if (!access("/etc/nccl.conf", F_OK)) {
        printf("skipped: /etc/nccl.conf of this machine would change what is logged\n");
        return KOLO_TEST_SKIP;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
