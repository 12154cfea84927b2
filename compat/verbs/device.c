/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, ports, GIDs and asynchronous events of the stand-in. */
#include "compat/verbs/standin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_DEVICES = VS_MAX_DEVICES, MAX_QP = 65536, MAX_WR = 16384, MAX_CQE = 32767, MAX_MR = 65536 };
enum { ACTIVE_4X = 2, SPEED_EDR = 32, MTU_4096 = 5 };

/* ---- the list ---- */

static struct kl_ibv_device devices[MAX_DEVICES];

static void describe(int i)
{
    struct kl_ibv_device *d = &devices[i];

    *d = (struct kl_ibv_device){.node_type = 1};
    snprintf(d->name, sizeof d->name, "kolo%d", i);
    snprintf(d->dev_name, sizeof d->dev_name, "uverbs%d", i);
    if (*vs_settings()->sysfs)
        snprintf(d->ibdev_path, sizeof d->ibdev_path, "%.180s/class/infiniband/kolo%d", vs_settings()->sysfs, i);
}

VS_EXPORT struct kl_ibv_device **ibv_get_device_list(int *n);
VS_EXPORT struct kl_ibv_device **ibv_get_device_list(int *n)
{
    struct kl_ibv_device **list = calloc(MAX_DEVICES + 1, sizeof(void *));

    if (!list) return NULL;
    vs_enter();
    int error = vs_fault("devices");
    for (int i = 0; i < vs_settings()->devices; i++) {
        describe(i);
        list[i] = &devices[i];
    }
    if (n) *n = vs_settings()->devices;
    vs_leave();
    if (!error) return list;
    free(list);
    errno = error;
    return NULL;
}

VS_EXPORT void ibv_free_device_list(struct kl_ibv_device **list);
VS_EXPORT void ibv_free_device_list(struct kl_ibv_device **list)
{
    free(list);
}

VS_EXPORT const char *ibv_get_device_name(struct kl_ibv_device *device);
VS_EXPORT const char *ibv_get_device_name(struct kl_ibv_device *device)
{
    return device->name;
}

VS_EXPORT int ibv_fork_init(void);
VS_EXPORT int ibv_fork_init(void)
{
    return 0;
}

/* ---- contexts ---- */

int vs_poll_cq(struct kl_ibv_cq *cq, int n, struct kl_ibv_wc *wc);
int vs_req_notify_cq(struct kl_ibv_cq *cq, int solicited_only);
int vs_post_send(struct kl_ibv_qp *qp, struct kl_ibv_send_wr *wr, struct kl_ibv_send_wr **bad);
int vs_post_recv(struct kl_ibv_qp *qp, struct kl_ibv_recv_wr *wr, struct kl_ibv_recv_wr **bad);

VS_EXPORT struct kl_ibv_context *ibv_open_device(struct kl_ibv_device *device);
VS_EXPORT struct kl_ibv_context *ibv_open_device(struct kl_ibv_device *device)
{
    struct vs_context *c = calloc(1, sizeof *c);
    int fds[2];

    vs_enter();
    int error = vs_fault("open");
    vs_leave();
    if (!c || error || pipe2(fds, O_CLOEXEC)) {
        free(c);
        if (error) errno = error;
        return NULL;
    }
    c->device = *device;
    c->events = fds[1];
    c->ib = (struct kl_ibv_context){.device = &c->device,
                                    .poll_cq = vs_poll_cq,
                                    .req_notify_cq = vs_req_notify_cq,
                                    .post_send = vs_post_send,
                                    .post_recv = vs_post_recv,
                                    .cmd_fd = -1,
                                    .async_fd = fds[0],
                                    .num_comp_vectors = 1};
    return &c->ib;
}

VS_EXPORT int ibv_close_device(struct kl_ibv_context *context);
VS_EXPORT int ibv_close_device(struct kl_ibv_context *context)
{
    struct vs_context *c = (struct vs_context *)context;

    close(c->events);
    close(context->async_fd);
    free(c);
    return 0;
}

VS_EXPORT int ibv_query_device(struct kl_ibv_context *context, struct kl_ibv_device_attr *attr);
VS_EXPORT int ibv_query_device(struct kl_ibv_context *context, struct kl_ibv_device_attr *attr)
{
    uint64_t number_of = (uint64_t)(context->device->name[4] - '0') + 1;

    *attr = (struct kl_ibv_device_attr){.fw_ver = "1.0",
                                        .sys_image_guid = number_of << 56,
                                        .max_mr_size = UINT64_MAX,
                                        .max_qp = MAX_QP,
                                        .max_qp_wr = MAX_WR,
                                        .max_sge = 1,
                                        .max_cq = MAX_QP,
                                        .max_cqe = MAX_CQE,
                                        .max_mr = MAX_MR,
                                        .phys_port_cnt = 1};
    return 0;
}

