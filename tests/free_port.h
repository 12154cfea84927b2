/* SPDX-License-Identifier: Apache-2.0 */
/**
 * free_port.h - a port that is free on all addresses of this host, and that the kernel does not give out by itself (those are 32768 and more, unless
 * configured otherwise): one that it gave, and that was closed, the next connection may have.
 */
#ifndef KOLO_TEST_FREE_PORT_H
#define KOLO_TEST_FREE_PORT_H

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

static inline int kolo_test_port_is_free(int port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int is_free = s >= 0 && !bind(s, (const struct sockaddr *)&at, sizeof at);

    if (s >= 0) close(s);
    return is_free;
}

static inline int kolo_test_free_port(void)
{
    enum { LOWEST = 20000, PORTS = 12000 };
    unsigned short some;
    int port;

    do {
        if (getrandom(&some, sizeof some, 0) != sizeof some) abort();
        port = LOWEST + some % PORTS;
    } while (!kolo_test_port_is_free(port));
    return port;
}

#endif
