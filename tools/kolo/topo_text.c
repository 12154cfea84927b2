/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/topo_text.h"

#include "base/cpuset.h"
#include "plan/topo_name.h"
#include "tools/kolo/cluster_options.h"
#include "topo/facts.h"
#include "topo/paths.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_COLUMNS = 64 }; /* a table of more GPUs or NICs would be unreadable */

/* ---- tree ---- */

static const char *word(const char *const *words, int n, int i)
{
    return i >= 0 && i < n ? words[i] : "?";
}

static void print_cpu(const struct kl_topo *t, const struct kl_node *n, FILE *to)
{
    static const char *const archs[] = {"?", "x86", "POWER", "ARM"};
    static const char *const vendors[] = {"", " Intel", " AMD", " Zhaoxin"};
    static const char *const amd[] = {"", " (Zen 1 or 2)", " (Zen 3 or 4)", " (Zen 5)"};
    static const char *const intel[] = {"", " (Broadwell or older)", " (Skylake to Ice Lake)", " (Sapphire Rapids)",
                                        " (Emerald Rapids or newer)"};
    char cpus[128];
    struct kl_text list = kl_text_in(cpus, sizeof cpus);

    fprintf(to, "  %s%s", word(archs, 4, n->cpu.arch), n->cpu.vendor > 0 ? word(vendors, 4, n->cpu.vendor) : "");
    if (n->cpu.vendor == KL_VENDOR_INTEL) fputs(word(intel, 5, n->cpu.model), to);
    if (n->cpu.vendor == KL_VENDOR_AMD && n->cpu.model > 0) fputs(word(amd, 4, n->cpu.model), to);
    kl_cpuset_add_list(&list, &t->cpuset[n->cpu.cpus]);
    if (*cpus) fprintf(to, ", CPUs %s%s", cpus, list.cut ? "..." : "");
}

static void print_gpu(const struct kl_node *n, bool cpus, FILE *to)
{
    char busid[KL_BUSID_TEXT];

    fprintf(to, "  %s, ", kl_busid_text(kl_id_local(n->id), busid));
    if (cpus)
        fprintf(to, "CPU device %d", n->gpu.dev);
    else
        fprintf(to, "sm %d, device %d", n->gpu.sm, n->gpu.dev);
    if (!n->gpu.gdr) fputs(", no GPUDirect", to);
    if (n->gpu.no_p2p) fprintf(to, ", no peer access to devices of mask 0x%" PRIx64, n->gpu.no_p2p);
    if (n->gpu.fabric) fprintf(to, ", fabric %s", kl_fabric_state_name[n->gpu.fabric]);
    if (n->gpu.clique >= 0) fprintf(to, ", clique %d", n->gpu.clique);
}

static void print_facts(const struct kl_topo *t, const struct kl_node *n, bool cpus, FILE *to)
{
    if (n->type == KL_NODE_GPU) print_gpu(n, cpus, to);
    if (n->type == KL_NODE_CPU) print_cpu(t, n, to);
    if (n->type == KL_NODE_PCI && n->pci.device) fprintf(to, "  device %016" PRIx64, n->pci.device);
    if (n->type == KL_NODE_NET)
        fprintf(to, "  port %d of chip %" PRIx64 "%s%s", n->net.port, n->net.asic, n->net.gdr ? ", GPUDirect" : "",
                n->net.coll ? ", collectives" : "");
}

/* `cpus`: its devices are CPUs. */
static void print_tree(const struct kl_topo *t, bool cpus, int node, int from, int depth, FILE *to)
{
    const struct kl_node *n = &t->node[node];
    char name[KL_NODE_TEXT];

    fputs(kl_topo_name(t, node, name), to);
    print_facts(t, n, cpus, to);
    putc('\n', to);
    for (int k = n->first_link; k < n->first_link + n->nlinks; k++) {
        const struct kl_link *l = &t->link[k];
        bool below = l->type == KL_PATH_PCI || (l->type == KL_PATH_NET && t->node[l->to].type == KL_NODE_NET);

        if (l->to == from && (l->type == KL_PATH_PCI || l->type == KL_PATH_NET)) continue;
        fprintf(to, "%*s%s %g GB/s %s ", 4 * (depth + 1), "", kl_link_type_name[l->type], (double)l->bw,
                below ? "-" : "->");
        if (below)
            print_tree(t, cpus, l->to, node, depth + 1, to);
        else
            fprintf(to, "%s\n", kl_topo_name(t, l->to, name));
    }
}

/* ---- tables ---- */

static void print_cell(const struct kl_topo *t, int from, int far, bool last, FILE *to)
{
    const struct kl_path *p = kl_path(t, from, far);
    char cell[32];

    if (from == far)
        snprintf(cell, sizeof cell, "-");
    else if (p->type == KL_PATH_DIS || !kl_path_has_table(t, from, t->node[far].type))
        snprintf(cell, sizeof cell, "none");
    else
        snprintf(cell, sizeof cell, "%s %g", kl_path_type_name[p->type], (double)p->bw);
    fprintf(to, last ? " %s\n" : " %-10s", cell);
}

