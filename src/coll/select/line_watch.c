/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/select/line_watch.h"

#include "coll/select/model.h"

/* By 5/3, at least. */
enum { TIMES = 3, OF = 5 };

/* Near cores are all alike. */
static uint64_t told_apart(uint32_t line_ns)
{
    return line_ns > KL_SELECT_NEAR_NS ? line_ns : KL_SELECT_NEAR_NS;
}

bool kl_line_watch(struct kl_line_watch *w, uint32_t made_for_ns, uint32_t line_ns, uint32_t number, uint64_t now)
{
    const bool is_new = number != w->number;
    const uint64_t now_ns = told_apart(line_ns), before_ns = told_apart(made_for_ns);
    const bool differs = TIMES * now_ns > OF * before_ns || OF * now_ns < TIMES * before_ns;

    w->number = number;
    if (!line_ns || !differs) {
        w->since = 0;
        return false;
    }
    if (!is_new) return false;
    if (!w->since) w->since = now;
    return now - w->since >= (uint64_t)KL_LINE_WATCH_MS * 1000000u;
}
