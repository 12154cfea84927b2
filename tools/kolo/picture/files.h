/* SPDX-License-Identifier: Apache-2.0 */
/** files.h - the files of picture/, made part of the tool by cmake/Embed.cmake. */
#ifndef KOLO_TOOL_PICTURE_FILES_H
#define KOLO_TOOL_PICTURE_FILES_H

extern const char kl_picture_drawing_css[];
extern const char kl_picture_order_css[];
extern const char kl_picture_order_js[];
extern const char kl_picture_page_css[];
extern const char kl_picture_page_js[];
extern const char kl_picture_theme_js[];

#endif
