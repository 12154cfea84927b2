/* SPDX-License-Identifier: Apache-2.0 */
/* The one file that knows the parameters of every module. */
#include "api/param_sets.h"

#include "api/other_names.h"
#include "base/log_config.h"
#include "bootstrap/config.h"
#include "comm/config.h"
#include "device/config.h"
#include "graph/config.h"
#include "net/net.h"
#include "os/chaos.h"
#include "topo/config.h"

static const struct kl_param_set *const sets[] = {&kl_log_param_set,    &kl_bootstrap_param_set, &kl_comm_param_set,
                                                  &kl_device_param_set, &kl_net_param_set,       &kl_topo_param_set,
                                                  &kl_graph_param_set,  &kl_chaos_param_set,     NULL};

const struct kl_param_registry kl_param_registry = {.sets = sets, .others = kl_other_names};

void kl_param_sets_check_names(void)
{
    kl_param_check_names(&kl_param_registry, kl_settings_process());
}
