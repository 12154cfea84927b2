/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/ras_nccl.h"

#include "base/clock.h"
#include "base/error.h"
#include "comm/diagnosis/protocol.h"
#include "os/socket.h"
#include "tools/kolo/ras_client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 28028, CLIENT_MS = 10000, QUESTION = 128 };

/* ---- asking ---- */

static ncclResult_t address_of(const char *text, union kl_address *address)
{
    char with_port[300];
    const char *colon = strrchr(text, ':');
    const bool has_port = colon && (strchr(text, ':') == colon || colon[-1] == ']');

    snprintf(with_port, sizeof with_port, has_port ? "%s" : "%s:%d", text, PORT);
    return kl_address_parse(with_port, address);
}

static ncclResult_t connect_to(const char *text, uint64_t deadline, int *fd)
{
    union kl_address address;

    KL_TRY(address_of(text, &address));
    if (kl_socket_connect_begin(&address, fd)) return KL_FAIL_ERRNO("cannot connect to %s", text);
    struct pollfd p = {.fd = *fd, .events = POLLOUT};

    if (poll(&p, 1, kl_deadline_left_ms(deadline, 60000)) == 1 && !kl_socket_connect_finish(*fd)) return ncclSuccess;
    ncclResult_t rc = KL_FAIL_ERRNO("cannot connect to %s: no process with NCCL_RAS_ENABLE=1 listens there", text);

    kl_socket_close(*fd);
    return rc;
}

static ncclResult_t send_line(int fd, const char *line, const struct kl_io_wait *wait)
{
    const enum kl_io io = kl_socket_send(fd, line, strlen(line), wait);

    return io ? kl_io_fail(io, "asking RAS") : ncclSuccess;
}

/* One line of the server, without its end. */
static ncclResult_t read_line(int fd, const struct kl_io_wait *wait, char line[QUESTION])
{
    for (int n = 0; n + 1 < QUESTION; n++) {
        const enum kl_io io = kl_socket_recv(fd, &line[n], 1, wait);

        if (io) return kl_io_fail(io, "the answer of RAS");
        line[n + 1] = 0;
        if (line[n] != '\n') continue;
        line[n] = 0;
        return ncclSuccess;
    }
    return KL_FAIL(ncclRemoteError, "RAS answered %.40s..., which is no reply of its protocol", line);
}

static ncclResult_t read_all(int fd, const struct kl_io_wait *wait, char **answer)
{
    size_t bytes = 0;
    FILE *to = open_memstream(answer, &bytes);

    if (!to) return KL_NOMEM("an answer");
    ncclResult_t rc = kl_ras_receive(fd, wait->deadline, "RAS", to);

    fclose(to);
    if (!rc) return ncclSuccess;
    free(*answer);
    *answer = NULL;
    return rc;
}

/* The service answers line by line. `json`: as JSON; *refused: the release does not know that. */
static ncclResult_t talk(int fd, int timeout_s, bool json, const struct kl_io_wait *wait, char **answer, bool *refused)
{
    char line[QUESTION], reply[QUESTION];

    *refused = false;
    KL_TRY(send_line(fd, "CLIENT PROTOCOL 2\n", wait));
    KL_TRY(read_line(fd, wait, reply));
    if (strncmp(reply, "SERVER PROTOCOL ", 16))
        return KL_FAIL(ncclRemoteError, "no RAS service: it answered %s", reply);
    snprintf(line, sizeof line, "TIMEOUT %d\n", timeout_s);
    KL_TRY(send_line(fd, line, wait));
    KL_TRY(read_line(fd, wait, reply));
    if (json) {
        KL_TRY(send_line(fd, "SET FORMAT json\n", wait));
        *refused = read_line(fd, wait, reply) || strcmp(reply, "OK") != 0;
        if (*refused) return KL_FAIL(ncclRemoteError, "RAS does not speak JSON: %s", reply);
    }
    KL_TRY(send_line(fd, "VERBOSE STATUS\n", wait));
    return read_all(fd, wait, answer);
}

static ncclResult_t ask(const char *address, int timeout_s, bool json, uint64_t deadline, char **answer, bool *refused)
{
    const struct kl_io_wait wait = {.deadline = deadline};
    int fd;

    *refused = false;
    KL_TRY(connect_to(address, deadline, &fd));
    ncclResult_t rc = talk(fd, timeout_s, json, &wait, answer, refused);

    kl_socket_close(fd);
    return rc;
}

ncclResult_t kl_ras_nccl_ask(const char *address, int timeout_s, int timeout_ms, char **answer)
{
    const uint64_t deadline = kl_deadline_in_ms((uint64_t)timeout_ms);
    bool refused;
    ncclResult_t rc = ask(address, timeout_s, true, deadline, answer, &refused);

    return refused ? ask(address, timeout_s, false, deadline, answer, &refused) : rc;
}

/* ---- the double ---- */

struct service {
    const json_t *report;
    const struct kl_ras_fault *fault;
    int n;
};

