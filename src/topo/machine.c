/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/machine.h"

#include "base/error.h"
#include "topo/detect.h"
#include "topo/host.h"
#include "topo/netmerge.h"
#include "topo/paths.h"
#include "topo/sysfs.h"

#include <stdlib.h>
#include <string.h>

/* Elements visited over all ranks: bounds the time for untrusted files. */
static const int64_t max_visits = (int64_t)1 << 26;

static const char *sysfs_of(const struct kl_machine *m)
{
    return m->sysfs ? m->sysfs : "/sys";
}

/* ---- NUMA nodes ---- */

int kl_machine_numa_nodes(const char *sysfs, int *node, int max)
{
    char text[4096], dir[KL_SYSFS_PATH_TEXT];
    struct kl_cpuset online = {{0}}; /* NUMA nodes are written as CPUs are */
    int n = 0;

    if (snprintf(dir, sizeof dir, "%s/devices/system/node", sysfs ? sysfs : "/sys") < (int)sizeof dir &&
        kl_sysfs_text(dir, "online", text, sizeof text))
        kl_cpuset_parse_list(text, &online);
    for (int i = -1; n < max && (i = kl_cpuset_next(&online, i + 1)) >= 0;) node[n++] = i;
    if (!n) node[n++] = 0;
    return n;
}

/* ---- contributions of ranks ---- */

/* The document to fuse, and the elements that each contribution leaves out. */
struct contribution {
    const struct kl_xml *xml;
    bool nics; /* a nic without a NET is left out as well */
    bool *drop;
};

static bool is_frame(const struct contribution *c, const char *tag)
{
    return !strcmp(tag, "pci") || !strcmp(tag, "cpu") || (c->nics && !strcmp(tag, "nic"));
}

/* A rank keeps its GPU, its host's NETs, and their ancestors. Sets `drop` for the others. */
static bool keep_for(const struct contribution *k, int elem, int gpu)
{
    const struct kl_xml *xml = k->xml;
    const char *tag = kl_xml_tag(xml, elem), *keep = kl_xml_attr(xml, elem, "keep");
    bool kept = false, foreign = !strcmp(tag, "cpu") && kl_xml_host_hash(xml, elem) != kl_xml_host_hash(xml, gpu);

    if (elem == gpu) return k->drop[elem] = false, true;
    if (!strcmp(tag, "net")) {
        k->drop[elem] = keep && !strcmp(keep, "0");
        return !k->drop[elem];
    }
    k->drop[elem] = !strcmp(tag, "gpu"); /* another rank's, of the same device */
    if (k->drop[elem]) return false;
    for (int c = kl_xml_first(xml, elem); !foreign && c != KL_XML_NONE; c = kl_xml_next(xml, c))
        kept |= keep_for(k, c, gpu);
    k->drop[elem] = !kept && is_frame(k, tag);
    return kept;
}

/* Fuse the contributions of the ranks of the gpu elements into `to`, in the order of `gpu`. */
static ncclResult_t fuse_ranks(struct kl_xml *to, const struct kl_xml *from, const int *gpu, int n, int nccl)
{
    struct contribution k = {.xml = from, .nics = kl_nccl_has(nccl, KL_CHANGE_TRIM_NICS)};
    ncclResult_t rc = ncclSuccess;

    if ((int64_t)n * kl_xml_count(from) > max_visits)
        return KL_FAIL(ncclInternalError, "%s: %d GPUs among %d elements; describe fewer hosts", kl_xml_name(from), n,
                       kl_xml_count(from));
    k.drop = calloc((size_t)kl_xml_count(from) + 1, sizeof *k.drop);
    if (!k.drop) return KL_NOMEM("a topology");
    for (int i = 0; i < n && !rc; i++) {
        keep_for(&k, KL_XML_ROOT, gpu[i]);
        rc = kl_xml_fuse(to, from, k.drop);
    }
    free(k.drop);
    return rc;
}

/* ---- host devices that emulate the GPUs of a file ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Twice, as the file's own numbers may have been made here. */
static uint64_t hash_of_host(uint64_t hash, int host)
{
    return mix(mix(hash) + (uint64_t)host + 1);
}

/* Give the cpus of identical hosts different host hashes. */
static ncclResult_t number_host(struct kl_xml *xml, int host)
{
    for (int c = kl_xml_child(xml, KL_XML_ROOT, "cpu"); c != KL_XML_NONE; c = kl_xml_next_same(xml, c)) {
        KL_TRY(kl_xml_set_hex(xml, c, "host_hash", hash_of_host(kl_xml_host_hash(xml, c), host)));
    }
    return ncclSuccess;
}

