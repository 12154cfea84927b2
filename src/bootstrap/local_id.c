/* SPDX-License-Identifier: Apache-2.0 */
/** local_id.c - pass an id from rank 0 to the other ranks of its host: in a file, which the root removes. */
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/root.h"
#include "os/private_file.h"
#include "os/socket.h"

#include <errno.h>
#include <string.h>

ncclResult_t kl_bootstrap_id_leave(const ncclUniqueId *bytes, const char *job, uint64_t deadline)
{
    struct kl_rendezvous_file *file;
    struct kl_id id;

    if (!kl_id_unpack(bytes, &id)) return KL_FAIL(ncclInvalidArgument, "these 128 bytes are no unique id");
    ncclResult_t rc = kl_rendezvous_file_write(kl_private_folders(), job, bytes, sizeof *bytes, deadline, &file);
    if (!rc) kl_root_own_file(&id, file);
    kl_key_wipe(&id.secret);
    return rc;
}

void kl_bootstrap_id_withdraw(const ncclUniqueId *bytes)
{
    struct kl_id id;

    if (!kl_id_unpack(bytes, &id)) return;
    kl_root_own_file(&id, NULL);
    kl_key_wipe(&id.secret);
}

/* Within a host a connection is refused at once. */
static bool is_refused(const union kl_address *address)
{
    int fd = -1;
    enum kl_io io = kl_socket_connect_begin(address, &fd);
    bool refused = io == KL_IO_BROKEN && errno == ECONNREFUSED;

    if (!io) refused = kl_socket_connect_finish(fd) == KL_IO_BROKEN && errno == ECONNREFUSED;
    kl_socket_close(fd);
    return refused;
}

/* The writer's lock may have passed to a child that lives on: check for a listener. */
static bool has_root(const void *data)
{
    int nrefused = 0;
    ncclUniqueId bytes;
    struct kl_id id;

    memcpy(&bytes, data, sizeof bytes);
    if (!kl_id_unpack(&bytes, &id)) return false;
    for (int i = 0; i < id.naddresses; i++) nrefused += is_refused(&id.address[i]);
    kl_key_wipe(&id.secret);
    explicit_bzero(&bytes, sizeof bytes);
    return nrefused < id.naddresses;
}

ncclResult_t kl_bootstrap_id_find(const char *job, ncclUniqueId *id, uint64_t deadline)
{
    return kl_rendezvous_file_read(kl_private_folders(), job, id, sizeof *id, has_root, deadline);
}