static void print_table(const struct kl_topo *t, enum kl_node_type type, const char *title, FILE *to)
{
    char name[KL_NODE_TEXT];
    int columns = t->count[type];

    if (!columns || !t->count[KL_NODE_GPU]) return;
    fprintf(to, "\n%s: path type and GB/s\n", title);
    if (columns > MAX_COLUMNS || t->count[KL_NODE_GPU] > MAX_COLUMNS) {
        fprintf(to, "  %d x %d paths: see --format json\n", t->count[KL_NODE_GPU], columns);
        return;
    }
    fprintf(to, "%-10s", "");
    for (int i = 0; i < columns; i++)
        fprintf(to, i == columns - 1 ? " %s\n" : " %-10s", kl_topo_name(t, kl_topo_at(t, type, i), name));
    for (int g = 0; g < t->count[KL_NODE_GPU]; g++) {
        fprintf(to, "%-10s", kl_topo_name(t, kl_topo_at(t, KL_NODE_GPU, g), name));
        for (int i = 0; i < columns; i++)
            print_cell(t, kl_topo_at(t, KL_NODE_GPU, g), kl_topo_at(t, type, i), i == columns - 1, to);
    }
}

static const char *gdr_word(const struct kl_topo *t, int rank, int net)
{
    static const char *const modes[] = {"no", "yes", "over PCI"};
    struct kl_gdr write, read;

    if (kl_topo_gdr(t, rank, net, false, &write) || kl_topo_gdr(t, rank, net, true, &read)) return "?";
    if (write.mode && !read.mode) return "receive";
    return modes[write.mode];
}

static void print_choice(const struct kl_topo *t, int g, FILE *to)
{
    int node = kl_topo_at(t, KL_NODE_GPU, g), rank = t->node[node].gpu.rank, net = 0, proxy = rank;
    char gpu[KL_NODE_TEXT], name[KL_NODE_TEXT], path[32];

    kl_topo_name(t, node, gpu);
    if (kl_topo_local_net(t, g, 0, &net) || kl_topo_pxn_rank(t, rank, net, &proxy)) {
        fprintf(to, "%-10s none\n", gpu);
        return;
    }
    const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, g, KL_NODE_NET, net);
    snprintf(path, sizeof path, "%s %g", kl_path_type_name[p->type], (double)p->bw);
    fprintf(to, "%-10s %-10s %-10s %-10s GPU/%d\n", gpu, kl_topo_name(t, kl_topo_at(t, KL_NODE_NET, net), name), path,
            gdr_word(t, rank, net), proxy);
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

void kl_topo_text(const struct kl_topo *t, const struct kl_cluster *cluster, FILE *to)
{
    int gpus = t->count[KL_NODE_GPU], nics = t->count[KL_NODE_NET], cpus = t->count[KL_NODE_CPU];
    char words[128];
    struct kl_text devices = kl_text_in(words, sizeof words);

    kl_cluster_devices(cluster, gpus, &devices);
    fprintf(to, "%s: %s, %d NIC%s, %d CPU%s%s; widest path %g GB/s, widest %s %g GB/s\n", cluster->name, words, nics,
            plural(nics), cpus, plural(cpus), t->count[KL_NODE_NVS] ? ", NVSwitch" : "", (double)t->max_bw,
            cluster->cpus ? "device" : "GPU", (double)t->total_bw);
    for (int i = 0; i < t->count[KL_NODE_CPU]; i++) {
        putc('\n', to);
        print_tree(t, cluster->cpus, kl_topo_at(t, KL_NODE_CPU, i), -1, 0, to);
    }
    print_table(t, KL_NODE_GPU, "GPU to GPU", to);
    print_table(t, KL_NODE_NET, "GPU to NIC", to);
    if (!t->count[KL_NODE_NET]) return;
    fprintf(to, "\n%-10s %-10s %-10s %-10s %s\n", "GPU", "NIC", "path", "GPUDirect", "proxy");
    for (int g = 0; g < t->count[KL_NODE_GPU]; g++) print_choice(t, g, to);
}

/* ---- picture ---- */

static const char *const shapes[KL_NODE_TYPES] = {"box", "ellipse",   "hexagon",   "box3d", "component",
                                                  "cds", "component", "component", "box",   "ellipse"};

/* A label must not end its own quotes. */
static void print_quoted(const char *text, FILE *to)
{
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') putc('\\', to);
        putc(*text, to);
    }
    putc('"', to);
}

static void print_edge(const struct kl_topo *t, const struct kl_link *l, FILE *to)
{
    char from[KL_NODE_TEXT], far[KL_NODE_TEXT];

    fprintf(to, "  \"%s\" -- \"%s\" [label=\"%s %g\"%s]\n", kl_topo_name(t, l->from, from), kl_topo_name(t, l->to, far),
            kl_link_type_name[l->type], (double)l->bw,
            l->type == KL_PATH_NVL || l->type == KL_PATH_C2C ? ", color=green" : "");
}

void kl_topo_dot(const struct kl_topo *t, const char *title, FILE *to)
{
    char name[KL_NODE_TEXT];

    fprintf(to, "graph topology {\n  label=");
    print_quoted(title, to);
    fprintf(to, "\n  node [fontsize=10]\n  edge [fontsize=8]\n");
    for (int i = 0; i < t->nnodes; i++)
        fprintf(to, "  \"%s\" [shape=%s]\n", kl_topo_name(t, i, name), shapes[t->node[i].type]);
    for (int k = 0; k < t->nlinks; k++)
        if (t->link[k].reverse < 0 || k < t->link[k].reverse) print_edge(t, &t->link[k], to);
    fprintf(to, "}\n");
}
