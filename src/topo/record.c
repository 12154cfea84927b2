/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/record.h"

#include "base/error.h"
#include "base/parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_THINGS = 4096, LINE_TEXT = 4096 };

void kl_record_free(struct kl_recorded *r)
{
    free(r->gpu);
    free(r->net);
    *r = (struct kl_recorded){0};
}

/* ---- reading ---- */

/* Copy a text, cut if it does not fit: no known device has such a long name. */
static void set_text(char *field, size_t bytes, const char *value)
{
    snprintf(field, bytes, "%.*s", (int)bytes - 1, value);
}

/* A text that is no number counts as 0, as in topology files. */
static int number(const char *text)
{
    long value = strtol(text, NULL, 0);

    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int)value;
}

static void set_cpu(struct kl_cpu_facts *c, const char *key, const char *value)
{
    if (!strcmp(key, "arch")) set_text(c->arch, sizeof c->arch, value);
    if (!strcmp(key, "vendor")) set_text(c->vendor, sizeof c->vendor, value);
    if (!strcmp(key, "family")) c->family = number(value);
    if (!strcmp(key, "model")) c->model = number(value);
    if (!strcmp(key, "hypervisor")) c->hypervisor = number(value) != 0;
}

/* Unknown names count as the first. */
static int place_of(const char *name, const char *const *names, int n)
{
    for (int i = 1; i < n; i++)
        if (!strcmp(name, names[i])) return i;
    return 0;
}

/* "ready,CLUSTER,CLIQUE", or a state alone */
static void set_fabric(struct kl_gpu_facts *g, char *value)
{
    char *rest, *state = strtok_r(value, ",", &rest), *cluster = strtok_r(NULL, ",", &rest);
    const char *clique = strtok_r(NULL, ",", &rest);

    g->fabric = (enum kl_fabric_state)place_of(state ? state : "", kl_fabric_state_name, KL_FABRIC_STATES);
    if (cluster) set_text(g->cluster, sizeof g->cluster, cluster);
    if (clique) g->clique = (uint32_t)strtoul(clique, NULL, 10);
}

/* "0000:c4:00.0*2,0000:c5:00.0*2/switch" */
static void set_nvlinks(struct kl_gpu_facts *g, char *value)
{
    char *rest;

    for (char *item = strtok_r(value, ",", &rest); item && g->nnvlinks < KL_GPU_MAX_NVLINKS;
         item = strtok_r(NULL, ",", &rest)) {
        char *times = strchr(item, '*');

        if (times) *times = 0;
        set_text(g->nvlink[g->nnvlinks].target, KL_BUSID_TEXT, item);
        if (times && strchr(times + 1, '/'))
            g->nvlink[g->nnvlinks].far =
                (enum kl_far_end)place_of(strchr(times + 1, '/') + 1, kl_far_end_name, KL_FAR_ENDS);
        g->nvlink[g->nnvlinks++].count = times ? number(times + 1) : 1;
    }
}

/* "4x16" */
static void set_link(const char *value, int *gen, int *width)
{
    const char *x = strchr(value, 'x');

    *gen = number(value);
    *width = x ? number(x + 1) : 0;
}

static void set_gpu(struct kl_gpu_facts *g, const char *key, char *value)
{
    if (!strcmp(key, "busid")) set_text(g->busid, sizeof g->busid, value);
    if (!strcmp(key, "dev")) g->dev = number(value);
    if (!strcmp(key, "sm")) g->sm = number(value);
    if (!strcmp(key, "gdr")) g->gdr = number(value);
    if (!strcmp(key, "nvlink")) set_nvlinks(g, value);
    if (!strcmp(key, "nop2p")) g->no_p2p = kl_parse_hex(value);
    if (!strcmp(key, "fabric")) set_fabric(g, value);
    if (!strcmp(key, "name")) set_text(g->name, sizeof g->name, value);
    if (!strcmp(key, "memory")) g->memory = strtoull(value, NULL, 10);
    if (!strcmp(key, "id")) g->pci_id = (uint32_t)kl_parse_hex(value);
    if (!strcmp(key, "subsystem")) g->pci_subsystem = (uint32_t)kl_parse_hex(value);
    if (!strcmp(key, "pcie")) set_link(value, &g->pcie_gen, &g->pcie_width);
    if (!strcmp(key, "pciemax")) set_link(value, &g->pcie_max_gen, &g->pcie_max_width);
    if (!strcmp(key, "c2c")) g->c2c_mbps = number(value);
    if (!strcmp(key, "c2c") && strchr(value, '*')) g->c2c_count = number(strchr(value, '*') + 1);
}

