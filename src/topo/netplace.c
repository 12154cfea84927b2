/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/netplace.h"

#include "base/error.h"
#include "topo/netdistance.h"
#include "topo/release.h"

#include <string.h>

enum { MAX_TRIES = 100 };

static const char bridge_class[] = "0x060400";

/* A virtual NET that is being placed. */
struct placing {
    const struct kl_detect *d;
    const struct kl_net_facts *net;
    const int *elem; /* per NET */
    int common;      /* the ancestor of all members; for functions of one device, the device's parent */
    int distance;    /* between the two members that are farthest apart */
    int width;       /* lanes of the merged NIC's link; 0 if links are not changed */
};

static bool has(const struct placing *p, enum kl_change change)
{
    return kl_nccl_has(p->d->nccl, change);
}

static bool is_tag(const struct placing *p, int elem, const char *tag)
{
    return !strcmp(kl_xml_tag(p->d->xml, elem), tag);
}

static int member(const struct placing *p, int i)
{
    return p->elem[p->net->member[i]];
}

static void span(struct placing *p)
{
    int both;

    p->common = member(p, 0);
    p->distance = KL_PATH_LOC;
    for (int i = 1; i < p->net->nmembers; i++) {
        for (int k = 0; k < i; k++) {
            int distance = kl_net_distance(p->d->xml, member(p, k), member(p, i), &both);
            if (distance > p->distance) p->distance = distance;
        }
        kl_net_distance(p->d->xml, p->common, member(p, i), &both);
        p->common = both;
    }
}

/* ---- widths ---- */

static bool above_a_member(const struct placing *p, int elem)
{
    for (int i = 0; i < p->net->nmembers; i++)
        for (int e = member(p, i); e != KL_XML_NONE; e = kl_xml_parent(p->d->xml, e))
            if (e == elem) return true;
    return false;
}

/* Lanes of the members' links below an element, at most as many as each link above them has; 0: not known. */
static int width_below(const struct placing *p, int elem)
{
    const struct kl_xml *xml = p->d->xml;
    int sum = 0;

    for (int c = kl_xml_child(xml, elem, "pci"); c != KL_XML_NONE; c = kl_xml_next_same(xml, c)) {
        if (!above_a_member(p, c)) continue;
        int own = kl_xml_int(xml, c, "link_width", 0), below = width_below(p, c);

        sum += below > 0 && (own <= 0 || below < own) ? below : own;
    }
    return sum;
}

static ncclResult_t widen_members(const struct placing *p)
{
    for (int i = 0; i < p->net->nmembers; i++)
        for (int e = member(p, i); e != p->common; e = kl_xml_parent(p->d->xml, e))
            if (is_tag(p, e, "pci")) KL_TRY(kl_xml_set_int(p->d->xml, e, "link_width", p->width));
    return is_tag(p, p->common, "pci") ? kl_xml_set_int(p->d->xml, p->common, "link_width", p->width) : ncclSuccess;
}

static ncclResult_t widen(struct placing *p)
{
    bool apart = p->distance >= KL_PATH_PIX && p->distance <= KL_PATH_PHB;

    p->width = apart && has(p, KL_CHANGE_MERGED_WIDE) ? width_below(p, p->common) : 0;
    return p->width > 0 && !has(p, KL_CHANGE_MERGED_WIDE_ALONE) ? widen_members(p) : ncclSuccess;
}

/* ---- the card ---- */

/* A bus id next to the card's that no device of the document has. */
static ncclResult_t free_busid(const struct kl_xml *xml, int card, char busid[KL_BUSID_TEXT])
{
    const char *old;

    KL_TRY(kl_xml_need(xml, card, "busid", &old));
    for (uint64_t i = 1; i <= MAX_TRIES; i++) {
        kl_busid_text(kl_busid_parse(old) + i, busid);
        if (kl_xml_find(xml, "pci", "busid", busid) == KL_XML_NONE) return ncclSuccess;
    }
    return KL_FAIL(ncclInternalError, "no free bus id after %s for a virtual NIC", old);
}

