/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cluster.h"

#include "base/error.h"
#include "device/config.h"
#include "device/device.h"
#include "topo/smi.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Loading the process's own settings reports their errors; the settings of --with were checked before. */
static void load_options(struct kl_cluster *c)
{
    kl_topo_config_load(&c->config, &c->options);
    if (c->settings.nover) kl_topo_config_load_from(&c->config, &c->settings, &c->options);
}

static void load_device_config(const struct kl_cluster *c, struct kl_device_config *config)
{
    kl_param_load(&kl_device_param_set, config);
    if (c->settings.nover) kl_param_load_from(&kl_device_param_set, config, &c->settings);
}

/* Host devices of a process here; `file` may be NULL. */
static int count_devices(const struct kl_cluster *c, const struct kl_xml *file)
{
    struct kl_device_config config;

    load_device_config(c, &config);
    return kl_device_count(&config, file ? kl_machine_file_gpus(file) : 0);
}

/* ---- devices ---- */

static ncclResult_t make_devices(struct kl_cluster *c, int n)
{
    c->device = calloc((size_t)n + 1, sizeof *c->device);
    if (!c->device) return KL_NOMEM("devices");
    for (int i = 0; i < n; i++) c->device[i] = (struct kl_host_device){.rank = i, .ordinal = i};
    c->gpus = n;
    return ncclSuccess;
}

/* Device i from now on is the former device `from`. */
static void use_device(struct kl_cluster *c, int i, int from, const struct kl_gpu_facts *gpu)
{
    if (c->facts.ngpus)
        c->facts.gpu[i] = gpu[from];
    else
        c->device[i].ordinal = from;
}

/* Keep the devices of a list like "0,2,4", in its order. */
static ncclResult_t pick_devices(struct kl_cluster *c, const char *list)
{
    int n = 0, all = c->gpus;
    struct kl_gpu_facts *gpu = calloc((size_t)c->facts.ngpus + 1, sizeof *gpu);

    if (!gpu) return KL_NOMEM("devices");
    if (c->facts.ngpus) memcpy(gpu, c->facts.gpu, (size_t)c->facts.ngpus * sizeof *gpu);
    for (const char *at = list;; at++) {
        char *end;
        long i = strtol(at, &end, 10);

        if (!isdigit((unsigned char)*at) || i >= all || n == all || (*end && *end != ',')) {
            free(gpu);
            return KL_FAIL(ncclInvalidUsage, "--gpus %s: expected ordinals of %s below %d, as in 0,2,4", list, c->name,
                           all);
        }
        use_device(c, n++, (int)i, gpu);
        at = end;
        if (!*at) break;
    }
    free(gpu);
    c->gpus = n;
    return ncclSuccess;
}

/* Over the machine's NUMA nodes, as for a process that runs there. */
static void spread_devices(struct kl_cluster *c)
{
    enum { MAX_NODES = 1024 };
    int node[MAX_NODES], nnodes = kl_machine_numa_nodes(c->machine.sysfs, node, MAX_NODES);

    for (int i = 0; i < c->gpus; i++) c->device[i].numa = kl_host_devices.node(i, c->gpus, node, nnodes);
}

/* Unless the request asks for CPUs, in any way. */
static ncclResult_t look_for_gpus(struct kl_cluster *c, const struct kl_cluster_request *q)
{
    struct kl_device_config config;

    if (q->sysfs || q->ranks) return ncclSuccess;
    load_device_config(c, &config);
    if (!config.nvml || config.host_devices) return ncclSuccess;
    c->looked = true;
    return kl_gpus_read(&c->facts.gpu, &c->facts.ngpus, c->problem);
}

static int by_dev(const void *x, const void *y)
{
    return ((const struct kl_gpu_facts *)x)->dev - ((const struct kl_gpu_facts *)y)->dev;
}

static ncclResult_t look_at_nics(struct kl_cluster *c, const char *sysfs)
{
    struct kl_setting ifname;
    struct kl_nics_filter filter = {.hca = c->config.ib_hca, .ib_disable = c->config.ib_disable};
    struct kl_nics_seen seen;

    if (kl_settings_find(&c->settings, "NCCL_SOCKET_IFNAME", &ifname)) filter.ifname = ifname.text;
    KL_TRY(kl_nics_read(sysfs, &filter, &seen));
    c->facts.net = seen.net;
    c->facts.nnets = seen.nnets;
    c->skip = seen.skip;
    c->nskips = seen.nskips;
    return ncclSuccess;
}

/* Merged as NCCL's own networks do: sockets are not. */
static void let_nics_merge(struct kl_cluster *c)
{
    if (!c->facts.nnets || !c->facts.net[0].gdr) return;
    c->machine.merge_nets = c->config.ib_merge ? kl_nics_join : kl_nics_join_none;
    c->machine.merge_ctx = c->facts.net;
}

