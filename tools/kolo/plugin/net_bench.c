/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/net_bench.h"

#include "base/clock.h"
#include "base/error.h"
#include "tools/kolo/cmd.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NETS = 2, SIDES = 2, TIMEOUT_MS = 60000, LATER_MS = 500 };

static pid_t start(const struct kl_perf_config *config, const char *file, int number, const int pair[2],
                   struct kl_net_bench_side *side)
{
    fflush(NULL);
    const pid_t pid = fork();

    if (pid) return pid;
    signal(SIGPIPE, SIG_IGN);
    close(pair[1 - number]);
    kl_error_quiet(1);
    kl_net_bench_side_run(config, file, number, pair[number], side);
    fflush(NULL);
    _exit(side->result.verdict == KL_CHECK_FAILS);
}

struct watch {
    pid_t pid[SIDES];
    bool ended[SIDES];
    uint64_t progress, since; /* of both sides together */
    uint64_t timeout_ns;
};

/* The process died in a call of the plugin. */
static void look_at_end(struct watch *w, struct kl_net_bench_side *side, int i)
{
    struct kl_check_result *r = &side[i].result;
    char call[KL_CHECK_CALL];
    int status;

    if (w->ended[i] || waitpid(w->pid[i], &status, WNOHANG) != w->pid[i]) return;
    w->ended[i] = true;
    snprintf(call, sizeof call, "%s", *r->call ? r->call : "none");
    if (WIFSIGNALED(status))
        kl_check_fails(r, "its process was killed by signal %d (%s); call under way: %s", WTERMSIG(status),
                       strsignal(WTERMSIG(status)), call);
    else if (WEXITSTATUS(status))
        kl_check_fails(r, "its process ended with status %d; call under way: %s", WEXITSTATUS(status), call);
}

/* Nothing has come about for long: name the call of each side that did not return. */
static bool is_stuck(struct watch *w, struct kl_net_bench_side *side)
{
    const uint64_t progress = kl_load_relaxed(&side[0].progress) + kl_load_relaxed(&side[1].progress);

    if (progress != w->progress) w->since = kl_now_ns();
    w->progress = progress;
    if (kl_now_ns() - w->since < w->timeout_ns) return false;
    for (int i = 0; i < SIDES; i++) {
        char call[KL_CHECK_CALL];
        snprintf(call, sizeof call, "%s", side[i].result.call);
        kl_check_fails(&side[i].result, "no message and no connection came about for %.0f s; call under way: %s",
                       (double)w->timeout_ns / 1e9, *call ? call : "none, it tests again and again");
    }
    return true;
}

static void await(struct watch *w, struct kl_net_bench_side *side)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    uint64_t failed_at = 0;

    w->since = kl_now_ns();
    while (!w->ended[0] || !w->ended[1]) {
        nanosleep(&pause, NULL);
        for (int i = 0; i < SIDES; i++) look_at_end(w, side, i);
        const bool failed = side[0].result.verdict == KL_CHECK_FAILS || side[1].result.verdict == KL_CHECK_FAILS;
        if (failed && !failed_at) failed_at = kl_now_ns();
        if (!is_stuck(w, side) && !(failed_at && kl_now_ns() - failed_at > LATER_MS * 1000000u)) continue;
        for (int i = 0; i < SIDES; i++)
            if (!w->ended[i]) {
                kill(w->pid[i], SIGKILL);
                waitpid(w->pid[i], NULL, 0);
                w->ended[i] = true;
            }
    }
}

static bool measure(const struct kl_perf_config *config, const char *file, struct kl_net_bench_side *side)
{
    const uint64_t timeout_ms = config->timeout_ms ? config->timeout_ms : TIMEOUT_MS;
    struct watch w = {.timeout_ns = timeout_ms * 1000000u};
    int pair[SIDES];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return kl_check_fails(&side[0].result, "a pair of sockets: %s", strerror(errno));
    for (int i = 0; i < SIDES; i++) w.pid[i] = start(config, file, i, pair, &side[i]);
    for (int i = 0; i < SIDES; i++) {
        close(pair[i]);
        w.ended[i] = w.pid[i] < 0;
        if (w.pid[i] < 0) kl_check_fails(&side[i].result, "no process: %s", strerror(errno));
    }
    await(&w, side);
    return side[0].result.verdict == KL_CHECK_OK && side[1].result.verdict == KL_CHECK_OK;
}

static int complain(const char *net, const struct kl_net_bench_side *side)
{
    for (int i = 0; i < SIDES; i++)
        if (side[i].result.verdict == KL_CHECK_FAILS)
            fprintf(stderr, "kolo perf: %s, process %d: %s\n", net, i, side[i].result.figure);
    return EXIT_PROBLEM;
}

/* ---- the whole ---- */

/* The dynamic linker looks for a name without a slash in its own folders only. */
static const char *in_folder(const char *file, char here[PATH_MAX])
{
    if (strchr(file, '/') || access(file, F_OK) || snprintf(here, PATH_MAX, "./%s", file) >= PATH_MAX) return file;
    return here;
}

int kl_net_bench(const struct kl_perf_config *config)
{
    const size_t bytes = NETS * SIDES * sizeof(struct kl_net_bench_side);
    struct kl_net_bench_side *side = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char here[PATH_MAX];
    const char *file = in_folder(config->net_plugin, here);
    int code = EXIT_OK;

    if (side == MAP_FAILED) {
        fprintf(stderr, "kolo perf: memory for the figures: %s\n", strerror(errno));
        return EXIT_PROBLEM;
    }
    if (!measure(config, file, side))
        code = complain(file, side);
    else if (!measure(config, NULL, side + SIDES))
        code = complain(kl_net_socket.name, side + SIDES);
    else
        kl_net_bench_text(config, side, stdout);
    if (!code && config->json && kl_net_bench_json(config, side, config->json)) {
        fprintf(stderr, "kolo perf: -J %s: %s\n", config->json, strerror(errno));
        code = EXIT_PROBLEM;
    }
    munmap(side, bytes);
    return code;
}