/* The card of the first member that has one; KL_XML_NONE if none has. */
static int first_card(const struct placing *p)
{
    for (int i = 0; i < p->net->nmembers; i++) {
        int card = kl_xml_parent(p->d->xml, kl_xml_parent(p->d->xml, member(p, i)));

        if (is_tag(p, card, "pci")) return card;
    }
    return KL_XML_NONE;
}

/* A PCI device for a virtual NET: like the first member's. If no member has one, the NET goes directly below. */
static ncclResult_t make_card(const struct placing *p, int above, int *card)
{
    struct kl_xml *xml = p->d->xml;
    int like = first_card(p), elem;
    char busid[KL_BUSID_TEXT];
    const char *key, *value;

    if (like == KL_XML_NONE) return *card = above, ncclSuccess;
    KL_TRY(free_busid(xml, like, busid));
    KL_TRY(kl_xml_new(xml, "pci", &elem));
    KL_TRY(kl_xml_set(xml, elem, "busid", busid));
    for (int i = 0; i < kl_xml_nattrs(xml, like); i++) {
        kl_xml_attr_at(xml, like, i, &key, &value);
        if (strcmp(key, "busid") != 0) KL_TRY(kl_xml_set(xml, elem, key, value));
    }
    if (p->width > 0) KL_TRY(kl_xml_set_int(xml, elem, "link_width", p->width));
    kl_xml_place(xml, elem, above, busid);
    *card = elem;
    return ncclSuccess;
}

/* ---- the place ---- */

static int up_to(const struct placing *p, int elem, const char *tag)
{
    while (elem != KL_XML_ROOT && !is_tag(p, elem, tag)) elem = kl_xml_parent(p->d->xml, elem);
    return elem;
}

static bool is_bridge(const struct placing *p, int pci)
{
    const char *class = kl_xml_attr(p->d->xml, pci, "class");

    return class && !strcmp(class, bridge_class);
}

static ncclResult_t refuse_sockets(const struct placing *p)
{
    return KL_FAIL(
        ncclInvalidArgument,
        "NICs %s cannot be one: they are in different NUMA domains; set NCCL_NET_MERGE_LEVEL below SYS, and do "
        "not name them together in NCCL_NET_FORCE_MERGE",
        p->net->name);
}

static ncclResult_t place_on_sockets(const struct placing *p, int *parent)
{
    if (has(p, KL_CHANGE_MERGED_ONE_SOCKET)) return refuse_sockets(p);
    *parent = up_to(p, member(p, 0), "cpu");
    return ncclSuccess;
}

/* Below a cpu, or on the members' common switch below it. */
static ncclResult_t find_parent(const struct placing *p, int *parent)
{
    if (p->common == KL_XML_ROOT) return place_on_sockets(p, parent);
    if (is_tag(p, p->common, "cpu")) {
        *parent = p->common;
        return has(p, KL_CHANGE_MERGED_CARD) ? make_card(p, p->common, parent) : ncclSuccess;
    }
    if (!has(p, KL_CHANGE_MERGED_BRIDGE)) {
        *parent = p->common;
        return is_tag(p, p->common, "pci") ? make_card(p, p->common, parent) : ncclSuccess;
    }
    *parent = up_to(p, p->common, "pci");
    if (*parent == KL_XML_ROOT) return *parent = p->common, ncclSuccess; /* a nic directly below a cpu */
    return is_bridge(p, *parent) ? make_card(p, *parent, parent) : ncclSuccess;
}

ncclResult_t kl_net_place_virtual(const struct kl_detect *d, const struct kl_net_facts *net, const int *elem)
{
    struct placing p = {.d = d, .net = net, .elem = elem};
    int parent = KL_XML_NONE;

    if (net->nmembers > 1 && kl_xml_find(d->xml, "net", "name", net->name) == KL_XML_NONE) {
        span(&p);
        KL_TRY(widen(&p));
        KL_TRY(find_parent(&p, &parent));
    }
    return kl_detect_net(d, net, true, parent);
}
