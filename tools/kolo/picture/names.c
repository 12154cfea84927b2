/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/words.h"

#include "base/text.h"
#include "plan/net_name.h"

/* ---- names ---- */

static int rank_of(const struct kl_scene *s, const struct kl_box *b)
{
    int machine = s->systems > 1 ? b->copy : b->host; /* index of the machine: its ranks are consecutive */

    return s->topo->node[b->node].gpu.rank + machine * s->view->plan->ranks_per_host;
}

static const struct kl_node *port_at(const struct kl_scene *s, int nic, int port)
{
    const struct kl_node *n = &s->topo->node[nic];

    for (int k = n->first_link; k < n->first_link + n->nlinks; k++) {
        const struct kl_node *net = &s->topo->node[s->topo->link[k].to];

        if (net->type == KL_NODE_NET && !port--) return net;
    }
    return NULL;
}

/* "NET/0", "NET/0–1", and the name that the file has for the first. */
static void name_nic(const struct kl_scene *s, int nic, struct kl_text *name, struct kl_text *below)
{
    const struct kl_node *net = port_at(s, nic, 0), *last = net, *next;

    if (!net) {
        kl_text_add(name, "NIC");
        return;
    }
    for (int i = 1; (next = port_at(s, nic, i)); i++) last = next;
    kl_text_add(name, "NET/%d", net->net.dev);
    if (last != net) kl_text_add(name, "–%d", last->net.dev);
    kl_text_add(below, "%.200s", kl_net_name(s->document, net->net.dev));
}

enum { NUMA_UNKNOWN = 0xffff }; /* -1 in a file */

static void name_cpu(const struct kl_node *n, struct kl_text *name)
{
    static const char *const vendors[] = {"", " Intel", " AMD", " Zhaoxin"};
    static const char *const archs[] = {"", "", " POWER", " ARM"};
    int numa = (int)(kl_id_local(n->id) & NUMA_UNKNOWN);

    kl_text_add(name, numa == NUMA_UNKNOWN ? "CPU" : "CPU %d", numa);
    if (n->cpu.arch >= KL_ARCH_X86 && n->cpu.arch <= KL_ARCH_ARM) kl_text_add(name, "%s", archs[n->cpu.arch]);
    if (n->cpu.arch == KL_ARCH_X86 && n->cpu.vendor >= KL_VENDOR_INTEL && n->cpu.vendor <= KL_VENDOR_ZHAOXIN)
        kl_text_add(name, "%s", vendors[n->cpu.vendor]);
}

static void name_host(const struct kl_scene *s, int host, struct kl_text *name)
{
    int gpus = s->topo->count[KL_NODE_GPU] / s->systems;

    kl_text_add(name, "host %d", host);
    if (gpus > 1) kl_text_add(name, ": ranks %d to %d", host * gpus, host * gpus + gpus - 1);
}

static void name_more(const struct kl_box *b, struct kl_text *name, struct kl_text *below)
{
    kl_text_add(name, "%d more", b->count);
    kl_text_add(below, "%s%s", b->host < 0 ? "host" : "GPU", kl_plural(b->count));
}

void kl_words_box(const struct kl_scene *s, const struct kl_box *b, char name[KL_WORDS], char below[KL_WORDS])
{
    struct kl_text n = kl_text_over(name, KL_WORDS), under = kl_text_over(below, KL_WORDS);

    switch (b->kind) {
    case KL_BOX_HOST:
        name_host(s, b->host, &n);
        break;
    case KL_BOX_NVS:
        kl_text_add(&n, "NVSwitch");
        break;
    case KL_BOX_CPU:
        name_cpu(&s->topo->node[b->node], &n);
        break;
    case KL_BOX_PCI:
        kl_text_add(&n, "PCIe switch");
        break;
    case KL_BOX_GPU:
        kl_text_add(&n, "GPU/%d", rank_of(s, b));
        break;
    case KL_BOX_NIC:
        name_nic(s, b->node, &n, &under);
        break;
    case KL_BOX_NETWORK:
        kl_text_add(&n, "network");
        break;
    default:
        name_more(b, &n, &under);
    }
}

/* ---- facts ---- */

static void add_gpu_facts(const struct kl_scene *s, const struct kl_box *b, struct kl_text *out)
{
    const struct kl_node *n = &s->topo->node[b->node];
    char busid[KL_BUSID_TEXT];

    kl_text_add(out, "\nrank %d, device %d of host %d", rank_of(s, b), n->gpu.dev, b->host);
    kl_text_add(out, "\nbus id %s, compute capability sm %d", kl_busid_text(kl_id_local(n->id), busid), n->gpu.sm);
    kl_text_add(out, n->gpu.gdr ? "\nGPUDirect RDMA: NICs may reach its memory" : "\nno GPUDirect RDMA");
}

static void add_nic_facts(const struct kl_scene *s, const struct kl_box *b, struct kl_text *out)
{
    const struct kl_node *net;

    for (int i = 0; (net = port_at(s, b->node, i)); i++) {
        const char *called = kl_net_name(s->document, net->net.dev);

        kl_text_add(out, "\nNET/%d%s%.80s: port %d, %g GB/s%s%s", net->net.dev, *called ? " " : "", called,
                    net->net.port, (double)net->net.bw, net->net.gdr ? ", GPUDirect RDMA" : "",
                    net->net.coll ? ", reduces in the network" : "");
    }
    if (!s->network) kl_text_add(out, "\nnot used: no rank is beyond a network");
}

char *kl_words_box_facts(const struct kl_scene *s, const struct kl_box *b, char text[KL_WORDS])
{
    char name[KL_WORDS], below[KL_WORDS], busid[KL_BUSID_TEXT];
    struct kl_text out = kl_text_over(text, KL_WORDS);

    kl_words_box(s, b, name, below);
    kl_text_add(&out, b->kind == KL_BOX_MORE ? "%.80s %.80s" : "%.80s", name, below);
    if (b->kind == KL_BOX_GPU) add_gpu_facts(s, b, &out);
    if (b->kind == KL_BOX_NIC) add_nic_facts(s, b, &out);
    if (b->kind == KL_BOX_PCI)
        kl_text_add(&out, "\nbus id %s, host %d", kl_busid_text(kl_id_local(s->topo->node[b->node].id), busid),
                    b->host);
    if (b->kind == KL_BOX_CPU) kl_text_add(&out, "\na NUMA node of host %d", b->host);
    if (b->kind == KL_BOX_NVS) kl_text_add(&out, "\njoins GPUs by NVLink%s", b->host < 0 ? " over all hosts" : "");
    if (b->kind == KL_BOX_NETWORK) kl_text_add(&out, "\njoins %d hosts; how it is built is not known", s->hosts);
    if (b->kind == KL_BOX_MORE) kl_text_add(&out, "\nnot drawn: like those that are");
    return text;
}
