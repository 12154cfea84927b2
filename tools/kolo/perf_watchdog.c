/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_watchdog.h"

#include "base/clock.h"
#include "device/host/redop.h"

#include <stdio.h>

void kl_watchdog_begin(struct kl_watchdog_slot *slot, const struct kl_watchdog_step *step)
{
    kl_store_relaxed(&slot->since_ns, kl_now_ns());
    kl_store_relaxed(&slot->bytes, step->bytes);
    kl_store_relaxed(&slot->phase, (int32_t)step->phase);
    kl_store_relaxed(&slot->type, (int32_t)step->type);
    kl_store_relaxed(&slot->in_place, step->in_place);
    kl_store_release(&slot->begun, kl_load_relaxed(&slot->begun) + 1); /* pairs with is_inside */
}

void kl_watchdog_end(struct kl_watchdog_slot *slot)
{
    kl_store_release(&slot->ended, kl_load_relaxed(&slot->ended) + 1);
}

static bool is_inside(const struct kl_watchdog_slot *slot)
{
    uint64_t ended = kl_load_acquire(&slot->ended);

    return kl_load_acquire(&slot->begun) > ended;
}

void kl_watchdog_describe(const struct kl_watchdog_slot *slot, const char *operation, char *text, size_t size)
{
    static const char *const phases[] = {"joining", "warming up", "timing", "checking", "agreeing on the result"};
    int32_t phase = kl_load_relaxed(&slot->phase);

    if (phase == KL_PHASE_JOIN) {
        snprintf(text, size, "joining the communicator");
        return;
    }
    snprintf(text, size, "%s of %llu bytes of %s, %s (%s)", operation,
             (unsigned long long)kl_load_relaxed(&slot->bytes),
             kl_type_name((ncclDataType_t)kl_load_relaxed(&slot->type)),
             kl_load_relaxed(&slot->in_place) ? "in-place" : "out-of-place", phases[phase]);
}

/* ---- "0-3,7" ---- */

struct list {
    char *text;
    size_t size, used;
};

static void append(struct list *l, int first, int last)
{
    const char *comma = l->used ? "," : "";
    size_t room = l->size - l->used;
    int n = first == last ? snprintf(l->text + l->used, room, "%s%d", comma, first)
                          : snprintf(l->text + l->used, room, "%s%d-%d", comma, first, last);

    l->used += (size_t)n < room ? (size_t)n : room - 1;
}

/* The ranks that have ended as few steps as `ended`; of these, with `outside`, only those that have not begun the next. */
static int list_ranks(const struct kl_watchdog_slot *slots, int nranks, int first_rank, uint64_t ended, bool outside,
                      char *text, size_t size)
{
    struct list l = {.text = text, .size = size};
    int listed = 0, from = -1;

    text[0] = 0;
    for (int r = 0; r <= nranks; r++) {
        bool in = r < nranks && kl_load_relaxed(&slots[r].ended) == ended && !(outside && is_inside(&slots[r]));

        if (in && from < 0) from = r;
        if (!in && from >= 0) append(&l, first_rank + from, first_rank + r - 1), from = -1;
        listed += in;
    }
    return listed;
}

static const struct kl_watchdog_slot *longest_inside(const struct kl_watchdog_slot *slots, int nranks)
{
    const struct kl_watchdog_slot *longest = NULL;

    for (int r = 0; r < nranks; r++) {
        if (!is_inside(&slots[r])) continue;
        if (!longest || kl_load_relaxed(&slots[r].since_ns) < kl_load_relaxed(&longest->since_ns)) longest = &slots[r];
    }
    return longest;
}

bool kl_watchdog_stuck(const struct kl_watchdog_slot *slots, int nranks, int first_rank, uint64_t now_ns,
                       uint64_t timeout_ms, const char *operation, char *text, size_t size)
{
    const struct kl_watchdog_slot *longest = longest_inside(slots, nranks);
    char what[128], unfinished[256], absent[256];
    uint64_t fewest = UINT64_MAX;

    if (!longest) return false;
    uint64_t since = kl_load_relaxed(&longest->since_ns);
    if (now_ns < since || now_ns - since <= timeout_ms * 1000000) return false;

    for (int r = 0; r < nranks; r++)
        if (kl_load_relaxed(&slots[r].ended) < fewest) fewest = kl_load_relaxed(&slots[r].ended);
    kl_watchdog_describe(longest, operation, what, sizeof what);
    int many = list_ranks(slots, nranks, first_rank, fewest, false, unfinished, sizeof unfinished);
    int out = list_ranks(slots, nranks, first_rank, fewest, true, absent, sizeof absent);
    int n = snprintf(text, size, "stuck for %g s: %s; not finished by rank%s %s", (double)timeout_ms / 1000, what,
                     many > 1 ? "s" : "", unfinished);
    if (out && n >= 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ", not even begun by %s",
                 out == many && many > 1 ? "any of these" : absent);
    return true;
}
