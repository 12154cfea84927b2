/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_exchange BYTES:ITERATIONS ...: the time of bare TCP for the bytes of an all-reduce of two ranks. Each sends and receives
 * BYTES, both at once, over one connection, from and to one buffer, and polls and yields meanwhile. One line per size: bytes,
 * microseconds. RANK is 0 (listens) or 1; ADDRESS is where 0 listens, an IPv4 address; PORT.
 */
#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SPIN = 200, TIMEOUT_MS = 10000 };

static void must(bool right, const char *what)
{
    if (right) return;
    perror(what);
    exit(1);
}

static struct sockaddr_in address_of(const char *host, const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};

    must(inet_pton(AF_INET, host, &a.sin_addr) == 1, host);
    return a;
}

static int listen_for(const struct sockaddr_in *a)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    must(!bind(fd, (const struct sockaddr *)a, sizeof *a) && !listen(fd, 1), "listen");
    int peer = accept(fd, NULL, NULL);
    must(peer >= 0, "accept");
    close(fd);
    return peer;
}

static int call(const struct sockaddr_in *a)
{
    uint64_t deadline = kl_deadline_in_ms(TIMEOUT_MS);

    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (!connect(fd, (const struct sockaddr *)a, sizeof *a)) return fd;
        must(!kl_deadline_passed(deadline), "connect");
        close(fd);
        usleep(1000);
    }
}

/* Bytes moved; 0: none now. */
static size_t moved(ssize_t n)
{
    must(n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)), "connection");
    return n > 0 ? (size_t)n : 0;
}

static void exchange(int fd, char *send_from, char *recv_to, size_t bytes)
{
    size_t out = 0, in = 0;

    for (unsigned idle = 0; out < bytes || in < bytes;) {
        size_t before = out + in;
        if (out < bytes) out += moved(send(fd, send_from + out, bytes - out, MSG_DONTWAIT | MSG_NOSIGNAL));
        if (in < bytes) in += moved(recv(fd, recv_to + in, bytes - in, MSG_DONTWAIT));
        idle = out + in > before ? 0 : idle + 1;
        if (idle > SPIN) sched_yield();
    }
}

static double run(int fd, char *buffer, size_t bytes, int iterations)
{
    exchange(fd, buffer, buffer + bytes, 1);
    uint64_t begin = kl_now_ns();
    for (int i = 0; i < iterations; i++) exchange(fd, buffer, buffer + bytes, bytes);
    return (double)(kl_now_ns() - begin) / 1e3 / iterations;
}

int main(int argc, char **argv)
{
    const char *rank = getenv("RANK"), *host = getenv("ADDRESS"), *port = getenv("PORT");
    int on = 1;

    must(rank && host && port, "RANK, ADDRESS and PORT");
    struct sockaddr_in a = address_of(host, port);
    int fd = *rank == '0' ? listen_for(&a) : call(&a);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (int i = 1; i < argc; i++) {
        char *rest;
        size_t bytes = strtoul(argv[i], &rest, 10);
        int iterations = *rest == ':' ? (int)strtol(rest + 1, NULL, 10) : 0;
        must(iterations > 0, argv[i]);
        char *buffer = calloc(2, bytes);
        must(buffer, "memory");
        memset(buffer, 1, 2 * bytes);
        run(fd, buffer, bytes, iterations / 10 + 1);
        double us = run(fd, buffer, bytes, iterations);
        if (*rank == '0') printf("%zu %.3f\n", bytes, us);
        free(buffer);
    }
    close(fd);
    return 0;
}
