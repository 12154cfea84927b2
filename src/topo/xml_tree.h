/* SPDX-License-Identifier: Apache-2.0 */
/** xml_tree.h - how a document is kept; for the xml_*.c files only. */
#ifndef KL_TOPO_XML_TREE_H
#define KL_TOPO_XML_TREE_H

#include "topo/xml.h"

enum {
    KL_XML_MAX_BYTES = 64 << 20,
    KL_XML_MAX_DEPTH = 64,
    KL_XML_MAX_ELEMS = 1 << 20,
    KL_XML_MAX_ATTRS = 64,
    KL_XML_MAX_TEXT = 4096 /* one name or value */
};

struct kl_xml_attr {
    const char *key, *value;
};

struct kl_xml_elem {
    const char *tag;
    int parent, first, last, prev, next; /* KL_XML_NONE where there is none */
    int line;
    int nattrs, max_attrs;
    struct kl_xml_attr *attr; /* in `strings` */
};

/** Memory that is only given back as a whole, so that strings never move. */
struct kl_xml_block {
    struct kl_xml_block *next;
    size_t used, size;
    char data[];
};

struct kl_xml {
    const char *name;
    struct kl_xml_elem *elem;
    int nelems, max_elems;
    bool rooted;         /* element 0 exists and is the root */
    char misplaced[128]; /* the first known element below a wrong parent, with its line; "" without */
    struct kl_xml_block *strings;
    uint64_t compared; /* elements, by fusions into this document */
};

/** Like kl_xml_copy, without the children. */
ncclResult_t kl_xml_copy_flat(struct kl_xml *xml, int parent, const struct kl_xml *from, int src, int *elem);

#endif
