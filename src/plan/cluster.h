/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cluster.h - a cluster to plan for, without any device: identical hosts, from a file or like this machine.
 *
 * Rank r is GPU r mod G of host r / G, G being the GPUs used of one host. Settings come from the environment and the
 * configuration files, as in a communicator, and from the edits (edit.h), which count before them.
 *
 * Errors:  ncclInvalidUsage for a list of GPUs that is none of this cluster's, and for edits that cannot be made;
 *          ncclInvalidArgument for edits that are not understood (edit.h).
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

/** What is asked for; NULL and 0 where nothing is. What it points to must outlive the cluster. */
struct kl_cluster_request {
    const char *topo;       /* topology file, "-" for standard input */
    const char *machine;    /* name of a known machine (topo/known.h): this one, or what `topo` is a file of */
    const char *const *smi; /* texts of nvidia-smi (topo/smi.h), instead of `topo` */
    int nsmi;
    const char *text; /* in memory, `bytes` long, instead of `topo`: topology XML, or the matrix of nvidia-smi */
    size_t bytes;
    const char *label; /* names `text` in messages and answers; NULL: "text in memory" */
    const char *sysfs; /* root of a recorded machine (topo/record.h) */
    const char *nccl;  /* release that is followed, "2.29.7"; NULL: KOLO_NCCL_VERSION, or the default */
    int release;       /* not 0: followed instead (kl_nccl_mix) */
    const char *gpus;  /* "0,2,4": ordinals of the GPUs to use */
    int hosts; /* 0 counts as 1; of a file that holds several, which are one NVLink domain, a multiple of them, or 1: all */
    int ranks;        /* host devices when there is no file; 0: as many as a process has here */
    bool mnnvl;       /* all hosts form one NVLink domain */
    bool as_document; /* plan a machine that is looked at from the document that describes it, as edits need it */
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
    struct kl_setting *over;     /* those of the edits */
    const struct kl_param_registry *params;
    const struct kl_tuning_constants *constants;
    struct kl_xml *file;
    struct kl_assumed assumed;     /* what the file does not say */
    struct kl_uncertain uncertain; /* nothing until whoever opened the cluster looks */
    struct kl_finding finding;     /* none until whoever opened the cluster looks */
    struct kl_recorded facts;      /* of the machine that is looked at, when there is no file */
    struct kl_net_skip *skip;      /* network devices of it that the plan does not use, and why */
    int nskips;
    char problem[KL_GPUS_PROBLEM_TEXT]; /* what hides GPUs of this machine, "" else */
    struct kl_host_device *device;      /* host devices, unless `facts` has GPUs */
    int hosts, gpus;                    /* gpus: of each host; the hosts of one file count as one */
    const char *name;                   /* of the topology, for people */
    bool cpus;                          /* the devices are CPUs, and stand for no GPUs of a file */
    bool looked;                        /* for GPUs of this machine */
    bool from_setting;                  /* the file is that of NCCL_TOPO_FILE */
    bool setting_failed; /* NCCL_TOPO_FILE cannot be read or has no GPU, so that this machine is looked at instead */
};

/** Understand the request, load the file, and edit it. On failure nothing is held. */
ncclResult_t kl_cluster_open(const struct kl_cluster_request *request, struct kl_cluster *cluster);

/** What kl_cluster_open says of a `nccl` that is no release, for those that choose one themselves where none is asked for. */
ncclResult_t kl_cluster_check_release(const struct kl_cluster_request *request);
void kl_cluster_close(struct kl_cluster *cluster);

/** The system that a rank works with: of its host, or of all hosts with MNNVL. */
ncclResult_t kl_cluster_topo(struct kl_cluster *cluster, int rank, struct kl_topo **topo);

/** Host 0, or all hosts with MNNVL, before trimming. */
ncclResult_t kl_cluster_whole(const struct kl_cluster *cluster, struct kl_topo **topo, struct kl_xml **document);

#endif