static void set_net(struct kl_net_facts *n, const char *key, const char *value)
{
    if (!strcmp(key, "name")) set_text(n->name, sizeof n->name, value);
    if (!strcmp(key, "path")) set_text(n->pci_path, sizeof n->pci_path, value);
    if (!strcmp(key, "dev")) n->dev = number(value);
    if (!strcmp(key, "speed")) n->speed_mbps = number(value);
    if (!strcmp(key, "port")) n->port = number(value);
    if (!strcmp(key, "guid")) n->guid = kl_parse_hex(value);
    if (!strcmp(key, "latency")) n->latency_us = strtof(value, NULL);
    if (!strcmp(key, "maxconn")) n->max_comms = number(value);
    if (!strcmp(key, "gdr")) n->gdr = number(value) != 0;
    if (!strcmp(key, "coll")) n->coll = number(value) != 0;
}

static ncclResult_t one_more(void **array, int *n, size_t bytes)
{
    void *grown = *n < MAX_THINGS ? realloc(*array, ((size_t)*n + 1) * bytes) : NULL;

    if (!grown) return KL_NOMEM("recorded devices");
    *array = grown;
    memset((char *)grown + (size_t)(*n)++ * bytes, 0, bytes);
    return ncclSuccess;
}

/* Vendors ("  Shanghai  ") and names may hold blanks; they are written as '_'. */
static void underscores_to_blanks(char *text)
{
    for (; *text; text++)
        if (*text == '_') *text = ' ';
}

static ncclResult_t read_line(struct kl_recorded *r, char *text, const char *path, int line)
{
    char *rest, *word = strtok_r(text, " \t\n", &rest);
    const char *thing = word;

    if (!word || *word == '#') return ncclSuccess;
    if (!strcmp(thing, "gpu"))
        KL_TRY(one_more((void **)&r->gpu, &r->ngpus, sizeof *r->gpu));
    else if (!strcmp(thing, "net"))
        KL_TRY(one_more((void **)&r->net, &r->nnets, sizeof *r->net));
    else if (strcmp(thing, "cpu") != 0)
        return KL_FAIL(ncclInternalError, "%s:%d: \"%s\"; a line begins with cpu, gpu or net", path, line, thing);
    r->has_cpu |= !strcmp(thing, "cpu");
    while ((word = strtok_r(NULL, " \t\n", &rest))) {
        char *value = strchr(word, '=');

        if (!value) return KL_FAIL(ncclInternalError, "%s:%d: \"%s\"; expected key=value", path, line, word);
        *value++ = 0;
        if (!strcmp(thing, "cpu")) set_cpu(&r->cpu, word, value);
        if (!strcmp(thing, "gpu")) set_gpu(&r->gpu[r->ngpus - 1], word, value);
        if (!strcmp(thing, "net")) set_net(&r->net[r->nnets - 1], word, value);
    }
    underscores_to_blanks(r->cpu.vendor);
    if (r->ngpus) underscores_to_blanks(r->gpu[r->ngpus - 1].name);
    return ncclSuccess;
}

ncclResult_t kl_record_check(const char *dir)
{
    static const char *const parts[] = {"kolo-facts", "class", "devices", "bus"};
    char path[KL_SYSFS_PATH_TEXT];
    struct stat st;

    if (stat(dir, &st)) return KL_FAIL(ncclInvalidUsage, "%s: %s", dir, strerror(errno));
    if (!S_ISDIR(st.st_mode)) return KL_FAIL(ncclInvalidUsage, "%s is a file; --sysfs takes a folder", dir);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (snprintf(path, sizeof path, "%s/%s", dir, parts[i]) < (int)sizeof path && !access(path, R_OK))
            return ncclSuccess;
    return KL_FAIL(
        ncclInvalidUsage,
        "%s is no recorded machine: it has no kolo-facts, class or devices; `kolo topo --record DIR` makes one", dir);
}

