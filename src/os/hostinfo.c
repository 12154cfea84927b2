/* SPDX-License-Identifier: Apache-2.0 */
#include "os/hostinfo.h"

#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* Linux 5.14 */
#endif

enum { BOOT_ID = 40, PLACE = 128 };

void kl_hostinfo_name(char name[KL_HOSTNAME])
{
    if (gethostname(name, KL_HOSTNAME - 1)) snprintf(name, KL_HOSTNAME, "unknown");
    name[KL_HOSTNAME - 1] = 0; /* a truncated name may lack one */
}

/* The kernel's random id of this boot; "" if /proc does not have it. */
static void read_boot_id(char id[BOOT_ID])
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    id[0] = 0;
    if (!f) return;
    if (!fgets(id, BOOT_ID, f)) id[0] = 0;
    id[strcspn(id, "\n")] = 0;
    fclose(f);
}

/* `what` is a label that separates the hashes of different things. */
static ncclResult_t hash_texts(const char *what, const char *a, const char *b, uint64_t *hash)
{
    unsigned char sum[crypto_generichash_BYTES_MIN];
    crypto_generichash_state state;
    uint64_t h = 0;

    if (sodium_init() < 0) return KL_FAIL(ncclSystemError, "libsodium cannot be used on this machine");
    crypto_generichash_init(&state, NULL, 0, sizeof sum);
    crypto_generichash_update(&state, (const unsigned char *)what, strlen(what) + 1);
    crypto_generichash_update(&state, (const unsigned char *)a, strlen(a) + 1);
    crypto_generichash_update(&state, (const unsigned char *)b, strlen(b) + 1);
    crypto_generichash_final(&state, sum, sizeof sum);
    for (int i = 7; i >= 0; i--) h = h << 8 | sum[i];
    *hash = h;
    return ncclSuccess;
}

ncclResult_t kl_hostinfo_host_hash(const char *hostid, uint64_t *hash)
{
    char name[KL_HOSTNAME], boot_id[BOOT_ID];

    if (hostid[0]) return hash_texts("hostid", hostid, "", hash);
    kl_hostinfo_name(name);
    read_boot_id(boot_id);
    return hash_texts("host", name, boot_id, hash);
}

/* ---- namespaces ---- */

/* The kernel's cookie of the network namespace, which needs no /proc; 0 if unavailable. Must not depend on this
 * process's descriptor limit. */
static ncclResult_t netns_cookie(uint64_t *cookie)
{
    socklen_t bytes = sizeof *cookie;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *cookie = 0;
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
        return KL_FAIL_ERRNO("cannot make a socket to ask for the network namespace");
    if (fd < 0) return ncclSuccess;
    if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, cookie, &bytes)) *cookie = 0;
    close(fd);
    return ncclSuccess;
}

static uint64_t inode_of(const char *namespace)
{
    struct stat st;

    return stat(namespace, &st) ? 0 : (uint64_t)st.st_ino;
}

ncclResult_t kl_hostinfo_netns_hash(uint64_t *hash)
{
    const uint64_t inode = inode_of("/proc/self/ns/net");
    char place[PLACE], boot_id[BOOT_ID];
    uint64_t cookie;

    *hash = 0;
    KL_TRY(netns_cookie(&cookie));
    read_boot_id(boot_id);
    if (!boot_id[0] || (!inode && !cookie)) return ncclSuccess;
    snprintf(place, sizeof place, "%" PRIu64 " %" PRIu64, inode, cookie);
    return hash_texts("door", place, boot_id, hash);
}

ncclResult_t kl_hostinfo_memory_hash(uint64_t *hash)
{
    char place[PLACE], user[PLACE];
    uint64_t netns;

    KL_TRY(kl_hostinfo_netns_hash(&netns));
    snprintf(place, sizeof place, "%" PRIu64, netns);
    snprintf(user, sizeof user, "%" PRIu64 " %ld", inode_of("/proc/self/ns/user"), (long)geteuid());
    return hash_texts("memory", place, user, hash);
}