/* A machine without a file: as it was recorded, or this one; its GPUs, or host devices. */
static ncclResult_t open_machine(struct kl_cluster *c, const struct kl_cluster_request *q)
{
    if (q->sysfs) KL_TRY(kl_record_check(q->sysfs));
    if (q->sysfs) KL_TRY(kl_record_load(q->sysfs, &c->facts));
    KL_TRY(look_for_gpus(c, q));
    if (!c->facts.nnets) KL_TRY(look_at_nics(c, q->sysfs));
    for (int i = 0; i < c->facts.nnets; i++)
        c->facts.net[i].coll = true; /* of any kind: their hosts can reduce (net/collnet.h) */
    if (!c->facts.has_cpu) kl_cpu_facts_read(&c->facts.cpu);
    c->machine.cpu = &c->facts.cpu;
    c->machine.net = c->facts.net;
    c->machine.nnets = c->facts.nnets;
    let_nics_merge(c);
    if (!c->facts.ngpus) {
        c->cpus = true;
        KL_TRY(make_devices(c, q->ranks ? q->ranks : count_devices(c, NULL)));
        spread_devices(c);
    } else {
        qsort(c->facts.gpu, (size_t)c->facts.ngpus, sizeof *c->facts.gpu, by_dev);
        if (c->facts.gpu[0].dev < 0) return KL_FAIL(ncclInvalidUsage, "%s: a GPU without a device number", q->sysfs);
        c->gpus = c->facts.ngpus;
    }
    return ncclSuccess;
}

static ncclResult_t use_file(struct kl_cluster *c)
{
    c->machine.file = c->file;
    c->name = kl_xml_name(c->file);
    KL_TRY(kl_machine_check_file(c->file));
    return make_devices(c, kl_machine_file_gpus(c->file));
}

/* NCCL_TOPO_FILE and KOLO_MACHINE, if the library would use them. */
static ncclResult_t open_setting(struct kl_cluster *c)
{
    KL_TRY(kl_machine_read_file(c->config.topo_file, c->config.machine, &c->assumed, &c->file));
    c->from_setting = c->file != NULL;
    c->setting_failed = !c->file;
    return ncclSuccess;
}

static ncclResult_t open_text(struct kl_cluster *c, const struct kl_cluster_request *q)
{
    const char *label = q->label ? q->label : "text in memory";

    return kl_machine_parse(label, q->text, q->bytes, q->machine ? q->machine : c->config.machine, &c->assumed,
                            &c->file);
}

/* A file that is asked for, NCCL_TOPO_FILE as far as the library would use it, a record, or this machine. */
static ncclResult_t open_source(struct kl_cluster *c, const struct kl_cluster_request *q)
{
    if (q->document)
        KL_TRY(kl_xml_clone(q->document, &c->file));
    else if (q->nsmi)
        KL_TRY(kl_smi_load(q->smi, q->nsmi, &c->assumed, &c->file));
    else if (q->text)
        KL_TRY(open_text(c, q));
    else if (q->topo || q->machine)
        KL_TRY(kl_machine_load(q->topo, q->machine ? q->machine : c->config.machine, &c->assumed, &c->file));
    else if (!q->sysfs && (*c->config.topo_file || *c->config.machine))
        KL_TRY(open_setting(c));
    return c->file ? use_file(c) : open_machine(c, q);
}

/* On the machine that represents this one, a process uses as many GPUs as it has devices. */
static void limit_devices(struct kl_cluster *c)
{
    int n = c->from_setting ? count_devices(c, c->file) : c->gpus;

    if (n < c->gpus) c->gpus = n;
}

/* A file of several hosts, one NVLink domain, counts as that many. */
static ncclResult_t count_hosts(struct kl_cluster *c)
{
    int of_file = c->file ? kl_machine_file_hosts(c->file) : 1;

    if (c->hosts == 1) return ncclSuccess;
    if (c->hosts % of_file)
        return KL_FAIL(ncclInvalidUsage, "%s describes %d hosts: --hosts %d is not a multiple of them", c->name,
                       of_file, c->hosts);
    c->hosts /= of_file;
    return ncclSuccess;
}

static void decide_mnnvl(struct kl_cluster *c, const struct kl_cluster_request *q)
{
    struct kl_setting set;

    if (q->mnnvl || (kl_settings_find(&c->settings, "KOLO_MNNVL", &set) && !strcmp(set.text, "1"))) {
        c->options.mnnvl = true;
        c->machine.hosts = c->hosts;
    } else if (c->file && kl_machine_file_multihost(c->file))
        c->options.mnnvl = true;
}

