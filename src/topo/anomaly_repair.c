/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs: edits of the document that remove its faults. */
#include "topo/anomaly.h"

#include "base/error.h"
#include "topo/parts.h"
#include "topo/placement.h"

#include <stdio.h>
#include <string.h>

struct edit {
    struct kl_xml *xml;
    struct kl_parts parts;
    bool any;
};

/* ---- NVLinks ---- */

/* GPU `a` sees `n` more NVLinks to GPU `b`. */
static ncclResult_t add_links(struct edit *e, int a, int b, int n)
{
    const struct kl_gpu_part *g = e->parts.gpu;
    int elem = kl_xml_child(e->xml, g[a].elem, "nvlink");

    while (elem != KL_XML_NONE && (elem >= e->parts.nelems || e->parts.nvlink[elem].target != b))
        elem = kl_xml_next_same(e->xml, elem);
    e->any = true;
    if (elem != KL_XML_NONE) return kl_xml_set_int(e->xml, elem, "count", kl_parts_count(e->xml, elem) + n);
    KL_TRY(kl_xml_add(e->xml, g[a].elem, "nvlink", &elem));
    KL_TRY(kl_xml_set(e->xml, elem, "target", kl_xml_attr(e->xml, g[b].pci, "busid")));
    KL_TRY(kl_xml_set_int(e->xml, elem, "count", n));
    return kl_xml_set(e->xml, elem, "tclass", "0x030200");
}

/* The end that sees fewer gets the other's number. */
static ncclResult_t repair_end(struct edit *e, int a, int nvlink)
{
    if (nvlink >= e->parts.nelems || !e->parts.nvlink[nvlink].first) return ncclSuccess;
    const struct kl_nvlink_part *l = &e->parts.nvlink[nvlink];
    int there = kl_parts_links(e->xml, &e->parts, l->target, a);

    return l->links > there ? add_links(e, l->target, a, l->links - there) : ncclSuccess;
}

static ncclResult_t repair_ends(struct edit *e)
{
    for (int a = 0; a < e->parts.ngpus; a++)
        for (int x = kl_xml_child(e->xml, e->parts.gpu[a].elem, "nvlink"); x != KL_XML_NONE;
             x = kl_xml_next_same(e->xml, x))
            KL_TRY(repair_end(e, a, x));
    return ncclSuccess;
}

/* Give a GPU the NVLinks that a sound GPU of its kind has to the switch. */
static ncclResult_t copy_links(struct edit *e, int to, int from)
{
    const struct kl_gpu_part *g = e->parts.gpu;
    int next;

    for (int x = kl_xml_child(e->xml, g[to].elem, "nvlink"); x != KL_XML_NONE; x = next) {
        next = kl_xml_next_same(e->xml, x);
        kl_xml_remove(e->xml, x);
    }
    for (int x = kl_xml_child(e->xml, g[from].elem, "nvlink"); x != KL_XML_NONE; x = kl_xml_next_same(e->xml, x)) {
        int copy;

        KL_TRY(kl_xml_copy(e->xml, g[to].elem, e->xml, x, &copy));
    }
    e->any = true;
    return ncclSuccess;
}

/* Has the GPU all its links to a switch, and as many as it should? */
static bool is_model_for(const struct edit *e, int from, int to)
{
    const struct kl_gpu_part *g = e->parts.gpu;

    if (g[from].kind != g[to].kind || g[from].links != g[to].wanted) return false;
    for (int x = kl_xml_child(e->xml, g[from].elem, "nvlink"); x != KL_XML_NONE; x = kl_xml_next_same(e->xml, x))
        if (e->parts.nvlink[x].target >= 0) return false;
    return true;
}

/* Without a switch: if exactly two GPUs lack links, and equally many, the links between them are missing. */
static ncclResult_t join_two(struct edit *e)
{
    const struct kl_gpu_part *g = e->parts.gpu;
    int pair[2], n = 0;

    for (int i = 0; i < e->parts.ngpus; i++) {
        if (!g[i].peers) continue;
        if (n == 2) return ncclSuccess;
        pair[n++] = i;
    }
    if (n < 2 || strcmp(g[pair[0]].host, g[pair[1]].host) != 0) return ncclSuccess;
    int lacking = g[pair[0]].wanted - g[pair[0]].links;

    if (lacking != g[pair[1]].wanted - g[pair[1]].links) return ncclSuccess;
    KL_TRY(add_links(e, pair[0], pair[1], lacking));
    return add_links(e, pair[1], pair[0], lacking);
}

static ncclResult_t repair_counts(struct edit *e)
{
    for (int i = 0; i < e->parts.ngpus; i++)
        for (int k = 0; k < e->parts.ngpus && e->parts.gpu[i].peers; k++) {
            if (!is_model_for(e, k, i)) continue;
            KL_TRY(copy_links(e, i, k));
            break;
        }
    return e->any ? ncclSuccess : join_two(e);
}

/* ---- NVLinks that the product has ---- */

static void drop_links(struct edit *e, int gpu)
{
    int next;

    for (int x = kl_xml_child(e->xml, e->parts.gpu[gpu].elem, "nvlink"); x != KL_XML_NONE; x = next) {
        next = kl_xml_next_same(e->xml, x);
        kl_xml_remove(e->xml, x);
    }
}

static ncclResult_t wire_to_switch(struct edit *e, const struct kl_gpu_product *board)
{
    for (int i = 0; i < e->parts.ngpus; i++) {
        if (kl_placement_product(e->xml, e->parts.gpu[i].pci) != board) continue;
        drop_links(e, i);
        KL_TRY(kl_known_link(e->xml, e->parts.gpu[i].elem, NULL, board->links));
        e->any = true;
    }
    return ncclSuccess;
}

