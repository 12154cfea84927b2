/* SPDX-License-Identifier: Apache-2.0 */
/**
 * sysfs_tree.h - recorded machines (topo/record.h) from one text file each, so that a record is one file of the project.
 *
 *     PATH : CONTENT      a file; \n in the content is a newline, and one more ends it
 *     PATH -> TARGET      a symbolic link
 *     PATH/               an empty directory
 */
#ifndef KOLO_SYSFS_TREE_H
#define KOLO_SYSFS_TREE_H

#include "tests/kolo_test.h"

#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Make the directories that lead to `path`. */
static inline void sysfs_tree_mkdirs(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        assert_true(!mkdir(path, 0700) || errno == EEXIST);
        *slash = '/';
    }
}

static inline void sysfs_tree_file(const char *path, const char *content)
{
    FILE *to = fopen(path, "w");

    assert_non_null(to);
    for (; *content; content++) {
        bool newline = content[0] == '\\' && content[1] == 'n';
        putc(newline ? '\n' : *content, to);
        content += newline;
    }
    putc('\n', to);
    assert_int_equal(fclose(to), 0);
}

static inline void sysfs_tree_line(const char *root, char *line)
{
    char path[4096];
    char *file = strstr(line, " : "), *link = strstr(line, " -> ");

    line[strcspn(line, "\n")] = 0;
    if (file && link) *(file < link ? &link : &file) = NULL; /* the first one counts */
    if (file || link) *(file ? file : link) = 0;
    assert_true(snprintf(path, sizeof path, "%s/%s", root, line) < (int)sizeof path);
    sysfs_tree_mkdirs(path);
    if (file) sysfs_tree_file(path, file + 3);
    if (link) assert_int_equal(symlink(link + 4, path), 0);
}

/** Lay out tests/data/sysfs/`name`.tree in a new directory; `root` receives its name. */
static inline void sysfs_tree_make(const char *name, char root[64])
{
    char path[256], line[8192];

    snprintf(path, sizeof path, "tests/data/sysfs/%s.tree", name);
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    strcpy(root, "/tmp/kolo_sysfs_XXXXXX");
    assert_non_null(mkdtemp(root));
    while (fgets(line, sizeof line, from)) sysfs_tree_line(root, line);
    fclose(from);
}

static inline int sysfs_tree_unlink(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void sysfs_tree_remove(const char *root)
{
    assert_int_equal(nftw(root, sysfs_tree_unlink, 16, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
