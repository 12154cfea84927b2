/* SPDX-License-Identifier: Apache-2.0 */
/** times.h - the use of links over time (plan/timeline.h), as rows of colours from left to right. */
#ifndef KOLO_TOOL_PICTURE_TIMES_H
#define KOLO_TOOL_PICTURE_TIMES_H

#include "plan/timeline.h"
#include "tools/kolo/picture/words.h"

#include <stdio.h>

enum { KL_TIMES_W = 794 };

/** Two sentences: the operation, and the accuracy of the numbers. */
char *kl_words_times(const struct kl_timeline *t, char text[KL_WORDS]);
char *kl_words_times_worth(const struct kl_timeline *t, char text[KL_WORDS]);

/** Without a heading: KL_TIMES_W wide and so high, from (x, y) on. */
float kl_times_height(const struct kl_scene *s, const struct kl_timeline *t);
void kl_draw_times(const struct kl_scene *s, const struct kl_timeline *t, float x, float y, FILE *to);

#endif
