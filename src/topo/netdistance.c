/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/netdistance.h"

#include "topo/types.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_CHAIN = 80 };

/* Elements from the root down to `elem`. */
static int chain_to(const struct kl_xml *xml, int elem, int *chain)
{
    int n = 0;

    for (int e = elem; e != KL_XML_NONE && n < MAX_CHAIN; e = kl_xml_parent(xml, e)) chain[n++] = e;
    for (int i = 0; i < n / 2; i++) {
        int other = chain[n - 1 - i];
        chain[n - 1 - i] = chain[i];
        chain[i] = other;
    }
    return n;
}

/* Functions of one device: bus ids that differ in the last character only. */
static bool same_device(const struct kl_xml *xml, int a, int b)
{
    const char *x = kl_xml_attr(xml, a, "busid"), *y = kl_xml_attr(xml, b, "busid");
    size_t n = x ? strlen(x) : 0;

    return x && y && n && n == strlen(y) && !strncmp(x, y, n - 1);
}

static int distance_over(const struct kl_xml *xml, int common, const int *a, int na, const int *b, int nb, int depth)
{
    const char *tag = kl_xml_tag(xml, common);

    if (!strcmp(tag, "nic") || !strcmp(tag, "net")) return KL_PATH_PORT;
    if (depth < na && depth < nb && same_device(xml, a[depth], b[depth])) return KL_PATH_PORT;
    if (!strcmp(tag, "pci")) return depth == na - 3 && depth == nb - 3 ? KL_PATH_PIX : KL_PATH_PXB;
    return !strcmp(tag, "cpu") ? KL_PATH_PHB : KL_PATH_SYS;
}

int kl_net_distance(const struct kl_xml *xml, int net_a, int net_b, int *common)
{
    int a[MAX_CHAIN], b[MAX_CHAIN], na = chain_to(xml, net_a, a), nb = chain_to(xml, net_b, b), depth = 0;

    while (depth < na && depth < nb && a[depth] == b[depth]) depth++;
    *common = depth ? a[depth - 1] : KL_XML_NONE;
    return depth ? distance_over(xml, *common, a, na, b, nb, depth) : KL_PATH_DIS;
}
