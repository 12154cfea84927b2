/* SPDX-License-Identifier: Apache-2.0 */
/** handle.h - the structure behind a koloplanCluster_t. */
#ifndef KL_KOLOPLAN_HANDLE_H
#define KL_KOLOPLAN_HANDLE_H

#include "answer/opened.h"
#include "koloplan/request.h"

#include <pthread.h>

struct koloplanCluster {
    struct kl_cluster_request request; /* const once opened */
    struct kl_plan_texts *texts;       /* that it points to */
    pthread_mutex_t mutex;             /* guards `opened` */
    struct kl_opened opened;
    char **warning; /* const once opened */
    int nwarnings;
};

#endif
