/* SPDX-License-Identifier: Apache-2.0 */
#include "os/foreign.h"

#include "base/clock.h"
#include "os/process.h"

#include <sys/uio.h>

struct kl_foreign kl_foreign_self(const uint64_t *mark)
{
    return (struct kl_foreign){.mark_at = (uint64_t)(uintptr_t)mark, .mark = *mark, .pid = kl_process_id()};
}

/* An address in the other process: never dereferenced here. */
static struct iovec there(uint64_t at, size_t bytes)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)at, .iov_len = bytes};
}

bool kl_foreign_is_open(const struct kl_foreign *p)
{
    uint64_t mark = ~p->mark;
    const struct iovec here = {.iov_base = &mark, .iov_len = sizeof mark}, far = there(p->mark_at, sizeof mark);

    return process_vm_readv(p->pid, &here, 1, &far, 1, 0) == sizeof mark && mark == p->mark;
}

/* ---- marks ---- */

static bool is_same(const struct kl_foreign *a, const struct kl_foreign *b)
{
    return a->pid == b->pid && a->mark_at == b->mark_at && a->mark == b->mark;
}

static bool is_seen(const struct kl_foreign_seen *seen, const struct kl_foreign *p, uint64_t now)
{
    return seen->at && now - seen->at < (uint64_t)KL_FOREIGN_SEEN_MS * 1000000u && is_same(&seen->process, p);
}

/* Remember that the mark was found at `now`, or that it was not. */
static bool see(struct kl_foreign_seen *seen, const struct kl_foreign *p, uint64_t now, bool is_there)
{
    seen->process = *p;
    seen->at = is_there ? now : 0;
    return is_there;
}

/* ---- data ---- */

bool kl_foreign_write(const struct kl_foreign *p, struct kl_foreign_seen *seen, uint64_t to, const void *from,
                      size_t bytes)
{
    const struct iovec here = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes}, far = there(to, bytes);
    const uint64_t now = kl_now_coarse_ns();

    if (!is_seen(seen, p, now) && !see(seen, p, now, kl_foreign_is_open(p))) return false;
    return process_vm_writev(p->pid, &here, 1, &far, 1, 0) == (ssize_t)bytes;
}

static bool read_marked(const struct kl_foreign *p, void *to, uint64_t from, size_t bytes)
{
    uint64_t mark = ~p->mark;
    const struct iovec here[] = {{.iov_base = &mark, .iov_len = sizeof mark}, {.iov_base = to, .iov_len = bytes}};
    const struct iovec far[] = {there(p->mark_at, sizeof mark), there(from, bytes)};
    const ssize_t got = process_vm_readv(p->pid, here, 2, far, 2, 0);

    return got == (ssize_t)(sizeof mark + bytes) && mark == p->mark;
}

bool kl_foreign_read(const struct kl_foreign *p, struct kl_foreign_seen *seen, void *to, uint64_t from, size_t bytes)
{
    const struct iovec here = {.iov_base = to, .iov_len = bytes}, far = there(from, bytes);
    const uint64_t now = kl_now_coarse_ns();

    if (!is_seen(seen, p, now)) return see(seen, p, now, read_marked(p, to, from, bytes));
    return process_vm_readv(p->pid, &here, 1, &far, 1, 0) == (ssize_t)bytes;
}