/* Eight of a kind without a switch are a cube mesh. */
static ncclResult_t wire_cube(struct edit *e, const struct kl_gpu_product *board)
{
    int pci[8];

    if (e->parts.ngpus != 8 || (board->links != 4 && board->links != 6)) return ncclSuccess;
    for (int i = 0; i < 8; i++) pci[i] = e->parts.gpu[i].pci;
    return kl_known_wire(e->xml, pci, 8, board->links == 4 ? KL_WIRING_CUBE : KL_WIRING_CUBE_V100, board->links,
                         &e->any);
}

static ncclResult_t repair_none(struct edit *e)
{
    int n;
    const struct kl_gpu_product *board = kl_parts_board(e->xml, &e->parts, false, &n);

    if (!board) return ncclSuccess;
    return board->switched ? wire_to_switch(e, board) : wire_cube(e, board);
}

static ncclResult_t repair_many(struct edit *e)
{
    int n;
    const struct kl_gpu_product *board = kl_parts_board(e->xml, &e->parts, true, &n);

    return board && board->switched ? wire_to_switch(e, board) : ncclSuccess;
}

/* ---- PCI and NICs ---- */

static ncclResult_t repair_slots(struct edit *e)
{
    for (int s = 0; s < e->parts.nslots; s++) {
        const struct kl_slot_part *p = &e->parts.slot[s];

        for (int k = 0; k < e->parts.nslots && p->peers; k++) {
            const struct kl_slot_part *q = &e->parts.slot[k];

            if (q->kind != p->kind || q->bw != p->wanted) continue;
            KL_TRY(kl_xml_set(e->xml, p->pci, "link_width", kl_xml_attr(e->xml, q->pci, "link_width")));
            KL_TRY(kl_xml_set(e->xml, p->pci, "link_speed", kl_xml_attr(e->xml, q->pci, "link_speed")));
            e->any = true;
            break;
        }
    }
    return ncclSuccess;
}

/* One guid for each card: NETs of one pci element still share theirs. */
static ncclResult_t repair_ports(struct edit *e)
{
    for (int n = 0; n < e->parts.nnets; n++) {
        const struct kl_net_part *p = &e->parts.net[n];
        char guid[24];

        if (p->shares < 0) continue;
        snprintf(guid, sizeof guid, "0x%x", 0x10000000u + (unsigned)p->pci);
        KL_TRY(kl_xml_set(e->xml, p->elem, "guid", guid));
        e->any = true;
    }
    return ncclSuccess;
}

static ncclResult_t repair_speeds(struct edit *e)
{
    for (int n = 0; n < e->parts.nnets; n++) {
        if (!e->parts.net[n].peers) continue;
        KL_TRY(kl_xml_set_int(e->xml, e->parts.net[n].elem, "speed", e->parts.net[n].wanted));
        e->any = true;
    }
    return ncclSuccess;
}

/* All CPUs of a host are renamed, those without GPUs too: its NICs may hang there. */
static ncclResult_t number_host(struct edit *e, const char *host, unsigned number)
{
    for (int x = KL_XML_ROOT; x != KL_XML_NONE; x = kl_xml_walk(e->xml, KL_XML_ROOT, x)) {
        const char *hash = kl_xml_attr(e->xml, x, "host_hash");

        if (strcmp(kl_xml_tag(e->xml, x), "cpu") != 0 || !hash || strcmp(hash, host) != 0) continue;
        KL_TRY(kl_xml_set_hex(e->xml, x, "host_hash", number));
        e->any = true;
    }
    return ncclSuccess;
}

/* Is this the first GPU of a host that counts as another one, by its hash? */
static bool is_mistaken(const struct edit *e, int gpu)
{
    const struct kl_gpu_part *g = e->parts.gpu;
    bool lost = false;

    for (int i = 0; i < e->parts.ngpus; i++) {
        if (i < gpu && !strcmp(g[i].host, g[gpu].host)) return false;
        lost |= kl_parts_hash_lost(g[i].host, g[gpu].host);
    }
    return lost;
}

/* A number for each hash that is mistaken for another. */
static ncclResult_t repair_hosts(struct edit *e)
{
    for (int g = 0; g < e->parts.ngpus; g++)
        if (is_mistaken(e, g)) KL_TRY(number_host(e, e->parts.gpu[g].host, 0x10000000u + (unsigned)g));
    return ncclSuccess;
}

ncclResult_t kl_anomaly_repair(struct kl_xml *xml, enum kl_anomaly_code code, int nccl, bool *mended)
{
    static ncclResult_t (*const repair[KL_ANOMALIES])(struct edit *) = {
        [KL_ANOMALY_UNEQUAL_ENDS] = repair_ends, [KL_ANOMALY_FEW_NVLINKS] = repair_counts,
        [KL_ANOMALY_NARROW_PCI] = repair_slots,  [KL_ANOMALY_SHARED_PORT] = repair_ports,
        [KL_ANOMALY_SLOW_NET] = repair_speeds,   [KL_ANOMALY_NO_NVLINK] = repair_none,
        [KL_ANOMALY_MANY_NVLINKS] = repair_many, [KL_ANOMALY_HOST_HASH] = repair_hosts,
    };
    struct edit e = {.xml = xml};
    ncclResult_t rc;

    KL_TRY_OR(rc, out, kl_parts_gather(xml, nccl, &e.parts));
    rc = repair[code](&e);
    *mended = e.any;
out:
    kl_parts_fini(&e.parts);
    return rc;
}
