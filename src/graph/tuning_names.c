/* SPDX-License-Identifier: Apache-2.0 */
/* The table of algorithms, and names of protocols and functions. */
#include "graph/tuning.h"

const char *const kl_func_name[KL_FUNCS] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};

enum { ALL_REDUCE = 1 << KL_FUNC_ALL_REDUCE, GATHERS = 1 << KL_FUNC_ALL_GATHER | 1 << KL_FUNC_REDUCE_SCATTER };
enum { EVERY = (1 << KL_FUNCS) - 1, ANY = (1 << KL_PROTOS) - 1, SIMPLE = 1 << KL_PROTO_SIMPLE };

/*
 * One row for each algorithm: its name in settings and in NCCL's TUNING lines, and a struct kl_algo_info. CollNet has a
 * latency with any protocol, and a bandwidth with Simple only. The last rows are not modelled.
 */
/* clang-format off */
#define ALGOS(ROW)                                                                                                     \
    ROW(TREE,           "Tree",          "TREE",           KL_GRAPH_TREE,           ALL_REDUCE,           ANY,    false) \
    ROW(RING,           "Ring",          "RING",           KL_GRAPH_RING,           EVERY,                ANY,    false) \
    ROW(COLLNET_DIRECT, "CollNetDirect", "COLLNET_DIRECT", KL_GRAPH_COLLNET_DIRECT, ALL_REDUCE | GATHERS, ANY,    false) \
    ROW(COLLNET_CHAIN,  "CollNetChain",  "COLLNET_CHAIN",  KL_GRAPH_COLLNET_CHAIN,  ALL_REDUCE,           ANY,    false) \
    ROW(NVLS,           "NVLS",          "NVLS",           KL_GRAPH_NVLS,           ALL_REDUCE | GATHERS, SIMPLE, false) \
    ROW(NVLS_TREE,      "NVLSTree",      "NVLS_TREE",      KL_GRAPH_NVLS,           ALL_REDUCE,           SIMPLE, false) \
    ROW(PAT,            "PAT",           "PAT",            KL_GRAPH_TREE,           GATHERS,              SIMPLE, false) \
    ROW(ONE_SHOT,       "OneShot",       "ONE_SHOT",       KL_GRAPH_RING,           ALL_REDUCE,           SIMPLE, true)  \
    ROW(FLAT,           "Flat",          "FLAT",           KL_GRAPH_RING,           EVERY,                SIMPLE, true)  \
    ROW(ORDERED,        "Ordered",       "ORDERED",        0,                       0,                    0,      false) \
    ROW(ORDERED_RING,   "OrderedRing",   "ORDERED_RING",   0,                       0,                    0,      false) \
    ROW(PEER_DIRECT,    "Mapped",        "MAPPED",         0,                       0,                    0,      false)
/* clang-format on */
#define PROTOS(ROW)                                                                                                    \
    ROW(LL, "LL", "LL")                                                                                                \
    ROW(LL128, "LL128", "LL128")                                                                                       \
    ROW(SIMPLE, "Simple", "SIMPLE")
#define ALGO_NAME(id, name, log_name, graph, funcs, protos, one)     [KL_ALGO_##id] = name,
#define ALGO_LOG_NAME(id, name, log_name, graph, funcs, protos, one) [KL_ALGO_##id] = log_name,
#define ALGO_INFO(id, name, log_name, graph, funcs, protos, one)     [KL_ALGO_##id] = {graph, funcs, protos, one},
#define PROTO_NAME(id, name, log_name)                               [KL_PROTO_##id] = name,
#define PROTO_LOG_NAME(id, name, log_name)                           [KL_PROTO_##id] = log_name,

const char *const kl_algo_name[KL_ALGO_NAMES] = {ALGOS(ALGO_NAME)};
const char *const kl_algo_log_name[KL_ALGO_NAMES] = {ALGOS(ALGO_LOG_NAME)};
const struct kl_algo_info kl_algo_info[KL_ALGO_NAMES] = {ALGOS(ALGO_INFO)};
const char *const kl_proto_name[KL_PROTOS] = {PROTOS(PROTO_NAME)};
const char *const kl_proto_log_name[KL_PROTOS] = {PROTOS(PROTO_LOG_NAME)};