/* Number the devices from `first`. */
static void set_ranks(struct kl_cluster *c, int first)
{
    for (int i = 0; i < c->gpus; i++) {
        if (c->facts.ngpus)
            c->facts.gpu[i].rank = first + i;
        else
            c->device[i].rank = first + i;
    }
    c->machine.gpu = c->facts.gpu;
    c->machine.ngpus = c->facts.ngpus ? c->gpus : 0;
    c->machine.device = c->device;
    c->machine.ndevices = c->facts.ngpus ? 0 : c->gpus;
}

/* From now on the machine is the file that describes it. */
static ncclResult_t become_document(struct kl_cluster *c)
{
    struct kl_xml *document = NULL;

    if (c->file) return ncclSuccess;
    set_ranks(c, 0);
    KL_TRY(kl_machine_document(&c->machine, &c->options, &document));
    kl_record_free(&c->facts);
    free(c->device);
    c->facts = (struct kl_recorded){0};
    c->device = NULL;
    c->machine = (struct kl_machine){.sysfs = c->machine.sysfs};
    c->file = document;
    return use_file(c);
}

static ncclResult_t edit(struct kl_cluster *c, const struct kl_cluster_request *q)
{
    if (!q->as_document && !kl_edits_change_machine(&q->edits)) return ncclSuccess;
    KL_TRY(become_document(c));
    set_ranks(c, 0);
    return kl_edits_change_machine(&q->edits) ? kl_edit_machine(&q->edits, c) : ncclSuccess;
}

static const char *const release_name = "KOLO_NCCL_VERSION";

static ncclResult_t refuse_release(const char *origin, const char *text)
{
    char expected[KL_NCCL_EXPECTED];

    return KL_FAIL(ncclInvalidArgument, "%s %s: %s", origin, text, kl_nccl_expected(expected));
}

ncclResult_t kl_cluster_check_release(const struct kl_cluster_request *q)
{
    return q->nccl && kl_nccl_parse(q->nccl) < 0 ? refuse_release("--nccl", q->nccl) : ncclSuccess;
}

/* A caller that waits for an answer gets an error for a text that is no release. */
static ncclResult_t check_release(const struct kl_cluster *c)
{
    struct kl_setting set;
    char origin[KL_ORIGIN_TEXT];

    if (!kl_settings_find(&c->settings, release_name, &set) || kl_nccl_parse(set.text) >= 0) return ncclSuccess;
    return refuse_release(set.file && !set.line ? kl_setting_origin(&set, origin) : release_name, set.text);
}

/* The settings of --with, then the requested release. */
static ncclResult_t use_settings(struct kl_cluster *c, const struct kl_cluster_request *q)
{
    size_t n = (size_t)q->edits.with.n;

    KL_TRY(kl_cluster_check_release(q));
    c->settings = *kl_settings_process();
    c->params = q->edits.params;
    if (n || q->nccl) KL_TRY(kl_edit_settings(&q->edits, &c->over));
    if (q->nccl) c->over[n++] = (struct kl_setting){.name = release_name, .text = q->nccl, .file = "--nccl"};
    if (n) c->settings = kl_settings_overlay(kl_settings_process(), c->over, n);
    return check_release(c);
}

ncclResult_t kl_cluster_open(const struct kl_cluster_request *q, struct kl_cluster *c)
{
    ncclResult_t rc;

    *c = (struct kl_cluster){.hosts = q->hosts ? q->hosts : 1, .name = "this machine"};
    c->machine.sysfs = q->sysfs;
    c->constants = q->constants ? q->constants : &kl_tuning_reference;
    KL_TRY_OR(rc, fail, use_settings(c, q));
    load_options(c);
    if (q->release) c->options.nccl = q->release;
    KL_TRY_OR(rc, fail, open_source(c, q));
    limit_devices(c);
    if (q->gpus) KL_TRY_OR(rc, fail, pick_devices(c, q->gpus));
    KL_TRY_OR(rc, fail, edit(c, q));
    KL_TRY_OR(rc, fail, count_hosts(c));
    decide_mnnvl(c, q);
    set_ranks(c, 0);
    return ncclSuccess;
fail:
    kl_cluster_close(c);
    return rc;
}

void kl_cluster_close(struct kl_cluster *c)
{
    kl_xml_free(c->file);
    kl_record_free(&c->facts);
    free(c->skip);
    free(c->device);
    free(c->over);
    *c = (struct kl_cluster){0};
}

/* ---- systems ---- */

ncclResult_t kl_cluster_topo(struct kl_cluster *c, int rank, struct kl_topo **topo)
{
    if (c->machine.hosts <= 1) set_ranks(c, rank / c->gpus * c->gpus);
    ncclResult_t rc = kl_machine_topo(&c->machine, &c->options, rank, c->hosts * c->gpus, topo, NULL);
    set_ranks(c, 0);
    return rc;
}

ncclResult_t kl_cluster_whole(const struct kl_cluster *c, struct kl_topo **topo, struct kl_xml **document)
{
    return kl_machine_whole(&c->machine, &c->options, topo, document);
}
