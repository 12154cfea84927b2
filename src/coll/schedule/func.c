/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/schedule/func.h"

const struct kl_func_info kl_func_info[KL_FUNC_ROWS] = {
    [KL_FUNC_BROADCAST] = {.name = "Broadcast", .rooted = true},
    [KL_FUNC_REDUCE] = {.name = "Reduce", .reduces = true, .rooted = true},
    [KL_FUNC_ALL_GATHER] = {.name = "AllGather", .recv_parts = true},
    [KL_FUNC_REDUCE_SCATTER] = {.name = "ReduceScatter", .reduces = true, .send_parts = true},
    [KL_FUNC_ALL_REDUCE] = {.name = "AllReduce", .reduces = true},
    [KL_FUNC_ALL_TO_ALL] = {.name = "AlltoAll", .send_parts = true, .recv_parts = true},
    [KL_FUNC_SEND] = {.name = "Send"},
    [KL_FUNC_RECV] = {.name = "Recv"},
};
