/* SPDX-License-Identifier: Apache-2.0 */
/** switches_make.h - how a tree of switches is declared, line by line, and linked; for switches*.c only. */
#ifndef KL_PLAN_SWITCHES_MAKE_H
#define KL_PLAN_SWITCHES_MAKE_H

#include "include/nccl.h"

#include <stdbool.h>

struct kl_switches;

/** A line said: a host or switch `name`, below `parent` (NULL: not said). A mention alone does not make a switch. */
struct kl_switch_said {
    const char *name, *parent;
    int line;
    bool host, mention;
};

struct kl_switches_made {
    const char *file;
    struct kl_switch_said *said;
    char **text; /* owned */
    int nsaid, maxsaid, ntext, maxtext;
};

ncclResult_t kl_switches_say(struct kl_switches_made *made, struct kl_switch_said said);

/** A copy that lives as long as the tree; NULL when memory is short. */
const char *kl_switches_keep(struct kl_switches_made *made, const char *text);

/** Lists of hosts, or of switches (mentions), below `parent`. */
ncclResult_t kl_switches_say_list(struct kl_switches_made *made, const char *parent, const char *list, bool host,
                                  int line);

/** A node with labels: its leaf, spine and core, or NVLink domain; "" unknown. */
enum kl_switch_label { KL_LABEL_ACCELERATOR, KL_LABEL_LEAF, KL_LABEL_SPINE, KL_LABEL_CORE, KL_SWITCH_LABELS };
struct kl_switch_node {
    char name[256], label[KL_SWITCH_LABELS][256];
    int line;
};

/** Readers: lines of topology.conf; YAML; labels in lines, and in JSON. */
ncclResult_t kl_switches_read_conf(struct kl_switches_made *made, char *text);
ncclResult_t kl_switches_read_yaml(struct kl_switches_made *made, char *text);
ncclResult_t kl_switches_read_labels(struct kl_switches_made *made, char *text);
ncclResult_t kl_switches_read_json(struct kl_switches_made *made, const char *text, size_t bytes);

/** The declarations as a tree. */
ncclResult_t kl_switches_link(struct kl_switches *switches);

#endif
