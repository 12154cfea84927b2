/* SPDX-License-Identifier: Apache-2.0 */
/** leftovers.h - for a test that leaves something behind on purpose when it ends: leftovers.c looks at all of them. */
#ifndef KOLO_LEFTOVERS_H
#define KOLO_LEFTOVERS_H

/** How the names of threads, files and segments begin that may be left, NULL at the end. Defined by the test; else nothing is. */
extern const char *const kolo_test_keeps[];

/** In a forked child that ends by exit: look at it too, at what it gets from now on. */
void kolo_test_look_from_here(void);

#endif
