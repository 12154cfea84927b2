/* SPDX-License-Identifier: Apache-2.0 */
#include "net/collnet.h"

#include "base/error.h"
#include "base/log.h"
#include "net/plugin/collnet.h"
#include "net/plugin/plugin.h"
#include "net/plugin/rma.h"
#include "net/socket/device.h"

#include <pthread.h>
#include <strings.h>

/* Kolo's own nets, best first. A new one is a file and a line here. */
static const struct kl_net *const own_nets[] = {&kl_net_verbs, &kl_net_socket, NULL};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the process's plugin */

/* The RDMA net has NCCL's name and its library's. */
static bool has_name(const struct kl_net *net, const char *name)
{
    return !strcasecmp(name, net->name) || (net == &kl_net_verbs && !strcasecmp(name, "verbs"));
}

static bool is_own(const char *name)
{
    for (const struct kl_net *const *n = own_nets; *n; n++)
        if (has_name(*n, name)) return true;
    return false;
}

/* Data of a plugin are not encrypted, so none is used where they have to be. Ranks are alike in that. */
static bool may_use_plugin(const char *wanted)
{
    if (is_own(wanted)) return false;
    if (!kl_socket_devices()->params.crypt) return true;
    KL_INFO(KL_INIT | KL_NET, "NET/Plugin: not looked for, as KOLO_NET_CRYPT=1, and plugins do not encrypt");
    return false;
}

static bool ref_plugin(const char *wanted)
{
    if (!may_use_plugin(wanted)) return false;
    pthread_mutex_lock(&lock);
    const bool held = kl_net_plugin_ref(wanted);
    pthread_mutex_unlock(&lock);
    return held;
}

/* The first of Kolo's own nets that can be used; with a name, the one of that name. */
static ncclResult_t ref_own(const char *wanted, const struct kl_net **net)
{
    ncclResult_t rc = ncclInvalidUsage;
    int named = 0;

    for (const struct kl_net *const *n = own_nets; *n; n++) {
        if (*wanted && !has_name(*n, wanted)) continue;
        named++;
        int quiet = kl_error_quiet(!*wanted && n[1]); /* the next one is tried */
        rc = (*n)->init();
        kl_error_quiet(quiet);
        if (rc) continue;
        *net = *n;
        return ncclSuccess;
    }
    if (named) return rc;
    return KL_FAIL(ncclInvalidUsage,
                   "there is no network \"%s\" (netName of the configuration, NCCL_NET): no plugin of this name was "
                   "found (NCCL_NET_PLUGIN), and Kolo's own are %s and %s",
                   wanted, kl_net_verbs.name, kl_net_socket.name);
}

ncclResult_t kl_net_ref(const char *wanted, const struct kl_net **net)
{
    *net = NULL;
    KL_TRY(kl_net_socket.init()); /* plugins' connections begin there as well (plugin/join.h) */
    if (!ref_plugin(wanted)) return ref_own(wanted, net);
    *net = &kl_net_plugin;
    return ncclSuccess;
}

void kl_net_unref(const struct kl_net *net)
{
    if (net != &kl_net_plugin) return;
    pthread_mutex_lock(&lock);
    kl_net_plugin_unref();
    pthread_mutex_unlock(&lock);
}

const struct kl_collnet *kl_collnet_of(const struct kl_net *net)
{
    return net == &kl_net_plugin && kl_collnet_plugin_name() ? &kl_collnet_plugin : &kl_collnet_software;
}

void *kl_net_plugin_library(char *file)
{
    pthread_mutex_lock(&lock);
    void *library = kl_net_plugin_open_again(file);
    pthread_mutex_unlock(&lock);
    return library;
}

const struct kl_rma_library *kl_rma_plugin_of_process(void)
{
    if (!may_use_plugin("")) return NULL;
    pthread_mutex_lock(&lock);
    const struct kl_rma_library *library = kl_rma_plugin_find();
    pthread_mutex_unlock(&lock);
    return library;
}
