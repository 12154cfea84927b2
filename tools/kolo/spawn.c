/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/spawn.h"

#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANK_EXEC "rank-exec" /* PARENT NAMESPACE PATH ARGV... */
#define JANITOR   "janitor"   /* groups to kill on its standard input */

static char command_name[] = "kolo";

/* ---- the launcher's side ---- */

static size_t count_words(char *const *argv)
{
    size_t n = 0;

    while (argv[n]) n++;
    return n;
}

static int actions_of(const struct kl_spawn *what, posix_spawn_file_actions_t *actions)
{
    int err = posix_spawn_file_actions_adddup2(actions, what->in, 0);

    if (!err) err = posix_spawn_file_actions_adddup2(actions, what->out, 1);
    if (!err) err = posix_spawn_file_actions_adddup2(actions, what->err, 2);
    /* Onto itself: clears close-on-exec, in the child only. */
    if (!err && what->ns >= 0) err = posix_spawn_file_actions_adddup2(actions, what->ns, what->ns);
    if (!err && what->kept > 0) err = posix_spawn_file_actions_adddup2(actions, what->kept, what->kept);
    return err;
}

static void attributes_of(posix_spawnattr_t *attr, const sigset_t *mask, short extra)
{
    sigset_t dfl;

    sigemptyset(&dfl);
    sigaddset(&dfl, SIGPIPE);
    posix_spawnattr_setsigdefault(attr, &dfl);
    posix_spawnattr_setsigmask(attr, mask);
    posix_spawnattr_setpgroup(attr, 0);
    posix_spawnattr_setflags(attr, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | extra));
}

int kl_spawn_rank(const struct kl_spawn *what, pid_t *pid)
{
    enum { OWN_WORDS = 5 };
    size_t n = count_words(what->argv);
    char **argv = calloc(OWN_WORDS + n + 1, sizeof *argv);
    char parent[16], ns[16], hidden[] = RANK_EXEC;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;

    if (!argv) return ENOMEM;
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    snprintf(ns, sizeof ns, "%d", what->ns);
    char *own[OWN_WORDS] = {command_name, hidden, parent, ns, (char *)(uintptr_t)what->path};
    memcpy(argv, own, sizeof own);
    memcpy(argv + OWN_WORDS, what->argv, n * sizeof *argv);

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    attributes_of(&attr, &what->mask, POSIX_SPAWN_SETPGROUP);
    int err = actions_of(what, &actions);
    if (!err) err = posix_spawn(pid, KL_SPAWN_SELF, &actions, &attr, argv, what->env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    free(argv);
    return err;
}

int kl_janitor_start(struct kl_janitor *janitor)
{
    char hidden[] = JANITOR, *argv[] = {command_name, hidden, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    int fds[2];

    *janitor = (struct kl_janitor){.fd = -1};
    if (pipe2(fds, O_CLOEXEC)) return errno;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    attributes_of(&attr, &none, POSIX_SPAWN_SETSID);
    int err = posix_spawn_file_actions_adddup2(&actions, fds[0], 0);
    if (!err) err = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (!err) err = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (!err) err = posix_spawn(&janitor->pid, KL_SPAWN_SELF, &actions, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[0]);
    if (err)
        close(fds[1]);
    else
        janitor->fd = fds[1];
    return err;
}

void kl_janitor_watch(const struct kl_janitor *janitor, pid_t group)
{
    if (write(janitor->fd, &group, sizeof group) != sizeof group) return; /* it died: there is none to tell */
}

void kl_janitor_dismiss(struct kl_janitor *janitor)
{
    if (!janitor->pid) return;
    kl_janitor_watch(janitor, 0);
    close(janitor->fd);
    while (waitpid(janitor->pid, NULL, 0) < 0 && errno == EINTR) continue;
    *janitor = (struct kl_janitor){.fd = -1};
}

/* 0, or why not. */
static int check_program(const char *path)
{
    struct stat st;

    if (stat(path, &st)) return errno;
    if (S_ISDIR(st.st_mode)) return EISDIR;
    return S_ISREG(st.st_mode) && !access(path, X_OK) ? 0 : EACCES;
}

static int copy_program(const char *name, char **file)
{
    int err = check_program(name);

    if (err) return err == EACCES || err == EISDIR ? err : ENOENT;
    *file = strdup(name);
    return *file ? 0 : ENOMEM;
}

int kl_find_program(const char *name, char **file)
{
    const char *path = getenv("PATH");
    int result = ENOENT;

    *file = NULL;
    if (strchr(name, '/')) return copy_program(name, file);
    if (!path) path = "/usr/local/bin:/usr/bin:/bin";
    for (; *name; path += strspn(path, ":")) {
        int length = (int)strcspn(path, ":");
        char *tried;

        if (!length) return result;
        if (asprintf(&tried, "%.*s/%s", length, path, name) < 0) return ENOMEM;
        int err = check_program(tried);
        if (!err) return *file = tried, 0;
        if (err == EACCES) result = EACCES;
        free(tried);
        path += length;
    }
    return result;
}

/* ---- the other side: hidden commands ---- */

static int rank_exec(int argc, char **argv)
{
    enum { PARENT = 2, NAMESPACE, PATH, ARGV };

    int64_t parent, number;

    if (argc <= ARGV || !kl_parse_int(argv[PARENT], &parent) || !kl_parse_int(argv[NAMESPACE], &number))
        return KL_SPAWN_NOT_FOUND;
    int ns = (int)number;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)parent) return KL_SPAWN_NOT_FOUND; /* it died before we asked to be told */
    if (ns >= 0) {
        if (setns(ns, CLONE_NEWNET)) {
            fprintf(stderr, "kolo: entering the network namespace: %s\n", strerror(errno));
            return KL_SPAWN_NOT_FOUND;
        }
        close(ns);
    }
    execv(argv[PATH], argv + ARGV);
    int err = errno;
    bool lacks_interpreter = err == ENOENT && !access(argv[PATH], F_OK);
    fprintf(stderr, "kolo: starting %s: %s\n", argv[PATH],
            lacks_interpreter ? "the interpreter that its first line, or its header, names is not there"
                              : strerror(err));
    return err == ENOENT ? KL_SPAWN_NOT_FOUND : KL_SPAWN_NOT_RUN;
}

/* The launcher writes the group of each rank, and 0 when it ends well. */
static int janitor_main(void)
{
    pid_t *group = NULL, next;
    size_t n = 0, room = 0;

    while (read(0, &next, sizeof next) == sizeof next) {
        if (!next) return 0;
        if (n == room) {
            pid_t *more = realloc(group, (2 * room + 64) * sizeof *group);
            if (!more) break;
            group = more;
            room = 2 * room + 64;
        }
        group[n++] = next;
    }
    for (size_t i = 0; i < n; i++) kill(-group[i], SIGKILL);
    free(group);
    return 0;
}

void kl_spawn_hidden(int argc, char **argv)
{
    if (argc < 2) return;
    if (!strcmp(argv[1], RANK_EXEC)) exit(rank_exec(argc, argv));
    if (!strcmp(argv[1], JANITOR)) exit(janitor_main());
}
