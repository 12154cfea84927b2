/* SPDX-License-Identifier: Apache-2.0 */
/**
 * graph_xml.h - graphs as files: NCCL_GRAPH_FILE and NCCL_GRAPH_DUMP_FILE.
 *
 *     <graphs version="1">
 *       <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="20" speedinter="20" latencyinter="0"
 *              typeintra="NVL" typeinter="PIX" samechannels="1">
 *         <channel>
 *           <net dev="0"/> <gpu dev="0"/> <gpu dev="0x1"/> <net dev="0"/>
 *         </channel>
 *       </graph>
 *     </graphs>
 *
 * GPUs and NETs are named by host << 56 | device number, so a file is good for every communicator on the same
 * machine. The format is NCCL's; types C2C, NET and DIS, which it cannot write, are written by their names.
 *
 * Source: the graph specification, 6.
 */
#ifndef KL_GRAPH_GRAPH_XML_H
#define KL_GRAPH_GRAPH_XML_H

#include "graph/connect.h"
#include "topo/xml.h"

enum { KL_GRAPH_REASON = 512 };

/** A document with all five graphs; those that were not computed have no channels. Free with kl_xml_free. */
ncclResult_t kl_graphs_to_xml(const struct kl_graphs *graphs, const struct kl_topo *topo, struct kl_xml **xml);

/**
 * Take the graph that `request` asks for out of a document. `*graph` is NULL if there is none, or if it does not fit the
 * machine: then `reason` says why (FILE:LINE: ...), and is "" otherwise.
 */
ncclResult_t kl_graph_from_xml(const struct kl_xml *xml, const struct kl_topo *topo,
                               const struct kl_graph_request *request, struct kl_graph **graph,
                               char reason[KL_GRAPH_REASON]);

#endif
