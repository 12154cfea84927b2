/* SPDX-License-Identifier: Apache-2.0 */
#include "net/plugin/rma.h"

#include "base/error.h"
#include "base/log.h"
#include "net/plugin/plugin.h"

#include <stdio.h>

struct params {
    char rma[KL_PARAM_TEXT], gin[KL_PARAM_TEXT];
};

static const struct kl_param rows[] = {
    KL_PARAM_STRING(struct params, rma, "NCCL_RMA_PLUGIN", KL_OWN, "",
                    "plugin for one-sided operations, a name or file; \"none\": no plugin; without it, libnccl-rma.so"),
    KL_PARAM_STRING(struct params, gin, "NCCL_GIN_PLUGIN", KL_OWN, "",
                    "where a plugin for one-sided operations is looked for next; without it, libnccl-gin.so"),
};

const struct kl_param_set kl_net_rma_param_set = KL_PARAM_SET("rma_plugin", struct params, rows);

static struct {
    struct kl_rma_library library;
    bool looked, taken;
} process;

static bool take(void *library)
{
    struct kl_rma_library *l = &process.library;

    l->library = library;
    if (!library) return false;
    if (kl_rma_library_read(l)) return true;
    kl_plugin_close(library);
    return false;
}

static bool find(void)
{
    struct kl_rma_library *l = &process.library;
    struct params params;

    kl_param_load(&kl_net_rma_param_set, &params);
    if (take(kl_plugin_open("rma", params.rma, l->file))) return true;
    if (*params.rma) return false; /* the user's choice, or none */
    return take(kl_plugin_open("gin", params.gin, l->file)) || take(kl_net_plugin_open_again(l->file));
}

const struct kl_rma_library *kl_rma_plugin_find(void)
{
    const struct kl_rma_library *l = &process.library;

    if (process.looked) return process.taken ? l : NULL;
    process.looked = true;
    process.taken = find();
    if (process.taken)
        KL_INFO(KL_INIT | KL_NET, "RMA/Plugin: using %s (%s%d of %s)", l->name, l->adapter->prefix, l->adapter->version,
                l->file);
    return process.taken ? l : NULL;
}
