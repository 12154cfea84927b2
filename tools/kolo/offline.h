/* SPDX-License-Identifier: Apache-2.0 */
/**
 * offline.h - a cluster to plan for, without any device: identical hosts, from a file or like this machine.
 *
 * Rank r is GPU r mod G of host r / G, G being the GPUs used of one host. Settings come from the environment and the
 * configuration files, as in the library, and from --with, which counts before them.
 */
#ifndef KOLO_TOOL_OFFLINE_H
#define KOLO_TOOL_OFFLINE_H

#include "base/text.h"
#include "base/setting.h"
#include "tools/kolo/edit.h"
#include "topo/config.h"
#include "topo/machine.h"
#include "topo/record.h"

/** What the command line asked for; NULL and 0 where it did not. */
struct kl_offline_args {
    const char *topo;  /* topology file, "-" for standard input */
    const char *sysfs; /* root of a recorded machine (topo/record.h) */
    const char *gpus;  /* "0,2,4": ordinals of the GPUs to use */
    int hosts;         /* 0 counts as 1 */
    int ranks;         /* host devices when there is no file */
    int mnnvl;
    int as_document; /* plan a machine that is looked at from the document that describes it, as edits need it */
    const struct kl_xml *document; /* of a machine with ranks, as kl_machine_document makes it; instead of `topo` */
    struct kl_edit_args edit;
};

/**
 * Rows of an option table, for all but the file: `field` is the struct kl_offline_args in the struct T that the table fills,
 * `of_hosts` says what a number of hosts is good for.
 */
#define KL_OFFLINE_OPTIONS(T, field, of_hosts)                                                                         \
    KL_OFFLINE_TEXT(T, field.sysfs, "sysfs", "DIR", "the machine recorded in DIR instead of /sys"),                    \
        KL_OFFLINE_NUMBER(T, field.hosts, "hosts", 65536, of_hosts),                                                   \
        KL_OFFLINE_NUMBER(T, field.ranks, "ranks", 4096,                                                               \
                          "host devices, when there is no FILE (default: usable CPUs, at least 2)"),                   \
        KL_OFFLINE_TEXT(T, field.gpus, "gpus", "LIST", "use only these GPUs, as in 0,2,4"),                            \
        KL_OFFLINE_FLAG(T, field.mnnvl, "mnnvl", "all hosts form one NVLink domain"), KL_EDIT_OPTIONS(T, field.edit)

#define KL_OFFLINE_TEXT(T, field, name, arg, doc)                                                                      \
    {                                                                                                                  \
        0, name, KL_OPT_TEXT, offsetof(T, field), 0, 0, arg, doc                                                       \
    }
#define KL_OFFLINE_NUMBER(T, field, name, max, doc)                                                                    \
    {                                                                                                                  \
        0, name, KL_OPT_INT, offsetof(T, field), 1, max, "N", doc                                                      \
    }
#define KL_OFFLINE_FLAG(T, field, name, doc)                                                                           \
    {                                                                                                                  \
        0, name, KL_OPT_FLAG, offsetof(T, field), 0, 0, NULL, doc                                                      \
    }

struct kl_offline {
    struct kl_machine machine; /* host 0 */
    struct kl_topo_config config;
    struct kl_topo_options options;
    struct kl_settings settings; /* in force */
    struct kl_setting *over;     /* those of --with */
    struct kl_xml *file;
    struct kl_recorded facts;      /* of the machine that is looked at, when there is no file */
    struct kl_host_device *device; /* host devices, unless `facts` has GPUs */
    int hosts, gpus;               /* gpus: of each host */
    const char *name;              /* of the topology, for people */
    bool cpus;                     /* the devices are CPUs, and stand for no GPUs of a file */
    bool from_setting;             /* the file is that of NCCL_TOPO_FILE */
};

/**
 * Understand the arguments, load the file, and edit it. ncclInvalidUsage for a text that is no list of GPUs of the file and for
 * edits that cannot be made, ncclInvalidArgument for edits that are not understood (edit.h).
 */
ncclResult_t kl_offline_open(const struct kl_offline_args *args, struct kl_offline *cluster);
void kl_offline_close(struct kl_offline *cluster);

/** What an answer is about: "m.xml (NCCL_TOPO_FILE, /etc/nccl.conf:3), 2 hosts with 8 GPUs each". */
void kl_offline_place(const struct kl_offline *cluster, struct kl_text *text);

/** Do the hosts of a file share an NVLink domain? If numbers tell them apart, and it stands for the whole cluster. */
bool kl_offline_is_domain(const struct kl_xml *file, int hosts);

/** The system that a rank works with: of its host, or of all hosts with MNNVL. */
ncclResult_t kl_offline_topo(struct kl_offline *cluster, int rank, struct kl_topo **topo);

/** Host 0, or all hosts with MNNVL, before trimming. */
ncclResult_t kl_offline_whole(const struct kl_offline *cluster, struct kl_topo **topo, struct kl_xml **document);

/** Node of every rank, numbered as they appear; `node` holds hosts * gpus. Returns how many through `nnodes`. */
ncclResult_t kl_offline_nodes(const struct kl_offline *cluster, int *node, int *nnodes);

#endif
