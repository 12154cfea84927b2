/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the stand-in: its lock, settings, GIDs, events, clock. */
#include "compat/verbs/standin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MTU_4096 = 5, SPEED_MBPS = 100000 };

pthread_mutex_t vs_lock = PTHREAD_MUTEX_INITIALIZER;

void vs_enter(void)
{
    pthread_mutex_lock(&vs_lock);
}

void vs_leave(void)
{
    pthread_mutex_unlock(&vs_lock);
}

/* ---- settings ---- */

static int number(const char *name, int otherwise, int most)
{
    const char *text = getenv(name);
    int value = text && *text ? (int)strtol(text, NULL, 10) : otherwise;

    return value < 0 || value > most ? otherwise : value;
}

static struct vs_settings read_settings(void)
{
    const char *address = getenv("KOLO_VERBS_ADDRESS"), *sysfs = getenv("KOLO_VERBS_SYSFS"),
               *link = getenv("KOLO_VERBS_LINK");
    struct vs_settings s = {.devices = number("KOLO_VERBS_DEVICES", 1, VS_MAX_DEVICES),
                            .mtu = number("KOLO_VERBS_MTU", MTU_4096, MTU_4096),
                            .inline_bytes = number("KOLO_VERBS_INLINE", 220, VS_MAX_INLINE),
                            .speed_mbps = number("KOLO_VERBS_SPEED", SPEED_MBPS, INT_MAX),
                            .max_msg = (uint32_t)number("KOLO_VERBS_MAX_MSG", 1 << 30, 1 << 30),
                            .infiniband = link && !strcmp(link, "IB"),
                            .sysfs = sysfs ? sysfs : ""};

    if (!address || inet_pton(AF_INET, address, &s.address) != 1) s.address.s_addr = htonl(INADDR_LOOPBACK);
    return s;
}

const struct vs_settings *vs_settings(void)
{
    static struct vs_settings settings;
    static bool known;

    if (!known) settings = read_settings();
    known = true;
    return &settings;
}

/* ---- GIDs, events, clock ---- */

/* As mlx5 fills its table: 0 and 1 are link local, 2 and 3 map the address; even ones RoCE v1, odd ones v2. */
VS_EXPORT int ibv_query_gid(struct kl_ibv_context *context, uint8_t port, int index, union kl_ibv_gid *gid)
{
    if (port != 1 || index < 0 || index >= VS_GIDS) {
        errno = EINVAL;
        return -1;
    }
    memset(gid, 0, sizeof *gid);
    if (index < 2) {
        gid->raw[0] = 0xfe;
        gid->raw[1] = 0x80;
        gid->raw[15] = (uint8_t)(context->device->name[4] - '0' + 1);
    } else if (index < 4) {
        gid->raw[10] = gid->raw[11] = 0xff;
        memcpy(gid->raw + 12, &vs_settings()->address, 4);
    }
    return 0;
}

void vs_device_event(struct kl_ibv_context *context, int type, void *element)
{
    const struct kl_ibv_async_event e = {.element.qp = element, .event_type = type};

    if (write(((struct vs_context *)context)->events, &e, sizeof e) != sizeof e)
        fprintf(stderr, "libibverbs (Kolo's stand-in): an event is lost\n");
}

uint64_t vs_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}
