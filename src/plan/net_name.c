/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/net_name.h"

#include <string.h>

static bool is_net(const struct kl_xml *xml, int elem)
{
    return !strcmp(kl_xml_tag(xml, elem), "net") && kl_xml_attr(xml, elem, "dev");
}

int kl_net_elem(const struct kl_xml *xml, int dev)
{
    if (kl_xml_empty(xml)) return KL_XML_NONE;
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e))
        if (is_net(xml, e) && kl_xml_int(xml, e, "dev", -1) == dev) return e;
    return KL_XML_NONE;
}

const char *kl_net_name(const struct kl_xml *xml, int dev)
{
    int elem = kl_net_elem(xml, dev);
    const char *name = elem == KL_XML_NONE ? NULL : kl_xml_attr(xml, elem, "name");

    return name ? name : "";
}

int kl_net_named(const struct kl_xml *xml, const char *name)
{
    if (kl_xml_empty(xml) || !*name) return -1;
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e)) {
        const char *own = is_net(xml, e) ? kl_xml_attr(xml, e, "name") : NULL;

        if (own && !strcmp(own, name)) return kl_xml_int(xml, e, "dev", -1);
    }
    return -1;
}
