/* SPDX-License-Identifier: Apache-2.0 */
/**
 * config.h - the user's settings for graphs, channels and tuning, and the values in force.
 *
 * Source: the graph specification, 15; NCCL's documentation of its environment variables.
 */
#ifndef KL_GRAPH_CONFIG_H
#define KL_GRAPH_CONFIG_H

#include "base/param.h"
#include "graph/connect.h"
#include "graph/tuning.h"

enum { KL_THRESHOLDS_TEXT = 128 };

struct kl_graph_config {
    struct kl_channel_params channels;
    struct kl_tuning_params tuning; /* its texts point into this struct */
    int64_t nvls;                   /* NCCL_NVLS_ENABLE: 0 never, 1 always, 2 where the device can */
    char collnet[8];                /* NCCL_COLLNET_ENABLE: "1" switches it on */
    char thread_thresholds[KL_THRESHOLDS_TEXT];
    char algo[KL_PARAM_TEXT], proto[KL_PARAM_TEXT];                 /* "" or a list, as NCCL_ALGO is written */
    char graph_file[KL_PARAM_TEXT], graph_dump_file[KL_PARAM_TEXT]; /* "": none */
    int64_t graph_dump_rank;
    char tuning_file[KL_PARAM_TEXT]; /* KOLO_TUNING: see tuning_file.h */
};

extern const struct kl_param_set kl_graph_param_set;

/** kl_param_load, and pointers into `config` itself set: it must not be copied afterwards. */
void kl_graph_config_load(struct kl_graph_config *config);

/** The same from elsewhere, for tests. Silent. */
void kl_graph_config_load_from(struct kl_graph_config *config, const struct kl_settings *from);

/** Is CollNet asked for? */
static inline bool kl_graph_config_collnet(const struct kl_graph_config *config)
{
    return config->collnet[0] == '1' && !config->collnet[1];
}

#endif
