/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/registry.h"

#include "base/error.h"

#include <stdlib.h>

static ncclResult_t make_room(struct kl_registry *r)
{
    size_t room = r->room ? 2 * r->room : 8;

    if (r->n < r->room) return ncclSuccess;
    struct kl_registered *grown = realloc(r->entry, room * sizeof *grown);
    if (!grown) return KL_NOMEM("registered buffers");
    r->entry = grown;
    r->room = room;
    return ncclSuccess;
}

ncclResult_t kl_registry_add(struct kl_registry *r, const struct kl_device_kind *devices, const void *ptr, size_t bytes,
                             void **handle)
{
    uint64_t pin;

    KL_TRY(make_room(r));
    KL_TRY(devices->pin(ptr, bytes, &pin));
    r->entry[r->n++] = (struct kl_registered){.handle = ++r->last, .pin = pin};
    *handle = (void *)r->last;
    return ncclSuccess;
}

ncclResult_t kl_registry_remove(struct kl_registry *r, const struct kl_device_kind *devices, const void *handle)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->entry[i].handle == (uintptr_t)handle) {
            uint64_t pin = r->entry[i].pin;
            r->entry[i] = r->entry[--r->n];
            return devices->unpin(pin);
        }
    return KL_FAIL(ncclInvalidUsage, "ncclCommDeregister: %p is no buffer that this communicator has registered",
                   handle);
}

void kl_registry_fini(struct kl_registry *r, const struct kl_device_kind *devices)
{
    while (r->n) (void)devices->unpin(r->entry[--r->n].pin);
    free(r->entry);
}