ncclResult_t kl_record_load(const char *dir, struct kl_recorded *facts)
{
    struct kl_recorded r = {0};
    char path[KL_SYSFS_PATH_TEXT], text[LINE_TEXT];
    ncclResult_t rc = ncclSuccess;

    if (snprintf(path, sizeof path, "%s/kolo-facts", dir) >= (int)sizeof path)
        return KL_FAIL(ncclInvalidArgument, "%s: the name is too long", dir);
    FILE *from = fopen(path, "re");
    if (!from && errno != ENOENT) return KL_FAIL_ERRNO("opening %s", path);
    for (int line = 1; from && !rc && fgets(text, sizeof text, from); line++) rc = read_line(&r, text, path, line);
    if (from) fclose(from);
    if (rc)
        kl_record_free(&r);
    else
        *facts = r;
    return rc;
}

/* ---- writing ---- */

static void blanks_to_underscores(char *text)
{
    for (; *text; text++)
        if (strchr(" \t\n", *text)) *text = '_';
}

static void write_cpu(const struct kl_cpu_facts *c, FILE *to)
{
    char vendor[sizeof c->vendor];

    snprintf(vendor, sizeof vendor, "%s", c->vendor);
    blanks_to_underscores(vendor);
    fprintf(to, "cpu arch=%s", c->arch);
    if (*vendor) fprintf(to, " vendor=%s family=%d model=%d", vendor, c->family, c->model);
    fprintf(to, " hypervisor=%d\n", c->hypervisor);
}

static void write_gpu(const struct kl_gpu_facts *g, FILE *to)
{
    char name[sizeof g->name];

    fprintf(to, "gpu busid=%s dev=%d sm=%d gdr=%d", g->busid, g->dev, g->sm, g->gdr);
    for (int i = 0; i < g->nnvlinks; i++)
        fprintf(to, "%s%s*%d%s%s", i ? "," : " nvlink=", g->nvlink[i].target, g->nvlink[i].count,
                g->nvlink[i].far ? "/" : "", kl_far_end_name[g->nvlink[i].far]);
    if (g->no_p2p) fprintf(to, " nop2p=%" PRIx64, g->no_p2p);
    if (g->fabric) fprintf(to, " fabric=%s", kl_fabric_state_name[g->fabric]);
    if (*g->cluster) fprintf(to, ",%s,%" PRIu32, g->cluster, g->clique);
    if (g->c2c_count) fprintf(to, " c2c=%d*%d", g->c2c_mbps, g->c2c_count);
    snprintf(name, sizeof name, "%s", g->name);
    blanks_to_underscores(name);
    if (*name) fprintf(to, " name=%s", name);
    if (g->memory) fprintf(to, " memory=%" PRIu64, g->memory);
    if (g->pci_id) fprintf(to, " id=%08" PRIx32 " subsystem=%08" PRIx32, g->pci_id, g->pci_subsystem);
    if (g->pcie_gen) fprintf(to, " pcie=%dx%d", g->pcie_gen, g->pcie_width);
    if (g->pcie_max_gen) fprintf(to, " pciemax=%dx%d", g->pcie_max_gen, g->pcie_max_width);
    putc('\n', to);
}

static void write_net(const struct kl_net_facts *n, FILE *to)
{
    fprintf(to, "net name=%s dev=%d", n->name, n->dev);
    if (*n->pci_path) fprintf(to, " path=%s", n->pci_path);
    fprintf(to, " speed=%d port=%d guid=0x%" PRIx64 " latency=%g maxconn=%d gdr=%d coll=%d\n", n->speed_mbps, n->port,
            n->guid, (double)n->latency_us, n->max_comms, n->gdr, n->coll);
}

ncclResult_t kl_record_save(const char *dir, const struct kl_recorded *r)
{
    char path[KL_SYSFS_PATH_TEXT];

    if (snprintf(path, sizeof path, "%s/kolo-facts", dir) >= (int)sizeof path)
        return KL_FAIL(ncclInvalidArgument, "%s: the name is too long", dir);
    FILE *to = fopen(path, "we");
    if (!to) return KL_FAIL_ERRNO("creating %s", path);
    if (r->has_cpu) write_cpu(&r->cpu, to);
    for (int i = 0; i < r->ngpus; i++) write_gpu(&r->gpu[i], to);
    for (int i = 0; i < r->nnets; i++) write_net(&r->net[i], to);
    if (fclose(to)) return KL_FAIL_ERRNO("writing %s", path);
    return ncclSuccess;
}