VS_EXPORT int ibv_query_port(struct kl_ibv_context *context, uint8_t port, struct kl_ibv_port_attr *attr);
VS_EXPORT int ibv_query_port(struct kl_ibv_context *context, uint8_t port, struct kl_ibv_port_attr *attr)
{
    const struct vs_settings *s = vs_settings();

    (void)context;
    if (port != 1) return EINVAL;
    *attr = (struct kl_ibv_port_attr){.state = KL_IBV_PORT_ACTIVE,
                                      .max_mtu = MTU_4096,
                                      .active_mtu = s->mtu,
                                      .gid_tbl_len = VS_GIDS,
                                      .max_msg_sz = s->max_msg,
                                      .lid = s->infiniband ? 1 : 0,
                                      .active_width = ACTIVE_4X,
                                      .active_speed = SPEED_EDR,
                                      .link_layer = s->infiniband ? KL_IBV_LINK_INFINIBAND : KL_IBV_LINK_ETHERNET};
    vs_enter();
    if (vs_fault("port_down")) attr->state = KL_IBV_PORT_DOWN;
    vs_leave();
    return 0;
}

/* In hundreds of Mb/s. */
VS_EXPORT int ibv_query_port_speed(struct kl_ibv_context *context, uint32_t port, uint64_t *speed);
VS_EXPORT int ibv_query_port_speed(struct kl_ibv_context *context, uint32_t port, uint64_t *speed)
{
    (void)context;
    if (port != 1) return EINVAL;
    *speed = (uint64_t)vs_settings()->speed_mbps / 100;
    return 0;
}

/* ---- events ---- */

VS_EXPORT int ibv_get_async_event(struct kl_ibv_context *context, struct kl_ibv_async_event *event);
VS_EXPORT int ibv_get_async_event(struct kl_ibv_context *context, struct kl_ibv_async_event *event)
{
    return read(context->async_fd, event, sizeof *event) == sizeof *event ? 0 : -1;
}

VS_EXPORT void ibv_ack_async_event(struct kl_ibv_async_event *event);
VS_EXPORT void ibv_ack_async_event(struct kl_ibv_async_event *event)
{
    (void)event;
}

/* ---- texts ---- */

VS_EXPORT const char *ibv_wc_status_str(int status);
VS_EXPORT const char *ibv_wc_status_str(int status)
{
    static const char *const texts[KL_IBV_WC_STATUSES] = {"success",
                                                          "local length error",
                                                          "local QP operation error",
                                                          "local EE context operation error",
                                                          "local protection error",
                                                          "Work Request Flushed Error",
                                                          "memory management operation error",
                                                          "bad response error",
                                                          "local access error",
                                                          "remote invalid request error",
                                                          "remote access error",
                                                          "remote operation error",
                                                          "transport retry counter exceeded",
                                                          "RNR retry counter exceeded",
                                                          "local RDD violation error",
                                                          "remote invalid RD request",
                                                          "aborted error",
                                                          "invalid EE context number",
                                                          "invalid EE context state",
                                                          "fatal error",
                                                          "response timeout error",
                                                          "general error"};

    return status < 0 || status >= KL_IBV_WC_STATUSES ? "unknown" : texts[status];
}

VS_EXPORT const char *ibv_event_type_str(int event);
VS_EXPORT const char *ibv_event_type_str(int event)
{
    switch (event) {
    case KL_IBV_EVENT_CQ_ERR:
        return "CQ error";
    case KL_IBV_EVENT_QP_FATAL:
        return "local work queue catastrophic error";
    case KL_IBV_EVENT_QP_REQ_ERR:
        return "invalid request local work queue error";
    case KL_IBV_EVENT_QP_ACCESS_ERR:
        return "local access violation work queue error";
    case KL_IBV_EVENT_DEVICE_FATAL:
        return "local catastrophic error";
    case KL_IBV_EVENT_PORT_ACTIVE:
        return "port active";
    case KL_IBV_EVENT_PORT_ERR:
        return "port error";
    case KL_IBV_EVENT_GID_CHANGE:
        return "GID table change";
    default:
        return "unknown event";
    }
}
