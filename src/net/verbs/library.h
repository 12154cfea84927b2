/* SPDX-License-Identifier: Apache-2.0 */
/**
 * library.h - libibverbs, loaded at run time: one table of its functions for the process, which stays loaded.
 *
 * NCCL_IBVERBS_LIB names the file; without it libibverbs.so and libibverbs.so.1 are tried.
 *
 * Threads:  any.
 */
#ifndef KL_NET_VERBS_LIBRARY_H
#define KL_NET_VERBS_LIBRARY_H

#include "include/nccl.h"
#include "net/verbs/abi.h"

struct kl_verbs_library {
    int (*fork_init)(void);
    struct kl_ibv_device **(*get_device_list)(int *n);
    void (*free_device_list)(struct kl_ibv_device **list);
    struct kl_ibv_context *(*open_device)(struct kl_ibv_device *device);
    int (*close_device)(struct kl_ibv_context *context);
    int (*query_device)(struct kl_ibv_context *context, struct kl_ibv_device_attr *attr);
    int (*query_port)(struct kl_ibv_context *context, uint8_t port, struct kl_ibv_port_attr *attr);
    int (*query_gid)(struct kl_ibv_context *context, uint8_t port, int index, union kl_ibv_gid *gid);
    struct kl_ibv_pd *(*alloc_pd)(struct kl_ibv_context *context);
    int (*dealloc_pd)(struct kl_ibv_pd *pd);
    struct kl_ibv_mr *(*reg_mr)(struct kl_ibv_pd *pd, void *addr, size_t length, int access);
    struct kl_ibv_mr *(*reg_dmabuf_mr)(struct kl_ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                       int access); /* NULL: an older one */
    int (*dereg_mr)(struct kl_ibv_mr *mr);
    struct kl_ibv_comp_channel *(*create_comp_channel)(struct kl_ibv_context *context);
    int (*destroy_comp_channel)(struct kl_ibv_comp_channel *channel);
    struct kl_ibv_cq *(*create_cq)(struct kl_ibv_context *context, int cqe, void *user,
                                   struct kl_ibv_comp_channel *channel, int vector);
    int (*destroy_cq)(struct kl_ibv_cq *cq);
    int (*get_cq_event)(struct kl_ibv_comp_channel *channel, struct kl_ibv_cq **cq, void **user);
    void (*ack_cq_events)(struct kl_ibv_cq *cq, unsigned n);
    struct kl_ibv_qp *(*create_qp)(struct kl_ibv_pd *pd, struct kl_ibv_qp_init_attr *attr);
    int (*modify_qp)(struct kl_ibv_qp *qp, struct kl_ibv_qp_attr *attr, int mask);
    int (*destroy_qp)(struct kl_ibv_qp *qp);
    int (*get_async_event)(struct kl_ibv_context *context, struct kl_ibv_async_event *event);
    void (*ack_async_event)(struct kl_ibv_async_event *event);
    const char *(*wc_status_str)(int status);
    const char *(*event_type_str)(int event);
    int (*query_port_speed)(struct kl_ibv_context *context, uint32_t port, uint64_t *hundreds); /* NULL: an older one */
};

/** The table, loaded at the first call; `file` "": the usual names. ncclSystemError: the reason. */
ncclResult_t kl_verbs_library_load(const char *file, const struct kl_verbs_library **library);

#endif
