/* SPDX-License-Identifier: Apache-2.0 */
/** leftovers.h - for a test that leaves something behind on purpose when it ends: leftovers.c looks at all of them. */
#ifndef KOLO_LEFTOVERS_H
#define KOLO_LEFTOVERS_H

/** Prefixes of the names of threads, files and segments that may be left, and the number of each. */
struct kolo_test_keep {
    const char *name; /* NULL: the end */
    int most;
    int seen; /* 0 in the table */
};

/** Defined by the test; else nothing may be left. */
extern struct kolo_test_keep kolo_test_keeps[];

/* clang-format off */
/** Resources of ids that no rank has joined, for a while: they share the loop, with its three descriptors, and a listener
 * for each address of the host. */
#define KOLO_TEST_UNUSED_IDS {"kolo-loop", 1, 0}, {"anon_inode:", 3, 0}, {"socket:", 8, 0}
/* clang-format on */

/** In a forked child that ends by exit: check it too, for resources it gets from now on. */
void kolo_test_look_from_here(void);

#endif
