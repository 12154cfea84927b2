/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/alive.h"

#include "base/clock.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

enum { LOOK_S = 1, MAY_PAUSE_S = 5, SILENT_S = 30 };

static const uint64_t second = 1000000000u;

/* Since the last check: was unacknowledged data there, and none of it acknowledged? */
static bool is_silent(const struct kl_socket_lane *l, uint64_t now)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;

    if (getsockopt(l->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes)) return false;
    if (!info.tcpi_unacked && !info.tcpi_probes) return false;
    return info.tcpi_last_ack_recv * (second / 1000) > now - l->silent_since;
}

bool kl_alive(struct kl_conn *c)
{
    uint64_t now = kl_now_ns();
    bool alive = true, first = now - c->looked > MAY_PAUSE_S * second;

    if (now - c->looked < LOOK_S * second) return true;
    c->looked = now;
    for (int i = 0; i <= c->shape.lanes; i++) {
        struct kl_socket_lane *l = &c->lane[i];

        if (first || !is_silent(l, now)) l->silent_since = now;
        alive &= now - l->silent_since < SILENT_S * second;
    }
    return alive;
}
