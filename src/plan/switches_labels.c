/* SPDX-License-Identifier: Apache-2.0 */
/**
 * switches_labels.c - labels of Kubernetes' nodes that topograph sets, in any output of kubectl: YAML, JSON, a line for each node with
 * --show-labels, and `kubectl describe`. network.topology.nvidia.com/leaf=..., also with the older names block and datacenter.
 */
#include "base/error.h"
#include "plan/switches_make.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char HOSTNAME[] = "kubernetes.io/hostname";

/* The label that a key stands for; -1 for others. */
static int label_of(const char *key, size_t bytes)
{
    static const char *const prefixes[] = {"network.topology.nvidia.com/", "network.topology.kubernetes.io/"};
    static const struct {
        const char *word;
        enum kl_switch_label label;
    } words[] = {{"accelerator", KL_LABEL_ACCELERATOR},
                 {"leaf", KL_LABEL_LEAF},
                 {"block", KL_LABEL_LEAF},
                 {"spine", KL_LABEL_SPINE},
                 {"core", KL_LABEL_CORE},
                 {"datacenter", KL_LABEL_CORE}};

    for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++) {
        const size_t n = strlen(prefixes[p]);

        if (bytes <= n || strncmp(key, prefixes[p], n)) continue;
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (strlen(words[i].word) == bytes - n && !strncmp(key + n, words[i].word, bytes - n))
                return (int)words[i].label;
    }
    return -1;
}

/* ---- a node ---- */

static ncclResult_t say(struct kl_switches_made *m, const char *name, const char *parent, bool host, int line)
{
    const char *kept = parent ? kl_switches_keep(m, parent) : NULL;

    if (parent && !kept) return KL_NOMEM("switches");
    return kl_switches_say(m, (struct kl_switch_said){.name = name, .parent = kept, .line = line, .host = host});
}

/* Switches lead to the network that bytes between hosts take; an NVLink domain counts where none is labelled. */
static ncclResult_t say_node(struct kl_switches_made *m, const struct kl_switch_node *n)
{
    static const int upward[] = {KL_LABEL_LEAF, KL_LABEL_SPINE, KL_LABEL_CORE};
    const char *below = n->name;
    bool host = true;

    if (!*below)
        return KL_FAIL(
            ncclInvalidUsage,
            "%s:%d: labels of a node without a name; give the output of kubectl get nodes from its first line on",
            m->file, n->line);
    for (size_t i = 0; i < sizeof upward / sizeof upward[0]; i++) {
        const char *label = n->label[upward[i]];

        if (!*label || !strcmp(label, below)) continue;
        KL_TRY(say(m, below, label, host, n->line));
        below = label;
        host = false;
    }
    const char *domain = host && *n->label[KL_LABEL_ACCELERATOR] ? n->label[KL_LABEL_ACCELERATOR] : NULL;

    KL_TRY(say(m, below, domain, host, n->line));
    return domain ? say(m, domain, NULL, false, n->line) : ncclSuccess;
}

/* ---- lines ---- */

struct reader {
    struct kl_switches_made *made;
    struct kl_switch_node node;
    bool any; /* the node has a label */
};

static void set(char field[256], const char *value, size_t bytes)
{
    snprintf(field, 256, "%.*s", (int)(bytes < 255 ? bytes : 255), value);
}

static ncclResult_t end_node(struct reader *r, int line)
{
    ncclResult_t rc = r->any ? say_node(r->made, &r->node) : ncclSuccess;

    r->node = (struct kl_switch_node){.line = line};
    r->any = false;
    return rc;
}

/* "key=value", "key: value": true if the key is a label of switches or the host's name. */
static bool take_label(struct reader *r, const char *key, size_t n, const char *value)
{
    const size_t bytes = strcspn(value, ", \t\r\"'");
    const int label = label_of(key, n);

    if (n == sizeof HOSTNAME - 1 && !strncmp(key, HOSTNAME, n)) return set(r->node.name, value, bytes), true;
    if (label < 0) return false;
    set(r->node.label[label], value, bytes);
    r->any = true;
    return true;
}

static void take_pairs(struct reader *r, const char *at)
{
    while (*at) {
        const size_t n = strcspn(at, ", \t=");

        if (at[n] == '=') take_label(r, at, n, at + n + 1);
        at += n;
        at += strcspn(at, ", \t");
        at += strspn(at, ", \t");
    }
}

static ncclResult_t read_line(struct reader *r, char *text, int line)
{
    const char *at = text + strspn(text, " \t-\"'");
    const size_t word = strcspn(at, " \t:=\"'");
    const char *value = at + word + strspn(at + word, " \t:\"'");

    if (!strncmp(text, "Name:", 5)) { /* kubectl describe */
        KL_TRY(end_node(r, line));
        return set(r->node.name, value, strcspn(value, " \t\r")), ncclSuccess;
    }
    if (word == 6 && !strncmp(at, "labels", 6)) return end_node(r, line);
    if (strchr("\"':", at[word]) && at[word] && take_label(r, at, word, value)) return ncclSuccess;
    if (word == 4 && !strncmp(at, "name", 4) && at[4] == ':' && r->any && !*r->node.name)
        return set(r->node.name, value, strcspn(value, " \t\r\"'")), ncclSuccess;
    if (!strstr(at, ".topology.")) return ncclSuccess;
    if (at == text && at[word] != '=' && strncmp(at, "Labels", 6)) { /* kubectl get nodes --show-labels */
        KL_TRY(end_node(r, line));
        set(r->node.name, at, strcspn(at, " \t"));
        take_pairs(r, at + strcspn(at, " \t"));
        return end_node(r, line);
    }
    take_pairs(r, at);
    return ncclSuccess;
}

ncclResult_t kl_switches_read_labels(struct kl_switches_made *m, char *text)
{
    struct reader r = {.made = m};
    char *rest = text, *one;
    int line = 1;

    for (; (one = strsep(&rest, "\n")); line++) KL_TRY(read_line(&r, one, line));
    return end_node(&r, line);
}

/* ---- JSON ---- */

static ncclResult_t read_node(struct kl_switches_made *m, const json_t *node)
{
    const json_t *metadata = json_object_get(node, "metadata");
    struct reader r = {.made = m, .node = {.line = 1}};
    const char *name = json_string_value(json_object_get(metadata, "name")), *key;
    json_t *value;

    json_object_foreach(json_object_get(metadata, "labels"), key, value)
    {
        if (json_is_string(value)) take_label(&r, key, strlen(key), json_string_value(value));
    }
    if (name) set(r.node.name, name, strlen(name));
    return end_node(&r, 1);
}

ncclResult_t kl_switches_read_json(struct kl_switches_made *m, const char *text, size_t bytes)
{
    json_error_t error;
    json_t *document = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error), *node;
    ncclResult_t rc = ncclSuccess;
    size_t i;

    if (!document) return KL_FAIL(ncclInvalidUsage, "%s:%d: no JSON: %s", m->file, error.line, error.text);
    const json_t *items = json_is_array(document) ? document : json_object_get(document, "items");

    if (!items) rc = read_node(m, document);
    json_array_foreach(items, i, node)
    {
        if (!rc) rc = read_node(m, node);
    }
    json_decref(document);
    return rc;
}
