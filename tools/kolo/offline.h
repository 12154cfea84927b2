/* SPDX-License-Identifier: Apache-2.0 */
/**
 * offline.h - what `kolo graph` computes from: a machine out of a file or this host, and the settings of the environment.
 *
 * Errors: reported with KL_FAIL; the command prints kl_error_text().
 */
#ifndef KOLO_TOOL_OFFLINE_H
#define KOLO_TOOL_OFFLINE_H

#include "comm/config.h"
#include "graph/config.h"
#include "graph/plan.h"
#include "topo/config.h"

/** What the command line asked for. */
struct offline_args {
    const char *topo; /* file, NULL: this machine */
    const char *gpus; /* "0,2,4": ordinals that take part; NULL: all */
    int hosts;
    int mnnvl; /* all hosts are one NVLink domain */
};

struct offline {
    struct kl_comm_config comm;
    struct kl_topo_config topo_config;
    struct kl_topo_options options;
    struct kl_graph_config graph;
    struct kl_xml *file, *graph_file;
    struct kl_host_device *device;
    struct kl_machine machine;
    struct kl_plan *plan;
};

/** Read files and settings, and plan the cluster. Free with offline_fini, also after a failure. */
ncclResult_t offline_plan(const struct offline_args *args, struct offline *offline);
void offline_fini(struct offline *offline);

#endif