/* Hosts that the devices are on. */
static int hosts_of_devices(const struct kl_machine *m)
{
    int hosts = m->hosts > 1 ? m->hosts : 1;

    for (int i = 0; i < m->ndevices; i++)
        if (m->device[i].host >= hosts) hosts = m->device[i].host + 1;
    return hosts;
}

int kl_machine_file_hosts(const struct kl_xml *file)
{
    uint64_t *seen = kl_machine_file_multihost(file) ? calloc((size_t)kl_xml_count(file), sizeof *seen) : NULL;
    int n = 0;

    for (int e = KL_XML_ROOT; seen && e != KL_XML_NONE; e = kl_xml_walk(file, KL_XML_ROOT, e)) {
        int i = 0;

        if (strcmp(kl_xml_tag(file, e), "gpu") != 0) continue;
        while (i < n && seen[i] != kl_xml_host_hash(file, e)) i++;
        if (i == n) seen[n++] = kl_xml_host_hash(file, e);
    }
    free(seen);
    return n ? n : 1;
}

/* Keep the gpu elements of one of the file's hosts, in the order of the hosts' first GPUs. Returns their number. */
static int keep_host(const struct kl_xml *xml, int *elem, int nelems, int host)
{
    uint64_t wanted = 0;
    int nhosts = 0, n = 0;

    for (int i = 0; i < nelems && nhosts <= host; i++) {
        int k = 0;

        wanted = kl_xml_host_hash(xml, elem[i]);
        while (k < i && kl_xml_host_hash(xml, elem[k]) != wanted) k++;
        nhosts += k == i;
    }
    for (int i = 0; i < nelems; i++)
        if (kl_xml_host_hash(xml, elem[i]) == wanted) elem[n++] = elem[i];
    return n;
}

/* The gpu element of each device of a host, in the devices' order; ranks on a taken one get a copy of it. *n receives
 * their number. Identical hosts have the devices of the first. */
static ncclResult_t give_ranks(const struct kl_machine *m, struct kl_xml *xml, const int *elem, int nelems, int host,
                               int *gpu, int *n)
{
    int shift = m->hosts > 1 ? host * m->ndevices : 0;

    for (int i = 0; i < m->ndevices; i++) {
        const struct kl_host_device *d = &m->device[i];

        if (m->hosts <= 1 && d->host != host) continue;
        if (d->ordinal < 0 || d->ordinal >= nelems)
            return KL_FAIL(ncclInvalidUsage, "%s: rank %d uses device %d, but the file has %d", kl_xml_name(xml),
                           d->rank + shift, d->ordinal, nelems);
        int at = elem[d->ordinal];
        for (int k = 0; k < i && at == elem[d->ordinal]; k++)
            if (m->device[k].ordinal == d->ordinal && m->device[k].host == d->host)
                KL_TRY(kl_host_device_share(xml, elem[d->ordinal], &at));
        KL_TRY(kl_xml_set_int(xml, at, "rank", d->rank + shift));
        gpu[(*n)++] = at;
    }
    return ncclSuccess;
}

/* One host of the file: complete it, hand out ranks, fuse the ranks' contributions into `to`. */
static ncclResult_t fuse_file_host(const struct kl_machine *m, int host, int nccl, struct kl_xml *to)
{
    int hosts = hosts_of_devices(m), of_file = m->hosts > 1 ? 1 : kl_machine_file_hosts(m->file);
    int nelems = kl_machine_file_gpus(m->file), nranks = 0;
    int *elem = calloc((size_t)nelems + 1, sizeof *elem), *gpu = calloc((size_t)m->ndevices + 1, sizeof *gpu);
    struct kl_xml *xml = NULL;
    ncclResult_t rc;

    KL_TRY_OR(rc, out, elem && gpu ? ncclSuccess : KL_NOMEM("a topology"));
    KL_TRY_OR(rc, out, kl_xml_clone(m->file, &xml));
    KL_TRY_OR(rc, out, kl_machine_complete(xml, elem));
    for (int i = 0; i < nelems; i++) kl_xml_unset(xml, elem[i], "rank");
    if (hosts > 1 && of_file > 1) nelems = keep_host(xml, elem, nelems, host % of_file);
    KL_TRY_OR(rc, out, give_ranks(m, xml, elem, nelems, host, gpu, &nranks));
    if (hosts > of_file) KL_TRY_OR(rc, out, number_host(xml, host / of_file));
    KL_TRY_OR(rc, out, fuse_ranks(to, xml, gpu, nranks, nccl));
out:
    free(elem);
    free(gpu);
    kl_xml_free(xml);
    return rc;
}

