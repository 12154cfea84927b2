/* SPDX-License-Identifier: Apache-2.0 */
/**
 * release.h - the release of NCCL to follow: every change of results between releases, by name.
 *
 * A release is a number, 23007 for 2.30.7. Code does not compare two of them: rules ask whether the release has a change
 * (kl_nccl_has). The table of release.c has the first release and a description of each change.
 *
 * Threads: const.
 * Source:  the specification of differences between versions; release.c names its sections.
 */
#ifndef KL_TOPO_RELEASE_H
#define KL_TOPO_RELEASE_H

#include <stdbool.h>

#define KL_NCCL_DEFAULT_TEXT "2.31.2" /* KL_NCCL_DEFAULT: the newest whose graphs agree with its recorded ones */

enum { KL_NCCL_2_26_3 = 22603, KL_NCCL_DEFAULT = 23102, KL_NCCL_TEXT = 16, KL_NCCL_EXPECTED = 512 };

enum kl_change {
    /* numbers of NVLink and of path types */
    KL_CHANGE_NVLINK_40_1,
    KL_CHANGE_P2C,
    KL_CHANGE_P2C_LEGS,
    KL_CHANGE_P2C_BY_CPU,
    KL_CHANGE_P2C_NEAREST,
    /* the machine and its paths */
    KL_CHANGE_ASIC_BY_NODE,
    KL_CHANGE_KEEP_NETS,
    KL_CHANGE_DEVICE_NODES,
    KL_CHANGE_GIN_NODES,
    KL_CHANGE_RMA_NODES,
    KL_CHANGE_PATH_BY_TYPE,
    KL_CHANGE_CPU_BY_BANDWIDTH,
    KL_CHANGE_GPU_FUNCTIONS,
    KL_CHANGE_MLOPART,
    KL_CHANGE_CURRENT_LINK,
    KL_CHANGE_FILE_HOST,
    KL_CHANGE_TRIM_NICS,
    KL_CHANGE_NODES_576,
    KL_CHANGE_NODES_640,
    KL_CHANGE_CPUID,
    KL_CHANGE_NO_LINK_SPEED,
    KL_CHANGE_NVLINK_FAR,
    KL_CHANGE_AMD_MODELS,
    KL_CHANGE_AMD_SOCKETS,
    KL_CHANGE_INTEL_GRANITE,
    KL_CHANGE_NVLINK_RUBIN,
    KL_CHANGE_MLOPART_GDR,
    /* NICs that are merged */
    KL_CHANGE_MERGED_ONLY,
    KL_CHANGE_MERGED_8,
    KL_CHANGE_MERGED_BRIDGE,
    KL_CHANGE_MERGED_CARD,
    KL_CHANGE_MERGED_WIDE,
    KL_CHANGE_MERGED_WIDE_ALONE,
    KL_CHANGE_MERGED_ONE_SOCKET,
    KL_CHANGE_MERGED_STAY,
    KL_CHANGE_MERGED_GO,
    KL_CHANGE_MERGE_POLICY,
    /* NICs */
    KL_CHANGE_PXN_C2C,
    KL_CHANGE_PXN_BY_LEVEL,
    KL_CHANGE_PXN_BEHIND_PXN,
    KL_CHANGE_PXN_C2C_DEFAULT,
    KL_CHANGE_PXN_NEEDS_GDR,
    KL_CHANGE_P2P_PXN_C2C,
    KL_CHANGE_GDR_C2C_DEFAULT,
    KL_CHANGE_GDR_LEVEL_P2C,
    KL_CHANGE_FLUSH_C2C,
    KL_CHANGE_NETDEVS_POLICY,
    KL_CHANGE_NET_LIST_LIMIT,
    KL_CHANGE_NET_BY_RAIL,
    KL_CHANGE_ABSENT_NOT_NET,
    /* the search */
    KL_CHANGE_INTRA_18,
    KL_CHANGE_INTRA_45,
    KL_CHANGE_INTER_47_9,
    KL_CHANGE_INTER_45_1,
    KL_CHANGE_INTER_96,
    KL_CHANGE_INTER_80,
    KL_CHANGE_INTER_86,
    KL_CHANGE_NO_WAY_DIS,
    KL_CHANGE_START_NEAREST,
    KL_CHANGE_START_LOCAL,
    KL_CHANGE_SCATTER_NETS,
    KL_CHANGE_INTER_UP_TO_SYS,
    KL_CHANGE_FALLBACK_NETS,
    KL_CHANGE_RAIL_PER_HOST,
    KL_CHANGE_RAILS,
    /* channels */
    KL_CHANGE_NVLS_24,
    KL_CHANGE_NVLS_PAIR,
    KL_CHANGE_NVLS_APART,
    KL_CHANGE_NVLS_BY_NETS,
    KL_CHANGE_CROSS_BY_RANK,
    KL_CHANGE_COLLNET_DIRECT_8,
    KL_CHANGE_COLLNET_NVLS_HEADS,
    KL_CHANGE_COLLNET_CHAIN_HEADS,
    KL_CHANGE_P2P_PARTS,
    KL_CHANGE_P2P_GROUPS,
    KL_CHANGE_P2P_OWN_GPU,
    KL_CHANGE_P2P_PEERS,
    KL_CHANGE_P2P_NVB,
    KL_CHANGE_NVLINK_EVERYWHERE,
    KL_CHANGE_NVLS_RUBIN,
    /* tuning */
    KL_CHANGE_LL128_SM,
    KL_CHANGE_LL128_P2C,
    KL_CHANGE_LL128_PXN,
    KL_CHANGE_LL128_MIXED,
    KL_CHANGE_NVLS_GATHERS,
    KL_CHANGE_COLLNET_GATHERS,
    KL_CHANGE_NVLS_MODEL,
    KL_CHANGE_TREE_BLACKWELL,
    KL_CHANGE_NVLS_TREE_43_8,
    KL_CHANGE_NVLS_TREE_80,
    KL_CHANGE_LL128_34_6,
    KL_CHANGE_LL128_34_5,
    KL_CHANGE_LL128_40,
    KL_CHANGE_NVLS_TREE_LATENCY,
    KL_CHANGE_PAT_TABLE,
    KL_CHANGE_NVLS_TREE_SHARE,
    KL_CHANGE_NVLS_RULES,
    KL_CHANGE_COLLNET_CHAIN_8,
    KL_CHANGE_NVLS_SIZE,
    KL_CHANGE_LATER_WINS,
    KL_CHANGE_NO_LATENCY,
    KL_CHANGE_RING_INTER,
    KL_CHANGE_TREE_LESSER,
    KL_CHANGE_PAT_LESSER,
    KL_CHANGE_NVLS_FEWEST,
    KL_CHANGE_ONE_PER_NODE,
    KL_CHANGE_RING_512,
    KL_CHANGE_NVLS_TREE_ARM,
    KL_CHANGE_RING_PLATEAU,
    KL_CHANGE_COLLNET_ALONE,
    KL_CHANGE_POWER_TREES,
    KL_CHANGE_ANY_SUM,
    /* cutting of operations */
    KL_CHANGE_CUT_REGISTERED,
    KL_CHANGE_CUT_32K,
    KL_CHANGES,
    KL_CHANGES_OF_TUNING = KL_CHANGE_LL128_SM /* the first change of tuning: earlier ones change graphs */
};

