/* SPDX-License-Identifier: Apache-2.0 */
/**
 * xml.h - documents in NCCL's XML formats: a tree of named elements with string attributes.
 *
 * Two formats share it: topologies (root `system`) and graphs (root `graphs`); a schema says which child elements a
 * parent may have. Elements that the schema does not know are skipped with everything below them. Elements are named
 * by their index in the document; an index stays valid, and its strings stay where they are, until the document is
 * freed (removing an element only unlinks it).
 *
 * Reading:  well-formed XML in UTF-8, ASCII or Latin-1, declarations and comments included. Bounded: 64 MiB, depth
 *           64, 2^20 elements, 64 attributes per element, 4096 bytes per name or value; document type declarations
 *           are refused, so nothing expands.
 * Writing:  two blanks per level, one element per line, attributes in the order they were first set.
 * Errors:   ncclInternalError for malformed text, a missing attribute, or a full document; the sentence begins with
 *           `FILE:LINE:`. ncclSystemError when a file cannot be read or memory is short.
 * Threads:  a document belongs to one thread at a time.
 * Source:   the topology specification, 4 and 5; XML 1.0.
 */
#ifndef KL_TOPO_XML_H
#define KL_TOPO_XML_H

#include "include/nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { KL_XML_NONE = -1, KL_XML_ROOT = 0 };

struct kl_xml;

/** One row per permitted (parent, child) pair; parent NULL names the root. Ends with an empty row. */
struct kl_xml_rule {
    const char *parent, *child;
};

extern const struct kl_xml_rule kl_xml_topo_schema[];
extern const struct kl_xml_rule kl_xml_graph_schema[];

/** A string to integer table; keys match as prefixes, the first match wins. Key NULL ends it and holds the default value. */
struct kl_xml_word {
    const char *key;
    int value;
};

/* ---- life ---- */

/** An empty document: no root yet. `name` labels errors: a file name, or a description of the document. */
ncclResult_t kl_xml_create(const char *name, struct kl_xml **xml);
void kl_xml_free(struct kl_xml *xml);

/** Parse `bytes` of text. Text that holds no element at all gives an empty document. */
ncclResult_t kl_xml_parse(const char *name, const char *text, size_t bytes, const struct kl_xml_rule *schema,
                          struct kl_xml **xml);

/** Read a whole file, "-" meaning standard input. free(*text). */
ncclResult_t kl_xml_read(const char *path, char **text, size_t *bytes);

/** The first element that was skipped because it stands below a wrong parent: "3: <gpu> stands directly in <cpu>"; "" without. */
const char *kl_xml_misplaced(const struct kl_xml *xml);

/** Read and parse a file, "-" meaning standard input. */
ncclResult_t kl_xml_load(const char *path, const struct kl_xml_rule *schema, struct kl_xml **xml);

/** Write everything reachable from the root. An error of the stream is ncclSystemError. */
ncclResult_t kl_xml_write(const struct kl_xml *xml, FILE *to);

/** The same into fresh memory (free() it), with a final zero that `bytes` does not count. */
ncclResult_t kl_xml_text(const struct kl_xml *xml, char **text, size_t *bytes);

/* ---- walking ---- */

const char *kl_xml_name(const struct kl_xml *xml);
bool kl_xml_empty(const struct kl_xml *xml);
int kl_xml_count(const struct kl_xml *xml); /* elements ever made: indices are below it */
const char *kl_xml_tag(const struct kl_xml *xml, int elem);
int kl_xml_parent(const struct kl_xml *xml, int elem);
int kl_xml_first(const struct kl_xml *xml, int elem); /* first child or KL_XML_NONE */
int kl_xml_next(const struct kl_xml *xml, int elem);  /* next sibling or KL_XML_NONE */
int kl_xml_line(const struct kl_xml *xml, int elem);  /* of the start tag; 0 if not read from text */

/** First child of `elem` with this tag, or KL_XML_NONE. */
int kl_xml_child(const struct kl_xml *xml, int elem, const char *tag);

/** Next sibling after `elem` with the same tag, or KL_XML_NONE. */
int kl_xml_next_same(const struct kl_xml *xml, int elem);

