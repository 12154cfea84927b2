/* SPDX-License-Identifier: Apache-2.0 */
/**
 * schema.h - the value of the key "schema" of each answer: a name and a version.
 *
 * A version may gain keys. It becomes another one when a key goes away or changes its meaning.
 */
#ifndef KL_ANSWER_SCHEMA_H
#define KL_ANSWER_SCHEMA_H

#define KL_SCHEMA_TOPO       "kolo.topo/1"
#define KL_SCHEMA_PATH       "kolo.path/1"
#define KL_SCHEMA_GRAPH      "kolo.graph/1"
#define KL_SCHEMA_COLLECTIVE "kolo.collective/1"
#define KL_SCHEMA_SEARCH     "kolo.search/1"
#define KL_SCHEMA_PAIR       "kolo.pair/1"
#define KL_SCHEMA_NICS       "kolo.nics/1"
#define KL_SCHEMA_DIFF       "kolo.diff/1"
#define KL_SCHEMA_LOG        "kolo.log/1"
#define KL_SCHEMA_BENCH      "kolo.bench/1"
#define KL_SCHEMA_RECORD     "kolo.record/1"
#define KL_SCHEMA_ESTIMATE   "kolo.estimate/1"
#define KL_SCHEMA_MACHINES   "kolo.machines/1"
#define KL_SCHEMA_ORDER      "kolo.order/1"
#define KL_SCHEMA_ORDER_LINT "kolo.order_lint/1"
#define KL_SCHEMA_TRAFFIC    "kolo.traffic/1"
#define KL_SCHEMA_SWITCHES   "kolo.switches/1"

#endif
