/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cluster.h - a cluster to plan for, without any device: identical hosts, from a file or like this machine.
 *
 * Rank r is GPU r mod G of host r / G, G being the GPUs used of one host. Settings come from the environment and the
 * configuration files, as in a communicator, and from the edits (edit.h), which override them.
 *
 * Errors:  ncclInvalidUsage for a list of GPUs that does not fit this cluster, and for edits that cannot be made;
 *          ncclInvalidArgument for edits that cannot be parsed (edit.h).
 * Threads: one at a time.
 */
#ifndef KL_PLAN_CLUSTER_H
#define KL_PLAN_CLUSTER_H

#include "base/setting.h"
#include "graph/tuning.h"
#include "plan/edit.h"
#include "plan/found.h"
#include "plan/gpus.h"
#include "plan/uncertain.h"
#include "topo/config.h"
#include "topo/machine.h"
#include "topo/nics.h"
#include "topo/record.h"

/** A request; unused fields are NULL and 0. The memory it points to must outlive the cluster. */
struct kl_cluster_request {
    const char *topo;       /* topology file, "-" for standard input */
    const char *machine;    /* name of a known machine (topo/known.h): this one, or the machine of the file `topo` */
    const char *const *smi; /* texts of nvidia-smi (topo/smi.h), instead of `topo` */
    int nsmi;
    const char *text; /* in memory, `bytes` long, instead of `topo`: topology XML, or the matrix of nvidia-smi */
    size_t bytes;
    const char *label; /* names `text` in messages and answers; NULL: "text in memory" */
    const char *sysfs; /* root of a recorded machine (topo/record.h) */
    const char *nccl;  /* release to follow, "2.29.7"; NULL: KOLO_NCCL_VERSION, or the default */
    int release;       /* not 0: followed instead (kl_nccl_mix) */
    const char *gpus;  /* "0,2,4": ordinals of the GPUs to use */
    int hosts;  /* 0 counts as 1; for a file with several, which are one NVLink domain, a multiple of them, or 1: all */
    int ranks;  /* host devices when there is no file; 0: as many as a process has here */
    bool mnnvl; /* all hosts form one NVLink domain */
    bool as_document;              /* plan a measured machine from the document that describes it, as edits need it */
    const struct kl_xml *document; /* of a machine with ranks, as kl_machine_document makes it; instead of `topo` */
    const struct kl_tuning_constants *constants; /* of the tuning model; NULL: kl_tuning_reference */
    struct kl_edits edits;
};

/** Does the request name a machine? Else it is NCCL_TOPO_FILE's, or this one. */
static inline bool kl_cluster_is_named(const struct kl_cluster_request *q)
{
    return q->topo || q->text || q->machine || q->nsmi || q->sysfs || q->document;
}

struct kl_cluster {
    struct kl_machine machine; /* host 0 */
    struct kl_topo_config config;
    struct kl_topo_options options;
    struct kl_settings settings; /* in force */
    struct kl_setting *over;     /* the settings of the edits */
    const struct kl_param_registry *params;
    const struct kl_tuning_constants *constants;
    struct kl_xml *file;
    struct kl_assumed assumed;     /* assumptions in place of data that the file lacks */
    struct kl_uncertain uncertain; /* empty until the opener of the cluster fills it */
    struct kl_finding finding;     /* none until the opener of the cluster looks for one */
    struct kl_recorded facts;      /* of the measured machine, when there is no file */
    struct kl_net_skip *skip;      /* its network devices that the plan does not use, with reasons */
    int nskips;
    char problem[KL_GPUS_PROBLEM_TEXT]; /* the reason why GPUs of this machine are hidden, else "" */
    struct kl_host_device *device;      /* host devices, unless `facts` has GPUs */
    int hosts, gpus;                    /* gpus: of each host; the hosts of one file count as one */
    const char *name;                   /* of the topology, for people */
    bool cpus;                          /* the devices are CPUs, and represent no GPUs of a file */
    bool looked;                        /* GPUs of this machine were looked for */
    bool from_setting;                  /* the file comes from NCCL_TOPO_FILE */
    bool setting_failed; /* NCCL_TOPO_FILE cannot be read or has no GPU, so this machine is used instead */
};

/** Parse the request, load the file, and edit it. On failure nothing is held. */
ncclResult_t kl_cluster_open(const struct kl_cluster_request *request, struct kl_cluster *cluster);

/** The error of kl_cluster_open for a `nccl` that is no release, for callers that choose a release themselves where
 * none is given. */
ncclResult_t kl_cluster_check_release(const struct kl_cluster_request *request);
void kl_cluster_close(struct kl_cluster *cluster);

/** The system of a rank: its host's, or all hosts' with MNNVL. */
ncclResult_t kl_cluster_topo(struct kl_cluster *cluster, int rank, struct kl_topo **topo);

/** Host 0, or all hosts with MNNVL, before trimming. */
ncclResult_t kl_cluster_whole(const struct kl_cluster *cluster, struct kl_topo **topo, struct kl_xml **document);

#endif
