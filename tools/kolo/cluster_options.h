/* SPDX-License-Identifier: Apache-2.0 */
/** cluster_options.h - the options that describe a cluster, and changes of it. */
#ifndef KOLO_TOOL_CLUSTER_OPTIONS_H
#define KOLO_TOOL_CLUSTER_OPTIONS_H

#include "answer/opened.h"
#include "base/text.h"
#include "plan/cluster.h"
#include "tools/kolo/job_options.h"
#include "tools/kolo/options.h"

/** The values of the command line; NULL and 0 if not given. */
struct kl_cluster_options {
    const char *topo, *machine, *sysfs, *gpus, *constants, *nccl;
    int hosts, ranks, mnnvl;
    struct kl_opt_list smi, with, without, without_link;
};

/**
 * Rows of an option table, for all but the file: `field` is the struct kl_cluster_options in the struct T that the table
 * fills, `of_hosts` the help on the number of hosts.
 */
#define KL_CLUSTER_OPTIONS(T, field, of_hosts)                                                                         \
    KL_CLUSTER_TEXT(T, field.sysfs, "sysfs", "DIR", "read the machine recorded in DIR instead of /sys"),               \
        KL_CLUSTER_LIST(T, field.smi, "smi", "FILE",                                                                   \
                        "output of nvidia-smi topo -m; a second --smi FILE: output of nvidia-smi nvlink -s"),          \
        KL_CLUSTER_NUMBER(T, field.hosts, "hosts", 65536, of_hosts),                                                   \
        KL_CLUSTER_NUMBER(T, field.ranks, "ranks", 4096,                                                               \
                          "number of host devices where there is no FILE (default: as in a process here)"),            \
        KL_CLUSTER_TEXT(T, field.gpus, "gpus", "LIST", "use only these GPUs, e.g. 0,2,4"),                             \
        KL_CLUSTER_FLAG(T, field.mnnvl, "mnnvl", "all hosts form one NVLink domain"),                                  \
        KL_CLUSTER_LIST(T, field.with, "with", "NAME=VALUE", "as if this variable were set; repeatable"),              \
        KL_CLUSTER_LIST(T, field.without, "without", "NODE", "leave out a node, e.g. GPU/2 or NET/3; repeatable"),     \
        KL_CLUSTER_LIST(T, field.without_link, "without-link", "A-B[:N]",                                              \
                        "remove the NVLinks of a pair, e.g. GPU/0-GPU/1, or N of them; GPU/3-NVS: those to the "       \
                        "switch; repeatable")

/** A row before them. */
#define KL_MACHINE_DOC              "a known machine, e.g. dgx-h100 (kolo topo --machines); with a FILE: the machine of FILE"
#define KL_MACHINE_OPTION(T, field) KL_CLUSTER_TEXT(T, field.machine, "machine", "NAME", KL_MACHINE_DOC)

/** Another row before them. */
#define KL_RELEASE_OPTION(T, field) KL_CLUSTER_TEXT(T, field.nccl, "nccl", "VERSION", KL_RELEASE_DOC)

/** One more row, for commands that look at times. */
#define KL_CONSTANTS_OPTION(T, field)                                                                                  \
    KL_CLUSTER_TEXT(                                                                                                   \
        T, field.constants, "constants", "NAME",                                                                       \
        "constants of the tuning model: reference (NCCL's, for GPUs) or host (Kolo's, for CPUs) (default: "            \
        "reference)")

#define KL_CLUSTER_TEXT(T, field, name, arg, doc)                                                                      \
    {                                                                                                                  \
        0, name, KL_OPT_TEXT, offsetof(T, field), 0, 0, arg, doc                                                       \
    }
#define KL_CLUSTER_NUMBER(T, field, name, max, doc)                                                                    \
    {                                                                                                                  \
        0, name, KL_OPT_INT, offsetof(T, field), 1, max, "N", doc                                                      \
    }
#define KL_CLUSTER_FLAG(T, field, name, doc)                                                                           \
    {                                                                                                                  \
        0, name, KL_OPT_FLAG, offsetof(T, field), 0, 0, NULL, doc                                                      \
    }
#define KL_CLUSTER_LIST(T, field, name, arg, doc)                                                                      \
    {                                                                                                                  \
        0, name, KL_OPT_LIST, offsetof(T, field), 0, 0, arg, doc                                                       \
    }

/**
 * "8 GPUs" of each host, or, if CPUs are the devices, "no GPUs; 8 CPU devices stand in for them". Unknown if nothing was
 * detected.
 */
void kl_cluster_devices(const struct kl_cluster *cluster, int n, struct kl_text *to);

/** "2 hosts with 8 GPUs each", "1 NVLink domain of 18 hosts with 72 GPUs"; and without the GPUs. */
void kl_cluster_size(const struct kl_cluster *cluster, struct kl_text *to);
void kl_cluster_hosts(const struct kl_cluster *cluster, struct kl_text *to);

/** The request that options stand for; it points into them. ncclInvalidArgument for unknown constants. */
ncclResult_t kl_cluster_options_read(const struct kl_cluster_options *options, struct kl_cluster_request *request);

/** Print on stderr the warnings of a cluster that was opened (kl_opened_warn). */
void kl_cluster_options_warn(const struct kl_cluster *cluster);

/** kl_opened_init, and that. */
ncclResult_t kl_cluster_options_open(const struct kl_cluster_request *request, struct kl_opened *opened);

#endif
