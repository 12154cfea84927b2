/* SPDX-License-Identifier: Apache-2.0 */
#include "os/segment.h"

#include "base/error.h"
#include "base/filelimit.h"
#include "os/chaos.h"
#include "os/files.h"
#include "os/overcommit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HUGE = 2 << 20,  /* bytes of a huge page of most processors with pages of 4 KiB */
    LABEL_MAX = 200, /* memfd_create refuses 250 and more */
    SIZE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW,
    WRITE_SEALS = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE,
};

/* Whole pages, or 0 for a size that cannot be mapped. */
static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return bytes > SIZE_MAX / 2 ? 0 : (bytes + page - 1) / page * page;
}

/* A free address aligned to huge pages, so that all of this memory can have them (hugepages.h); NULL: wherever the
 * kernel likes. */
static void *find_room(size_t bytes)
{
    char *room = bytes < HUGE ? MAP_FAILED
                              : mmap(NULL, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED) return NULL;
    const size_t before = -(uintptr_t)room % HUGE;
    if (before) munmap(room, before);
    munmap(room + before + bytes, HUGE - before);
    return room + before;
}

static ncclResult_t map(struct kl_segment *seg, int fd, size_t bytes)
{
    void *room = find_room(bytes), *base = MAP_FAILED;

    if (!kl_chaos_no_memory())
        base = mmap(room, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (room ? MAP_FIXED : 0), fd, 0);
    if (base == MAP_FAILED && room) munmap(room, bytes);
    if (base == MAP_FAILED) return KL_FAIL_ERRNO("cannot map a shared segment of %zu bytes", bytes);
    seg->base = base;
    seg->bytes = bytes;
    return ncclSuccess;
}

/* Sparse on purpose: a staging buffer that no message ever fills should not cost memory. Except under strict
 * overcommit, where pages are reserved. */
static ncclResult_t set_size(int fd, const char *label, size_t bytes)
{
    if (!kl_filelimit_allows(bytes))
        return KL_FAIL_ERRNO("cannot give segment %s its %zu bytes; raise `ulimit -f`", label, bytes);
    if (ftruncate(fd, (off_t)bytes)) return KL_FAIL_ERRNO("cannot give segment %s its %zu bytes", label, bytes);
    if (kl_overcommit_is_strict() && fallocate(fd, 0, 0, (off_t)bytes))
        return KL_FAIL_ERRNO("cannot reserve the %zu bytes of segment %s", bytes, label);
    if (fcntl(fd, F_ADD_SEALS, SIZE_SEALS | F_SEAL_SEAL)) return KL_FAIL_ERRNO("cannot seal segment %s", label);
    return ncclSuccess;
}

ncclResult_t kl_segment_create(struct kl_segment *seg, const char *label, size_t bytes)
{
    ncclResult_t rc;
    struct kl_segment made = KL_SEGMENT_NONE;
    size_t size = whole_pages(bytes);
    char name[LABEL_MAX];

    if (!size) return KL_FAIL(ncclInvalidArgument, "shared segment %s of %zu bytes", label, bytes);
    snprintf(name, sizeof name, "%s", label);
    do made.fd = kl_chaos_no_descriptor() ? -1 : memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    while (made.fd < 0 && kl_files_make_room(errno));
    if (made.fd < 0) return KL_FAIL_ERRNO("cannot create shared segment %s of %zu bytes", name, size);
    KL_TRY_OR(rc, out, set_size(made.fd, name, size));
    KL_TRY_OR(rc, out, map(&made, made.fd, size));

    *seg = made; /* the caller owns it from here */
    made = KL_SEGMENT_NONE;
out:
    kl_segment_close(&made);
    return rc;
}

/* The sender of the descriptor may be confused or hostile: an access to its memory must never fault later. */
static ncclResult_t check_sealed(int fd, size_t bytes)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || (seals & SIZE_SEALS) != SIZE_SEALS)
        return KL_FAIL(ncclRemoteError, "a peer sent a descriptor that is not a sealed segment");
    if (seals & WRITE_SEALS) return KL_FAIL(ncclRemoteError, "a peer sent a segment that cannot be written");
    if (fstat(fd, &st)) return KL_FAIL_ERRNO("cannot examine a peer's segment");
    if ((uint64_t)st.st_size < bytes)
        return KL_FAIL(ncclRemoteError, "a peer sent a segment of %lld bytes where %zu were promised",
                       (long long)st.st_size, bytes);
    return ncclSuccess;
}

ncclResult_t kl_segment_attach(struct kl_segment *seg, int fd, size_t bytes)
{
    ncclResult_t rc;
    struct kl_segment made = KL_SEGMENT_NONE;
    size_t size = whole_pages(bytes);

    if (!size) {
        rc = KL_FAIL(ncclInvalidArgument, "attaching %zu bytes of a shared segment", bytes);
        goto out;
    }
    KL_TRY_OR(rc, out, check_sealed(fd, bytes));
    KL_TRY_OR(rc, out, map(&made, fd, size));
    *seg = made;
out:
    if (fd >= 0) close(fd); /* a mapping needs no descriptor */
    return rc;
}

void kl_segment_unmap(struct kl_segment *seg)
{
    if (seg->base) munmap(seg->base, seg->bytes);
    seg->base = NULL;
}

void kl_segment_close(struct kl_segment *seg)
{
    kl_segment_unmap(seg);
    if (seg->fd >= 0) close(seg->fd);
    *seg = KL_SEGMENT_NONE;
}
