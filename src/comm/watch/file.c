/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/watch/file.h"

#include "base/atomic.h"
#include "base/error.h"
#include "base/filelimit.h"
#include "base/text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* ---- names ---- */

/* A host's name may be any text (NCCL_HOSTID), but it must not name a folder. */
static void add_host(struct kl_text *path, const char *host)
{
    for (; *host; host++) kl_text_add(path, "%c", *host == '/' ? '_' : *host);
}

/* False: an unknown letter. */
static bool add_field(struct kl_text *path, char which, const struct kl_watch_name *whose)
{
    switch (which) {
    case 'h':
        add_host(path, whose->host);
        return true;
    case 'p':
        kl_text_add(path, "%d", (int)getpid());
        return true;
    case 'r':
        kl_text_add(path, "%d", whose->rank);
        return true;
    case 'c':
        kl_text_add(path, "%llx", (unsigned long long)whose->communicator);
        return true;
    case '%':
        kl_text_add(path, "%%");
        return true;
    default:
        return false;
    }
}

ncclResult_t kl_watch_file_name(const char *pattern, const struct kl_watch_name *whose, char path[KL_WATCH_PATH])
{
    struct kl_text text = kl_text_over(path, KL_WATCH_PATH);
    bool by_rank = false;

    for (const char *at = pattern; *at; at++) {
        if (*at == '%' && add_field(&text, at[1], whose))
            by_rank |= *++at == 'r';
        else
            kl_text_add(&text, "%c", *at);
    }
    if (!by_rank) kl_text_add(&text, ".%d", whose->rank);
    if (text.cut) return KL_FAIL(ncclInvalidArgument, "the name of a file is longer than %d bytes", KL_WATCH_PATH - 1);
    return ncclSuccess;
}

/* ---- writing ---- */

static ncclResult_t fill_file(const char *part, const char *path, void (*fill)(void *ctx, FILE *to), void *ctx)
{
    FILE *to = fopen(part, "we");

    if (!to) return KL_FAIL_ERRNO("cannot write %s", path);
    fill(ctx, to);
    bool failed = ferror(to);
    errno = ENOSPC; /* likely, when an earlier buffered write failed */
    if (fclose(to) || failed) return KL_FAIL_ERRNO("cannot write %s", path);
    if (rename(part, path)) return KL_FAIL_ERRNO("cannot move %s to its place", part);
    return ncclSuccess;
}

ncclResult_t kl_watch_file_write(const char *path, void (*fill)(void *ctx, FILE *to), void *ctx)
{
    static _Atomic uint32_t
        files; /* so that no two write the same one; no lock, which a child of fork might find taken */
    char part[KL_WATCH_PATH + 32];
    struct kl_filelimit_guard guard;

    snprintf(part, sizeof part, "%s.part%d-%u", path, (int)getpid(), kl_fetch_add_relaxed(&files, 1));
    kl_filelimit_begin(&guard);
    ncclResult_t rc = fill_file(part, path, fill, ctx);
    kl_filelimit_end(&guard);
    if (rc) unlink(part);
    return rc;
}
