/* SPDX-License-Identifier: Apache-2.0 */
/**
 * words.h - texts of a picture about a cluster, its boxes, its wires and its graphs.
 *
 * Texts may hold any bytes of a file: escape them for the output format. All are cut to KL_WORDS bytes.
 */
#ifndef KOLO_TOOL_PICTURE_WORDS_H
#define KOLO_TOOL_PICTURE_WORDS_H

#include "base/text.h"
#include "tools/kolo/picture/scene.h"

enum { KL_WORDS = 512, KL_LOAD_STEPS = 5 };

/** "2 hosts, each with 8 GPUs on an NVSwitch and 8 NICs of 25 GB/s". */
char *kl_words_title(const struct kl_scene *s, char text[KL_WORDS]);

/** "ring: 8 channels of 20 GB/s each; the fullest link ..." */
char *kl_words_graph(const struct kl_scene *s, const struct kl_picture_graph *g, char text[KL_WORDS]);

/** "0, 8-11": numbers of channels, given as bits. */
char *kl_words_channels(uint64_t channels, char text[KL_WORDS]);

/** "ring, channel 0 (8: the same)", and the meaning of arrows and numbers for this kind of graph. */
char *kl_words_way(const struct kl_picture_graph *g, const struct kl_way *way, char text[KL_WORDS]);
const char *kl_words_arrows(int id);

/** The text for a number at a GPU: "3", "root", "head". */
char *kl_words_number(int id, int number, char text[KL_WORDS]);

/** The two lines of a tile or bar; the second may be empty. */
void kl_words_box(const struct kl_scene *s, const struct kl_box *b, char name[KL_WORDS], char below[KL_WORDS]);

/** All that is known about a box: lines, the first is its title. */
char *kl_words_box_facts(const struct kl_scene *s, const struct kl_box *b, char text[KL_WORDS]);

/** "NVLink GPU/0 - NVSwitch", "240 GB/s each way". */
char *kl_words_wire(const struct kl_scene *s, const struct kl_wire *w, char text[KL_WORDS]);
char *kl_words_wire_bw(const struct kl_scene *s, const struct kl_wire *w, char text[KL_WORDS]);

/** One direction (0 or 1) of a wire: "GPU/0 to NVSwitch: 160 of 240 GB/s (67 %)". */
char *kl_words_load(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_wire *w, int way,
                    char text[KL_WORDS]);

/** "NVLink", by enum kl_path_type. */
const char *kl_words_link(int type);

/** A link without a limit worth a number; and the width of a wire on the page. */
bool kl_is_local(float bw);
float kl_wire_width(float bw);

/** The part of a wire that is used, in the fuller direction; and the step of the colour scale for it, 0 to 4. */
double kl_wire_fullness(const struct kl_scene *s, const struct kl_picture_graph *g, const struct kl_wire *w);
int kl_load_step(double fullness);

#endif