/* Clients are served side by side: one that is silent, or does not read, holds up nobody. */
enum {
    GUESTS = 64,
    UNREAD = 4096, /* bytes of replies that a client may leave unread */
    TICK_MS = 250  /* between two looks at deadlines */
};

struct guest {
    int fd;
    uint64_t deadline;
    struct kl_ras_session session;
    char *out; /* output; `sent` of `bytes` have gone */
    size_t bytes, sent;
    bool last; /* read nothing more; close when all is sent */
};

struct guests {
    struct guest guest[GUESTS]; /* oldest first */
    int n;
};

static bool add_output(struct guest *g, const char *text, size_t bytes)
{
    char *grown = bytes ? realloc(g->out, g->bytes + bytes) : NULL;

    if (!grown) return !bytes;
    memcpy(grown + g->bytes, text, bytes);
    g->out = grown;
    g->bytes += bytes;
    return true;
}

static bool add_report(struct guest *g, const struct service *s)
{
    static const char no_text[] = "ERROR: this double has no text; SET FORMAT json first\n";
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = g->session.json ? open_memstream(&text, &bytes) : NULL;

    if (!g->session.json) return add_output(g, no_text, sizeof no_text - 1);
    bool made = to && !kl_ras_nccl_print(s->report, s->fault, s->n, time(NULL), to);

    if (to) fclose(to);
    made = made && add_output(g, text, bytes);
    free(text);
    return made;
}

/* False: the guest goes. */
static bool serve_guest(struct guest *g, const struct service *s)
{
    char line[QUESTION], reply[KL_RAS_REPLY];
    const ssize_t n = recv(g->fd, line, sizeof line, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) return false;
    for (size_t at = 0, taken; at < (size_t)n && !g->last; at += taken) {
        const enum kl_ras_result turn = kl_ras_parse(&g->session, line + at, (size_t)n - at, &taken, reply);

        if (!add_output(g, reply, strlen(reply))) return false;
        if (turn == KL_RAS_REPORT && !add_report(g, s)) return false;
        g->last = turn != KL_RAS_MORE && turn != KL_RAS_ANSWER;
    }
    return g->bytes - g->sent <= UNREAD || g->last;
}

static bool tell_guest(struct guest *g)
{
    while (g->sent < g->bytes) {
        const ssize_t n = send(g->fd, g->out + g->sent, g->bytes - g->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return true;
        if (n <= 0) return false;
        g->sent += (size_t)n;
    }
    return !g->last;
}

static void end_guest(struct guests *all, int i)
{
    kl_socket_close(all->guest[i].fd);
    free(all->guest[i].out);
    memmove(&all->guest[i], &all->guest[i + 1], (size_t)(--all->n - i) * sizeof all->guest[0]);
}

/* The oldest that has not asked for a report makes room, else the oldest. */
static void let_in(struct guests *all, int listener)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int idle = 0;

    if (fd < 0) return;
    while (all->n == GUESTS && idle < GUESTS && all->guest[idle].last) idle++;
    if (all->n == GUESTS) end_guest(all, idle < GUESTS ? idle : 0);
    all->guest[all->n++] = (struct guest){.fd = fd, .deadline = kl_deadline_in_ms(CLIENT_MS)};
}

static void serve_guests(struct guests *all, const struct service *s, const struct pollfd *p)
{
    for (int i = all->n - 1; i >= 0; i--) {
        struct guest *g = &all->guest[i];
        bool stays = kl_now_ns() < g->deadline;

        if (stays && !g->last && p[i].revents & (POLLIN | POLLERR | POLLHUP)) stays = serve_guest(g, s);
        if (stays && g->bytes) stays = tell_guest(g);
        if (!stays) end_guest(all, i);
    }
}

static void serve_once(int listener, struct guests *all, const struct service *s)
{
    struct pollfd p[GUESTS + 1];

    for (int i = 0; i < all->n; i++) {
        const struct guest *g = &all->guest[i];

        p[i] = (struct pollfd){.fd = g->fd,
                               .events = (short)((g->last ? 0 : POLLIN) | (g->sent < g->bytes ? POLLOUT : 0))};
    }
    p[all->n] = (struct pollfd){.fd = listener, .events = POLLIN};
    const int n = all->n;

    if (poll(p, (nfds_t)n + 1, n ? TICK_MS : -1) < 0) return;
    serve_guests(all, s, p);
    if (p[n].revents) let_in(all, listener);
}

ncclResult_t kl_ras_nccl_serve(const char *text, const json_t *report, const struct kl_ras_fault *fault, int n)
{
    const struct service s = {report, fault, n};
    struct guests guests = {.n = 0};
    union kl_address address;
    char name[KL_ADDRESS_TEXT];
    int listener;

    KL_TRY(address_of(text, &address));
    KL_TRY(kl_socket_listen(&address, &listener));
    printf("a double of NCCL's RAS service listens at %s\n", kl_address_format(&address, name));
    fflush(stdout);
    for (;;) serve_once(listener, &guests, &s);
}