/** The element after `elem` in document order below `top`, or KL_XML_NONE. Begin with elem = top. */
int kl_xml_walk(const struct kl_xml *xml, int top, int elem);

/** First element in document order with tag and, unless key is NULL, attribute key=value; KL_XML_NONE if none. */
int kl_xml_find(const struct kl_xml *xml, const char *tag, const char *key, const char *value);

/* ---- attributes ---- */

int kl_xml_nattrs(const struct kl_xml *xml, int elem);
void kl_xml_attr_at(const struct kl_xml *xml, int elem, int i, const char **key, const char **value);

/** The value or NULL. */
const char *kl_xml_attr(const struct kl_xml *xml, int elem, const char *key);

/** Required values: ncclInternalError naming element and attribute when absent. Numbers as strtol base 0, garbage 0. */
ncclResult_t kl_xml_need(const struct kl_xml *xml, int elem, const char *key, const char **value);
ncclResult_t kl_xml_need_int(const struct kl_xml *xml, int elem, const char *key, int *value);
ncclResult_t kl_xml_need_word(const struct kl_xml *xml, int elem, const char *key, const struct kl_xml_word *words,
                              int *value);

/** Optional values with a default. */
int kl_xml_int(const struct kl_xml *xml, int elem, const char *key, int absent);
float kl_xml_float(const struct kl_xml *xml, int elem, const char *key, float absent);

/** A hexadecimal number (kl_parse_hex); 0 when absent. */
uint64_t kl_xml_hex(const struct kl_xml *xml, int elem, const char *key);

/** The host that the cpu around an element is of, or the cpu itself: its host_hash; 0 when there is none. */
uint64_t kl_xml_host_hash(const struct kl_xml *xml, int elem);

/* ---- changing ---- */

/** Append a child; parent KL_XML_NONE makes the root. */
ncclResult_t kl_xml_add(struct kl_xml *xml, int parent, const char *tag, int *elem);

/** An element without a place in the tree yet; give it one with kl_xml_place. */
ncclResult_t kl_xml_new(struct kl_xml *xml, const char *tag, int *elem);

/** Place an element among the children of `parent`: before the first sibling with a greater `busid`. */
void kl_xml_place(struct kl_xml *xml, int elem, int parent, const char *busid);

ncclResult_t kl_xml_set(struct kl_xml *xml, int elem, const char *key, const char *value);
ncclResult_t kl_xml_set_int(struct kl_xml *xml, int elem, const char *key, int value);
ncclResult_t kl_xml_set_hex(struct kl_xml *xml, int elem, const char *key, uint64_t value); /* "0" or 0x... */
void kl_xml_unset(struct kl_xml *xml, int elem, const char *key);

/** Take the element and everything below it out of the tree. */
void kl_xml_remove(struct kl_xml *xml, int elem);

/** Append a deep copy of `from`'s element `src` to `parent` (KL_XML_NONE: as the root of an empty document). */
ncclResult_t kl_xml_copy(struct kl_xml *xml, int parent, const struct kl_xml *from, int src, int *elem);

/** A document of its own with the same content. */
ncclResult_t kl_xml_clone(const struct kl_xml *from, struct kl_xml **xml);

/** An error about an element, `FILE:LINE: ` in front. */
ncclResult_t kl_xml_fail(const struct kl_xml *xml, int elem, ncclResult_t code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5), cold));

/* ---- operations of the topology pipeline ---- */

/**
 * Root `system` of version 1, or of version 2 with AMD's GPUs, as RCCL writes it: ncclInternalError when missing, ncclInvalidUsage
 * for another version.
 */
ncclResult_t kl_xml_check_system(const struct kl_xml *xml);

/**
 * Remove elements without a keep mark: a branch of cpu and pci elements stays if something below it has keep="1". These
 * marks are removed; elements below a mark stay. Every `net` marked keep="0" is removed; with `nics` also every net without
 * a mark and every `nic` without nets.
 */
void kl_xml_trim(struct kl_xml *xml, bool nics);

/**
 * Merge `from` into `xml`: children with equal tag and attributes are one, others are appended as they come. Elements
 * with `drop[element]` set are passed over with all that is below them; NULL drops nothing.
 */
ncclResult_t kl_xml_fuse(struct kl_xml *xml, const struct kl_xml *from, const bool *drop);

#endif
