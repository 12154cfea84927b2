/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/call_clock.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { ACCOUNT = 96, SHORT_NS = 100000 };

/* The second number: how long the thread was ready and had no core. */
static uint64_t waited(int account)
{
    char text[ACCOUNT], *end;
    const ssize_t n = account < 0 ? 0 : pread(account, text, sizeof text - 1, 0);

    if (n <= 0) return 0;
    text[n] = 0;
    (void)strtoull(text, &end, 10);
    return strtoull(end, NULL, 10);
}

void kl_call_clock_open(struct kl_call_clock *c)
{
    *c = (struct kl_call_clock){.account = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)};
}

void kl_call_clock_close(struct kl_call_clock *c)
{
    if (c->account >= 0) close(c->account);
    c->account = -1;
}

void kl_call_clock_begin(struct kl_call_clock *c)
{
    c->waited_ns = waited(c->account);
    c->begun_ns = kl_now_ns();
}

uint64_t kl_call_clock_took(struct kl_call_clock *c)
{
    const uint64_t took = kl_now_ns() - c->begun_ns;

    if (took < SHORT_NS) return took; /* the account costs more than it could tell */
    const uint64_t without = waited(c->account) - c->waited_ns;
    return without < took ? took - without : 0;
}
