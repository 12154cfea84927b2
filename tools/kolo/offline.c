/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/offline.h"

#include "base/error.h"
#include "base/setting.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

static void load_settings(struct offline *o)
{
    kl_comm_config_load(&o->comm);
    o->options = KL_TOPO_OPTIONS;
    kl_topo_config_load(&o->topo_config, &o->options);
    kl_graph_config_load(&o->graph);
    o->options.shm_disable = o->comm.shm_disable;
    o->options.p2p_level = o->comm.p2p_disable ? KL_PATH_LOC : o->comm.p2p_level;
}

/* KOLO_MNNVL stands for --mnnvl. */
static bool mnnvl_is_set(void)
{
    struct kl_setting s;

    return kl_settings_find(kl_settings_process(), "KOLO_MNNVL", &s) && !strcmp(s.text, "1");
}

/* ---- devices ---- */

static int cpus_here(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 2 : CPU_COUNT(&set);

    return n < 2 ? 2 : n;
}

/* Which of `n` devices a list like "0,2,4" names: flags, and how many. */
static ncclResult_t select_devices(const char *list, int n, char *chosen, int *count)
{
    const char *at = list;

    *count = 0;
    while (*at) {
        char *end;
        long i = strtol(at, &end, 10);

        if (end == at || (*end && *end != ','))
            return KL_FAIL(ncclInvalidArgument, "--gpus \"%s\" is not a list of ordinals like 0,2,4", list);
        if (i < 0 || i >= n)
            return KL_FAIL(ncclInvalidArgument, "--gpus names device %ld; there are 0 to %d", i, n - 1);
        *count += !chosen[i];
        chosen[i] = 1;
        at = end + (*end == ',');
    }
    if (!*count) return KL_FAIL(ncclInvalidArgument, "--gpus names no device; write ordinals like 0,2,4");
    return ncclSuccess;
}

static ncclResult_t set_devices(struct offline *o, const char *gpus)
{
    int n = o->file ? kl_machine_file_gpus(o->file) : cpus_here(), count = n;
    char *chosen = calloc((size_t)n + 1, 1);
    ncclResult_t rc = ncclSuccess;

    o->device = calloc((size_t)n + 1, sizeof *o->device);
    if (!chosen || !o->device) {
        rc = KL_NOMEM("the devices of a machine");
        goto out;
    }
    if (gpus)
        KL_TRY_OR(rc, out, select_devices(gpus, n, chosen, &count));
    else
        memset(chosen, 1, (size_t)n);
    for (int i = 0, rank = 0; i < n; i++)
        if (chosen[i]) {
            o->device[rank] = (struct kl_host_device){.rank = rank, .ordinal = i};
            rank++;
        }
    o->machine.device = o->device;
    o->machine.ndevices = count;
out:
    free(chosen);
    return rc;
}

static ncclResult_t load_files(struct offline *o, const char *topo)
{
    if (topo) {
        KL_TRY(kl_xml_load(topo, kl_xml_topo_schema, &o->file));
        KL_TRY(kl_xml_check_system(o->file));
        if (!kl_machine_file_gpus(o->file))
            return KL_FAIL(ncclInvalidUsage, "%s: no gpu element; a topology needs one per GPU", topo);
    }
    if (o->comm.graph_file[0]) KL_TRY(kl_xml_load(o->comm.graph_file, kl_xml_graph_schema, &o->graph_file));
    return ncclSuccess;
}

ncclResult_t offline_plan(const struct offline_args *args, struct offline *o)
{
    const char *topo = args->topo;
    bool domain = args->mnnvl || mnnvl_is_set();
    struct kl_plan_request request = {.machine = &o->machine, .options = &o->options, .config = &o->graph};

    memset(o, 0, sizeof *o);
    load_settings(o);
    if (!topo && o->comm.topo_file[0]) topo = o->comm.topo_file;
    KL_TRY(load_files(o, topo));
    KL_TRY(set_devices(o, args->gpus));
    o->machine.file = o->file;
    o->machine.hosts = domain ? args->hosts : 1;
    o->options.mnnvl = domain || (o->file && kl_machine_file_multihost(o->file));
    request.hosts = domain ? 1 : args->hosts;
    request.algo = o->comm.algo;
    request.proto = o->comm.proto;
    request.file = o->graph_file;
    return kl_plan_create(&request, &o->plan);
}

void offline_fini(struct offline *o)
{
    kl_plan_free(o->plan);
    free(o->device);
    kl_xml_free(o->file);
    kl_xml_free(o->graph_file);
    memset(o, 0, sizeof *o);
}
