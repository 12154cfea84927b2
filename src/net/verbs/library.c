/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/library.h"

#include "base/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

struct row {
    const char *name;
    size_t offset;
    bool may_lack;
};

#define ROW(f)                                                                                                         \
    {                                                                                                                  \
        "ibv_" #f, offsetof(struct kl_verbs_library, f), false                                                         \
    }
#define OPTIONAL_ROW(f)                                                                                                \
    {                                                                                                                  \
        "ibv_" #f, offsetof(struct kl_verbs_library, f), true                                                          \
    }

static const struct row rows[] = {
    ROW(fork_init),
    ROW(get_device_list),
    ROW(free_device_list),
    ROW(open_device),
    ROW(close_device),
    ROW(query_device),
    ROW(query_port),
    ROW(query_gid),
    ROW(alloc_pd),
    ROW(dealloc_pd),
    ROW(reg_mr),
    ROW(dereg_mr),
    ROW(create_comp_channel),
    ROW(destroy_comp_channel),
    ROW(create_cq),
    ROW(destroy_cq),
    ROW(get_cq_event),
    ROW(ack_cq_events),
    ROW(create_qp),
    ROW(modify_qp),
    ROW(destroy_qp),
    ROW(get_async_event),
    ROW(ack_async_event),
    ROW(wc_status_str),
    ROW(event_type_str),
    OPTIONAL_ROW(query_port_speed),
    OPTIONAL_ROW(reg_dmabuf_mr),
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kl_verbs_library loaded;
static bool is_loaded;

static ncclResult_t open_file(const char *file, void **handle)
{
    static const char *const usual[] = {"libibverbs.so", "libibverbs.so.1"};
    const char *why = NULL;

    if (*file) {
        *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (!*handle) why = dlerror();
        return *handle ? ncclSuccess : KL_FAIL(ncclSystemError, "NCCL_IBVERBS_LIB=%s cannot be loaded: %s", file, why);
    }
    for (int i = 0; i < 2; i++) {
        *handle = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
        if (*handle) return ncclSuccess;
        why = dlerror();
    }
    return KL_FAIL(ncclSystemError, "libibverbs cannot be loaded: %s; install rdma-core, or set NCCL_IBVERBS_LIB", why);
}

/* Symbols without a version: comp channels are IBVERBS_1.0, others 1.1. */
static ncclResult_t fill(void *handle)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *symbol = dlsym(handle, rows[i].name);
        if (!symbol && !rows[i].may_lack)
            return KL_FAIL(ncclSystemError, "libibverbs has no function %s; use one of rdma-core", rows[i].name);
        memcpy((char *)&loaded + rows[i].offset, &symbol, sizeof symbol);
    }
    return ncclSuccess;
}

static ncclResult_t load(const char *file)
{
    void *handle;

    KL_TRY(open_file(file, &handle));
    ncclResult_t rc = fill(handle);
    if (rc) {
        dlclose(handle);
        return rc;
    }
    (void)loaded.fork_init(); /* before the first registration; children may then write their copies of pages */
    is_loaded = true;
    return ncclSuccess;
}

ncclResult_t kl_verbs_library_load(const char *file, const struct kl_verbs_library **library)
{
    pthread_mutex_lock(&lock);
    ncclResult_t rc = is_loaded ? ncclSuccess : load(file);
    pthread_mutex_unlock(&lock);
    if (!rc) *library = &loaded;
    return rc;
}