/** Does a release have a change? */
bool kl_nccl_has(int nccl, enum kl_change change);

/**
 * A mixed release: `nccl`, with the changes from `first` up to before `last` as in `other`. It can be followed like any
 * other, to see the effect of these changes. Both come from kl_nccl_parse or are KL_NCCL_DEFAULT; its text is `nccl`'s.
 */
int kl_nccl_mix(int nccl, int other, int first, int last);

/** Is it only assumed whether a release has a change? */
bool kl_nccl_unread(int nccl, enum kl_change change);

/** A mixed release: `nccl` with one change toggled. */
int kl_nccl_toggle_change(int nccl, enum kl_change change);

/**
 * The release of a text: "2.29.7"; "2.29" is the last of that line. A version between two known ones of a line counts as the
 * lower, and one before the line's first as the first. -1 for a text that is no version, and for unknown releases: older
 * than the first of all, newer than the last of their line, or of an unknown line.
 */
int kl_nccl_parse(const char *text);

/**
 * The release to follow for a version in use elsewhere: as above, or the newest known one that is not newer, or the first.
 * `otherwise` for NULL and for a text that is no version.
 */
int kl_nccl_nearest(const char *text, int otherwise);

/** The accepted releases, for messages: "expected a known release of NCCL: 2.26.3, ... or 2.32.3". Returns `text`. */
const char *kl_nccl_expected(char text[KL_NCCL_EXPECTED]);

/** "2.30.7" */
const char *kl_nccl_text(int nccl, char text[KL_NCCL_TEXT]);

/** Description of a change. */
struct kl_change_facts {
    int since;        /* the first release that has it */
    const char *name; /* "keep_nets" */
    const char *text; /* the difference, a sentence without its full stop */
    /* Releases, from the first to before the second, that are followed although their code was not read. 0: none. */
    int unread_from, unread_to;
};
const struct kl_change_facts *kl_change_facts(enum kl_change change);

#endif