static ncclResult_t fuse_file(const struct kl_machine *m, int nccl, struct kl_xml *to)
{
    int hosts = hosts_of_devices(m), copies = m->hosts > 1 ? m->hosts : 1;

    KL_TRY(kl_machine_check_file(m->file));
    if ((int64_t)copies * m->ndevices > KL_MACHINE_MAX_GPUS)
        return KL_FAIL(ncclInvalidUsage, "%s: %d hosts of %d GPUs in one NVLink domain; it may have %d GPUs",
                       kl_xml_name(m->file), copies, m->ndevices, KL_MACHINE_MAX_GPUS);
    for (int h = 0; h < hosts; h++) KL_TRY(fuse_file_host(m, h, nccl, to));
    return ncclSuccess;
}

/* ---- devices of this machine ---- */

/* All parts of a file count as this host, even if it names several hosts. */
static ncclResult_t own_cpus(const struct kl_machine *m, struct kl_xml *xml)
{
    for (int c = kl_xml_child(xml, KL_XML_ROOT, "cpu"); c != KL_XML_NONE; c = kl_xml_next_same(xml, c)) {
        if (m->host_hash)
            KL_TRY(kl_xml_set_hex(xml, c, "host_hash", m->host_hash));
        else
            kl_xml_unset(xml, c, "host_hash");
    }
    return ncclSuccess;
}

static ncclResult_t begin_with_file(const struct kl_machine *m, int nccl, struct kl_xml **xml)
{
    KL_TRY(kl_xml_clone(m->file, xml));
    KL_TRY(kl_xml_check_system(*xml));
    return kl_nccl_has(nccl, KL_CHANGE_FILE_HOST) ? own_cpus(m, *xml) : ncclSuccess;
}

static ncclResult_t begin(const struct kl_machine *m, int nccl, struct kl_xml **xml)
{
    int root;

    if (m->file && !kl_xml_empty(m->file)) return begin_with_file(m, nccl, xml);
    KL_TRY(kl_xml_create("this machine", xml));
    KL_TRY(kl_xml_add(*xml, KL_XML_NONE, "system", &root));
    return kl_xml_set(*xml, root, "version", "1");
}

/* Host devices all go into one document; the contributions of their ranks differ only in the device. */
static ncclResult_t fuse_host_devices(const struct kl_machine *m, const struct kl_topo_options *options,
                                      struct kl_detect *d, struct kl_xml *to)
{
    int *gpu = calloc((size_t)m->ndevices + 1, sizeof *gpu), n = 0;
    ncclResult_t rc;

    if (!gpu) return KL_NOMEM("a topology");
    for (int i = 0; i < m->ndevices; i++) KL_TRY_OR(rc, out, kl_host_device_place(d, &m->device[i]));
    KL_TRY_OR(rc, out, kl_net_merge_place(d, m, options));
    for (int i = 0; i < m->ndevices; i++) {
        char rank[16];

        snprintf(rank, sizeof rank, "%d", m->device[i].rank);
        gpu[n++] = kl_xml_find(d->xml, "gpu", "rank", rank);
    }
    for (int e = 0; e < kl_xml_count(d->xml); e++) {
        const char *keep = kl_xml_attr(d->xml, e, "keep");
        if (keep && !strcmp(keep, "1")) kl_xml_unset(d->xml, e, "keep");
    }
    rc = fuse_ranks(to, d->xml, gpu, n, d->nccl);
out:
    free(gpu);
    return rc;
}

static ncclResult_t one_document(const struct kl_machine *m, const struct kl_topo_options *options, struct kl_detect *d,
                                 const struct kl_gpu_facts *gpu, struct kl_xml *to)
{
    ncclResult_t rc;

    d->xml = NULL;
    KL_TRY_OR(rc, out, begin(m, d->nccl, &d->xml));
    if (gpu) {
        KL_TRY_OR(rc, out, kl_detect_gpu(d, gpu));
        KL_TRY_OR(rc, out, kl_net_merge_place(d, m, options));
        kl_xml_trim(d->xml, kl_nccl_has(d->nccl, KL_CHANGE_TRIM_NICS));
        rc = kl_xml_fuse(to, d->xml, NULL);
    } else
        rc = fuse_host_devices(m, options, d, to);
out:
    kl_xml_free(d->xml);
    return rc;
}

/* CUDA ranks each detect their own GPU and all NETs, as they would alone. */
static ncclResult_t fuse_detected(const struct kl_machine *m, const struct kl_topo_options *options, struct kl_xml *to)
{
    struct kl_cpu_facts here;
    struct kl_detect d = {
        .sysfs = sysfs_of(m), .cpu = m->cpu ? m->cpu : &here, .host_hash = m->host_hash, .nccl = options->nccl};
    int node[2];

    if (!m->cpu) kl_cpu_facts_read(&here);
    d.only_numa = kl_machine_numa_nodes(d.sysfs, node, 2) == 1 ? node[0] : -1;
    if (!m->ngpus) return one_document(m, options, &d, NULL, to);
    kl_detect_refresh(d.sysfs);
    for (int i = 0; i < m->ngpus; i++) KL_TRY(one_document(m, options, &d, &m->gpu[i], to));
    return ncclSuccess;
}

