/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/registry.h"

#include "base/atomic.h"
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

static uintptr_t new_handle(unsigned number)
{
    static _Atomic uintptr_t last;

    return (kl_fetch_add_relaxed(&last, 1) + 1) << 16 | number;
}

ncclResult_t kl_registry_add(struct kl_registry *r, unsigned number, const struct kl_device_kind *devices, void *ptr,
                             size_t bytes, uintptr_t *handle)
{
    uint64_t pin;

    KL_TRY(make_room(r));
    KL_TRY(devices->pin(ptr, bytes, &pin));
    *handle = new_handle(number);
    r->entry[r->n++] = (struct kl_registered){.handle = *handle, .pin = pin, .ptr = ptr};
    return ncclSuccess;
}

const struct kl_registered *kl_registry_find(const struct kl_registry *r, uintptr_t handle)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->entry[i].handle == handle) return &r->entry[i];
    return NULL;
}

ncclResult_t kl_registry_get(const struct kl_registry *r, uintptr_t handle, const char *function,
                             const struct kl_registered **entry)
{
    *entry = kl_registry_find(r, handle);
    if (*entry) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage, "%s: %p is nothing that this communicator has registered", function,
                   (void *)handle);
}

ncclResult_t kl_registry_remove(struct kl_registry *r, const struct kl_device_kind *devices,
                                const struct kl_registered *entry)
{
    uint64_t pin = entry->pin;

    r->entry[entry - r->entry] = r->entry[--r->n];
    return devices->unpin(pin);
}

void kl_registry_fini(struct kl_registry *r, const struct kl_device_kind *devices)
{
    while (r->n) (void)devices->unpin(r->entry[--r->n].pin);
    free(r->entry);
}
