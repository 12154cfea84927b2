/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/ras_client.h"

#include "base/clock.h"
#include "base/error.h"
#include "comm/diagnosis/ras.h"
#include "os/socket.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- finding processes ---- */

/* The name in a line of /proc/net/unix, if it belongs to a process of Kolo. */
static bool find_name(char *line, struct kl_ras_process *p)
{
    char *name = strstr(line, " @" KL_RAS_NAME);

    if (!name) return false;
    name += 2;
    name[strcspn(name, "\n ")] = 0;
    if (strlen(name) >= sizeof p->name) return false;
    *p = (struct kl_ras_process){.pid = (int)strtol(name + strlen(KL_RAS_NAME), NULL, 10)};
    snprintf(p->name, sizeof p->name, "%s", name);
    return p->pid > 0;
}

static int by_name(const void *a, const void *b)
{
    const struct kl_ras_process *x = a, *y = b;

    return x->pid == y->pid ? strcmp(x->name, y->name) : x->pid < y->pid ? -1 : 1;
}

static ncclResult_t add(struct kl_ras_process **process, int *n, const struct kl_ras_process *p)
{
    struct kl_ras_process *grown = realloc(*process, ((size_t)*n + 1) * sizeof *grown);

    if (!grown) return KL_NOMEM("processes");
    *process = grown;
    grown[(*n)++] = *p;
    return ncclSuccess;
}

/* A connection has its listener's name, too. */
static int each_once(struct kl_ras_process *process, int n)
{
    int kept = 0;

    for (int i = 0; i < n; i++)
        if (!kept || by_name(&process[kept - 1], &process[i])) process[kept++] = process[i];
    return kept;
}

ncclResult_t kl_ras_processes(struct kl_ras_process **process, int *n)
{
    FILE *f = fopen("/proc/net/unix", "re");
    struct kl_ras_process p;
    ncclResult_t rc = ncclSuccess;
    char line[512];

    *process = NULL;
    *n = 0;
    if (!f) return KL_FAIL_ERRNO("cannot read /proc/net/unix");
    while (!rc && fgets(line, sizeof line, f))
        if (find_name(line, &p)) rc = add(process, n, &p);
    fclose(f);
    if (*n) qsort(*process, (size_t)*n, sizeof **process, by_name);
    *n = each_once(*process, *n);
    return rc;
}

/* ---- asking ---- */

static ncclResult_t connect_unix(const char *name, int *fd)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (s < 0) return KL_FAIL_ERRNO("cannot create a socket");
    memcpy(to.sun_path + 1, name, n);
    if (connect(s, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n))) {
        ncclResult_t rc = KL_FAIL_ERRNO("cannot connect to %s", name);
        close(s);
        return rc;
    }
    *fd = s;
    return ncclSuccess;
}

static ncclResult_t connect_tcp(const char *text, uint64_t deadline, int *fd)
{
    union kl_address address;

    KL_TRY(kl_address_parse(text, &address));
    if (kl_socket_connect_begin(&address, fd)) return KL_FAIL_ERRNO("cannot connect to %s", text);
    struct pollfd p = {.fd = *fd, .events = POLLOUT};
    if (poll(&p, 1, kl_deadline_left_ms(deadline, 60000)) == 1 && !kl_socket_connect_finish(*fd)) return ncclSuccess;
    ncclResult_t rc = KL_FAIL_ERRNO("cannot connect to %s", text);
    close(*fd);
    return rc;
}

ncclResult_t kl_ras_receive(int fd, uint64_t deadline, const char *who, FILE *to)
{
    enum { MOST_BYTES = 256 << 20 };
    char bytes[4096];
    size_t heard = 0;

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, kl_deadline_left_ms(deadline, 60000));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return KL_FAIL(ncclRemoteError, "%s does not answer", who);
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        if (n == 0) return ncclSuccess;
        if (n < 0 && errno != EINTR && errno != EAGAIN) return KL_FAIL_ERRNO("the connection with %s", who);
        if (n > 0) fwrite(bytes, 1, (size_t)n, to);
        heard += n > 0 ? (size_t)n : 0;
        if (heard > MOST_BYTES) return KL_FAIL(ncclRemoteError, "%s answers with more than 256 MiB", who);
    }
}

static ncclResult_t talk(int fd, const char *question, uint64_t deadline, const char *who, char **answer)
{
    const struct kl_io_wait wait = {.deadline = deadline};
    size_t bytes = 0;
    FILE *to = open_memstream(answer, &bytes);

    if (!to) return KL_NOMEM("an answer");
    enum kl_io io = kl_socket_send(fd, question, strlen(question), &wait);
    ncclResult_t rc = io ? kl_io_fail(io, "asking %s", who) : kl_ras_receive(fd, deadline, who, to);
    fclose(to);
    if (!rc) return ncclSuccess;
    free(*answer);
    *answer = NULL;
    return rc;
}

ncclResult_t kl_ras_ask(const struct kl_ras_process *p, const char *question, int timeout_ms, char **answer)
{
    uint64_t deadline = kl_deadline_in_ms((uint64_t)timeout_ms);
    char who[160];
    int fd;

    if (p->pid)
        snprintf(who, sizeof who, "process %d", p->pid);
    else
        snprintf(who, sizeof who, "%s", p->name);
    KL_TRY(p->pid ? connect_unix(p->name, &fd) : connect_tcp(p->name, deadline, &fd));
    ncclResult_t rc = talk(fd, question, deadline, who, answer);
    close(fd);
    return rc;
}