/* ---- the chain ---- */

ncclResult_t kl_machine_document(const struct kl_machine *m, const struct kl_topo_options *options, struct kl_xml **out)
{
    struct kl_xml *xml = NULL;
    ncclResult_t rc;

    if (hosts_of_devices(m) > 1 && (!m->file || m->ngpus))
        return KL_FAIL(ncclInvalidUsage, "several hosts in one NVLink domain need a topology file that describes one");
    KL_TRY(kl_xml_create(m->file ? kl_xml_name(m->file) : "this machine", &xml));
    if (kl_machine_plays_file(m))
        rc = fuse_file(m, options->nccl, xml);
    else
        rc = fuse_detected(m, options, xml);
    if (rc) {
        kl_xml_free(xml);
        return rc;
    }
    *out = xml;
    return ncclSuccess;
}

/* Facts about GPUs that documents do not carry. */
static void note_facts(const struct kl_machine *m, struct kl_topo *t)
{
    for (int i = 0; i < m->ngpus; i++) {
        int g = kl_topo_gpu_of_rank(t, m->gpu[i].rank);
        if (g >= 0) t->node[kl_topo_at(t, KL_NODE_GPU, g)].gpu.shm_id = m->gpu[i].shm_id;
    }
    for (int i = 0; i < m->ndevices; i++) {
        int g = kl_topo_gpu_of_rank(t, m->device[i].rank);
        if (g >= 0) t->node[kl_topo_at(t, KL_NODE_GPU, g)].gpu.shm_id = m->device[i].shm_id;
    }
}

/* A GPU can get lost below a device that is no switch; every rank needs its own. */
static ncclResult_t check_rank(const struct kl_topo *t, const struct kl_xml *xml, int rank)
{
    if (kl_topo_gpu_of_rank(t, rank) >= 0) return ncclSuccess;
    return KL_FAIL(ncclInternalError, "%s: the GPU of rank %d is below a device that is no PCI switch; check its class",
                   kl_xml_name(xml), rank);
}

static ncclResult_t check_ranks(const struct kl_machine *m, const struct kl_topo *t, const struct kl_xml *xml)
{
    for (int i = 0; i < m->ngpus; i++)
        if (m->gpu[i].dev != -1) KL_TRY(check_rank(t, xml, m->gpu[i].rank));
    for (int h = 0; h < (m->hosts > 1 ? m->hosts : 1); h++)
        for (int i = 0; i < m->ndevices; i++) KL_TRY(check_rank(t, xml, m->device[i].rank + h * m->ndevices));
    return ncclSuccess;
}

ncclResult_t kl_machine_graph(const struct kl_machine *m, const struct kl_xml *document,
                              const struct kl_topo_options *options, struct kl_topo **topo)
{
    struct kl_topo *t = NULL;
    ncclResult_t rc;

    KL_TRY(kl_topo_build(document, options, &t));
    KL_TRY_OR(rc, fail, check_ranks(m, t, document));
    note_facts(m, t);
    KL_TRY_OR(rc, fail, kl_topo_paths(t));
    *topo = t;
    return ncclSuccess;
fail:
    kl_topo_free(t);
    return rc;
}

ncclResult_t kl_machine_narrow(struct kl_topo **topo, int rank, int nranks)
{
    KL_TRY(kl_topo_trim(topo, rank, nranks));
    if (!kl_topo_has_paths(*topo)) KL_TRY(kl_topo_paths(*topo));
    return ncclSuccess;
}

ncclResult_t kl_machine_whole(const struct kl_machine *m, const struct kl_topo_options *options, struct kl_topo **topo,
                              struct kl_xml **document)
{
    struct kl_xml *xml;

    KL_TRY(kl_machine_document(m, options, &xml));
    ncclResult_t rc = kl_machine_graph(m, xml, options, topo);
    if (!rc && document)
        *document = xml;
    else
        kl_xml_free(xml);
    return rc;
}

ncclResult_t kl_machine_topo(const struct kl_machine *m, const struct kl_topo_options *options, int rank, int nranks,
                             struct kl_topo **topo, struct kl_xml **document)
{
    struct kl_xml *xml;
    struct kl_topo *t = NULL;

    KL_TRY(kl_machine_whole(m, options, &t, &xml));
    ncclResult_t rc = kl_machine_narrow(&t, rank, nranks);
    if (rc)
        kl_topo_free(t);
    else
        *topo = t;
    if (!rc && document)
        *document = xml;
    else
        kl_xml_free(xml);
    return rc;
}
