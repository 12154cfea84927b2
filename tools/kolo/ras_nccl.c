/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/ras_nccl.h"

#include "base/clock.h"
#include "base/error.h"
#include "comm/diagnosis/protocol.h"
#include "os/socket.h"
#include "tools/kolo/ras_client.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

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
static ncclResult_t hear_line(int fd, const struct kl_io_wait *wait, char line[QUESTION])
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

static ncclResult_t hear_all(int fd, const struct kl_io_wait *wait, char **answer)
{
    size_t bytes = 0;
    FILE *to = open_memstream(answer, &bytes);

    if (!to) return KL_NOMEM("an answer");
    ncclResult_t rc = kl_ras_hear(fd, wait->deadline, "RAS", to);

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
    KL_TRY(hear_line(fd, wait, reply));
    if (strncmp(reply, "SERVER PROTOCOL ", 16))
        return KL_FAIL(ncclRemoteError, "no RAS service: it answered %s", reply);
    snprintf(line, sizeof line, "TIMEOUT %d\n", timeout_s);
    KL_TRY(send_line(fd, line, wait));
    KL_TRY(hear_line(fd, wait, reply));
    if (json) {
        KL_TRY(send_line(fd, "SET FORMAT json\n", wait));
        *refused = hear_line(fd, wait, reply) || strcmp(reply, "OK") != 0;
        if (*refused) return KL_FAIL(ncclRemoteError, "RAS does not speak JSON: %s", reply);
    }
    KL_TRY(send_line(fd, "VERBOSE STATUS\n", wait));
    return hear_all(fd, wait, answer);
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

static ncclResult_t send_report(int fd, const struct service *s, const struct kl_io_wait *wait)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    ncclResult_t rc = to ? kl_ras_nccl_print(s->report, s->fault, s->n, time(NULL), to) : KL_NOMEM("a report");

    if (to) fclose(to);
    if (!rc && kl_socket_send(fd, text, bytes, wait)) rc = KL_FAIL(ncclRemoteError, "a client left early");
    free(text);
    return rc;
}

/* False: the client is done. */
static bool obey(int fd, const struct service *s, struct kl_ras_session *session, char c, const struct kl_io_wait *wait)
{
    char reply[KL_RAS_REPLY];
    size_t taken;
    const enum kl_ras_result turn = kl_ras_parse(session, &c, 1, &taken, reply);

    if (*reply && kl_socket_send(fd, reply, strlen(reply), wait)) return false;
    if (turn == KL_RAS_REPORT && session->json) (void)send_report(fd, s, wait);
    if (turn == KL_RAS_REPORT && !session->json)
        (void)send_line(fd, "ERROR: this double has no text; SET FORMAT json first\n", wait);
    return turn == KL_RAS_MORE || turn == KL_RAS_ANSWER;
}

static void serve_client(int fd, const struct service *s)
{
    const struct kl_io_wait wait = {.deadline = kl_deadline_in_ms(CLIENT_MS)};
    struct kl_ras_session session = {.have = 0};
    char c;

    while (!kl_socket_recv(fd, &c, 1, &wait) && obey(fd, s, &session, c, &wait)) {
    }
}

ncclResult_t kl_ras_nccl_serve(const char *text, const json_t *report, const struct kl_ras_fault *fault, int n)
{
    const struct service s = {report, fault, n};
    union kl_address address;
    char name[KL_ADDRESS_TEXT];
    int listener, fd;

    KL_TRY(address_of(text, &address));
    KL_TRY(kl_socket_listen(&address, &listener));
    printf("a double of NCCL's RAS service listens at %s\n", kl_address_format(&address, name));
    fflush(stdout);
    for (;;) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        const struct kl_io_wait wait = {.deadline = kl_deadline_in_ms(CLIENT_MS)};

        if (poll(&p, 1, -1) != 1 || kl_socket_accept(listener, &wait, &fd)) continue;
        serve_client(fd, &s);
        kl_socket_close(fd);
    }
}
