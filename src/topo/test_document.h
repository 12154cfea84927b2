/* SPDX-License-Identifier: Apache-2.0 */
/** test_document.h - small topology documents for tests, and the topologies that are built of them. */
#ifndef KL_TOPO_TEST_DOCUMENT_H
#define KL_TOPO_TEST_DOCUMENT_H

#include "base/error.h"
#include "tests/kolo_test.h"
#include "topo/topo.h"
#include "topo/xml.h"

#include <string.h>

static inline struct kl_xml *parse(const char *text)
{
    struct kl_xml *xml;

    assert_int_equal(kl_xml_parse("t.xml", text, strlen(text), kl_xml_topo_schema, &xml), ncclSuccess);
    return xml;
}

static inline ncclResult_t build(const char *text, struct kl_topo **t)
{
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *xml = parse(text);
    ncclResult_t rc = kl_topo_build(xml, &options, t);

    kl_xml_free(xml);
    return rc;
}

static inline struct kl_topo *built(const char *text)
{
    struct kl_topo *t;

    if (build(text, &t)) fail_msg("%s: %s", text, kl_error_text());
    return t;
}

#define CPU              "<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"
#define SYS(body)        "<system version=\"1\">" CPU body "</cpu></system>"
#define PCI(attrs, body) "<pci busid=\"0000:01:00.0\" " attrs ">" body "</pci>"
#define LINK             "link_speed=\"8.0 GT/s PCIe\" link_width=\"16\""
#define GPU              "<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/>"

#endif
