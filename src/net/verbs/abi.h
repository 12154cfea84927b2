/* SPDX-License-Identifier: Apache-2.0 */
/**
 * abi.h - the part of libibverbs that Kolo uses: its structures and numbers, as rdma-core has had them for years.
 *
 * With declarations of its own, Kolo builds without rdma-core's headers, and one build runs with or without the library.
 * Members without a use here are left out as `unused`. verbs_abi_test compares everything with infiniband/verbs.h where
 * that is installed.
 *
 * Byte order: the CPU's, but for GIDs and kl_ibv_send_wr.imm, kl_ibv_wc.imm (big endian).
 * Source:     rdma-core 44; the specification of plugins and RDMA, C1.
 */
#ifndef KL_NET_VERBS_ABI_H
#define KL_NET_VERBS_ABI_H

#include <stddef.h>
#include <stdint.h>

enum kl_ibv_port_state { KL_IBV_PORT_DOWN = 1, KL_IBV_PORT_INIT, KL_IBV_PORT_ARMED, KL_IBV_PORT_ACTIVE };
enum { KL_IBV_LINK_INFINIBAND = 1, KL_IBV_LINK_ETHERNET = 2 };
enum { KL_IBV_PORT_NEEDS_GRH = 1 };
enum { KL_IBV_QPT_RC = 2 };
enum kl_ibv_qp_state { KL_IBV_QPS_RESET, KL_IBV_QPS_INIT, KL_IBV_QPS_RTR, KL_IBV_QPS_RTS, KL_IBV_QPS_ERR = 6 };
enum kl_ibv_opcode { KL_IBV_WRITE = 0, KL_IBV_WRITE_IMM = 1, KL_IBV_SEND = 2, KL_IBV_READ = 4 };
enum { KL_IBV_SEND_FENCE = 1, KL_IBV_SEND_SIGNALED = 2, KL_IBV_SEND_SOLICITED = 4, KL_IBV_SEND_INLINE = 8 };
enum { KL_IBV_LOCAL_WRITE = 1, KL_IBV_REMOTE_WRITE = 2, KL_IBV_REMOTE_READ = 4, KL_IBV_RELAXED = 1 << 20 };
enum { KL_IBV_WC_RDMA_WRITE = 1, KL_IBV_WC_RECV = 128, KL_IBV_WC_RECV_IMM = 129 };
enum { KL_IBV_WC_WITH_IMM = 2 };

/** Bits for modify_qp: which members of kl_ibv_qp_attr count. */
enum {
    KL_IBV_QP_STATE = 1,
    KL_IBV_QP_ACCESS = 8,
    KL_IBV_QP_PKEY = 0x10,
    KL_IBV_QP_PORT = 0x20,
    KL_IBV_QP_AV = 0x80,
    KL_IBV_QP_MTU = 0x100,
    KL_IBV_QP_TIMEOUT = 0x200,
    KL_IBV_QP_RETRY = 0x400,
    KL_IBV_QP_RNR = 0x800,
    KL_IBV_QP_RQ_PSN = 0x1000,
    KL_IBV_QP_MAX_RD = 0x2000,
    KL_IBV_QP_MIN_RNR = 0x8000,
    KL_IBV_QP_SQ_PSN = 0x10000,
    KL_IBV_QP_MAX_DEST_RD = 0x20000,
    KL_IBV_QP_DEST_QPN = 0x100000,
};

/** Statuses of completions. */
enum kl_ibv_status {
    KL_IBV_WC_SUCCESS,
    KL_IBV_WC_LOC_LEN,
    KL_IBV_WC_LOC_QP_OP,
    KL_IBV_WC_LOC_EEC_OP,
    KL_IBV_WC_LOC_PROT,
    KL_IBV_WC_FLUSHED,
    KL_IBV_WC_MW_BIND,
    KL_IBV_WC_BAD_RESP,
    KL_IBV_WC_LOC_ACCESS,
    KL_IBV_WC_REM_INV_REQ,
    KL_IBV_WC_REM_ACCESS,
    KL_IBV_WC_REM_OP,
    KL_IBV_WC_RETRY_EXC,
    KL_IBV_WC_RNR_RETRY_EXC,
    KL_IBV_WC_LOC_RDD,
    KL_IBV_WC_REM_INV_RD,
    KL_IBV_WC_REM_ABORT,
    KL_IBV_WC_INV_EECN,
    KL_IBV_WC_INV_EEC_STATE,
    KL_IBV_WC_FATAL,
    KL_IBV_WC_RESP_TIMEOUT,
    KL_IBV_WC_GENERAL,
    KL_IBV_WC_STATUSES
};

/** Asynchronous events. */
enum kl_ibv_event {
    KL_IBV_EVENT_CQ_ERR,
    KL_IBV_EVENT_QP_FATAL,
    KL_IBV_EVENT_QP_REQ_ERR,
    KL_IBV_EVENT_QP_ACCESS_ERR,
    KL_IBV_EVENT_DEVICE_FATAL = 8,
    KL_IBV_EVENT_PORT_ACTIVE,
    KL_IBV_EVENT_PORT_ERR,
    KL_IBV_EVENT_LID_CHANGE,
    KL_IBV_EVENT_PKEY_CHANGE,
    KL_IBV_EVENT_SM_CHANGE,
    KL_IBV_EVENT_GID_CHANGE = 18,
};

union kl_ibv_gid {
    uint8_t raw[16];
    uint64_t half[2];
};

struct kl_ibv_device {
    void *unused0[2];
    int node_type, transport_type;
    char name[64], dev_name[64], dev_path[256];
    char ibdev_path[256]; /* its directory in sysfs */
};

struct kl_ibv_cq;
struct kl_ibv_qp;
struct kl_ibv_wc;
struct kl_ibv_send_wr;
struct kl_ibv_recv_wr;

struct kl_ibv_context {
    struct kl_ibv_device *device;
    void *unused0[11];
    int (*poll_cq)(struct kl_ibv_cq *cq, int n, struct kl_ibv_wc *wc);
    int (*req_notify_cq)(struct kl_ibv_cq *cq, int solicited_only);
    void *unused1[12];
    int (*post_send)(struct kl_ibv_qp *qp, struct kl_ibv_send_wr *wr, struct kl_ibv_send_wr **bad);
    int (*post_recv)(struct kl_ibv_qp *qp, struct kl_ibv_recv_wr *wr, struct kl_ibv_recv_wr **bad);
    void *unused2[5];
    int cmd_fd, async_fd, num_comp_vectors;
    unsigned char unused3[44];
    void *unused4;
};

struct kl_ibv_device_attr {
    char fw_ver[64];
    uint64_t node_guid, sys_image_guid; /* big endian */
    uint64_t max_mr_size, page_size_cap;
    uint32_t vendor_id, vendor_part_id, hw_ver;
    int max_qp, max_qp_wr;
    unsigned device_cap_flags;
    int max_sge, max_sge_rd, max_cq, max_cqe, max_mr;
    unsigned char unused0[87];
    uint8_t phys_port_cnt;
    unsigned char unused1[4];
};

struct kl_ibv_port_attr {
    int state, max_mtu, active_mtu; /* MTUs: 1 is 256 bytes, 5 is 4096 */
    int gid_tbl_len;
    uint32_t port_cap_flags, max_msg_sz, unused0[2];
    uint16_t pkey_tbl_len, lid, sm_lid;
    uint8_t unused1[5];
    uint8_t active_width, active_speed, phys_state, link_layer, flags;
    uint16_t port_cap_flags2;
    uint8_t unused2[2];
};

struct kl_ibv_pd {
    struct kl_ibv_context *context;
    uint32_t handle;
};

struct kl_ibv_mr {
    struct kl_ibv_context *context;
    struct kl_ibv_pd *pd;
    void *addr;
    size_t length;
    uint32_t handle, lkey, rkey;
};

struct kl_ibv_comp_channel {
    struct kl_ibv_context *context;
    int fd, refcnt;
};

struct kl_ibv_cq {
    struct kl_ibv_context *context;
    struct kl_ibv_comp_channel *channel;
    void *cq_context;
    uint32_t handle;
    int cqe;
};

struct kl_ibv_qp {
    struct kl_ibv_context *context;
    void *qp_context;
    struct kl_ibv_pd *pd;
    struct kl_ibv_cq *send_cq, *recv_cq;
    void *srq;
    uint32_t handle, qp_num;
    int state, qp_type;
};

struct kl_ibv_qp_cap {
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};

struct kl_ibv_qp_init_attr {
    void *qp_context;
    struct kl_ibv_cq *send_cq, *recv_cq;
    void *srq;
    struct kl_ibv_qp_cap cap;
    int qp_type, sq_sig_all;
};

struct kl_ibv_ah_attr {
    union kl_ibv_gid dgid;
    uint32_t flow_label;
    uint8_t sgid_index, hop_limit, traffic_class, unused0;
    uint16_t dlid;
    uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};

struct kl_ibv_qp_attr {
    int qp_state, cur_qp_state, path_mtu, path_mig_state;
    uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
    unsigned access_flags;
    struct kl_ibv_qp_cap cap;
    struct kl_ibv_ah_attr ah, alt_ah;
    uint16_t pkey_index, alt_pkey_index;
    uint8_t en_sqd, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt,
        rnr_retry, alt_port_num, alt_timeout;
    uint32_t rate_limit;
};

struct kl_ibv_sge {
    uint64_t addr;
    uint32_t length, lkey;
};

struct kl_ibv_send_wr {
    uint64_t wr_id;
    struct kl_ibv_send_wr *next;
    struct kl_ibv_sge *sg_list;
    int num_sge, opcode;
    unsigned send_flags;
    uint32_t imm;
    uint64_t remote_addr;
    uint32_t rkey;
    unsigned char unused0[76];
};

struct kl_ibv_recv_wr {
    uint64_t wr_id;
    struct kl_ibv_recv_wr *next;
    struct kl_ibv_sge *sg_list;
    int num_sge;
};

struct kl_ibv_wc {
    uint64_t wr_id;
    int status, opcode; /* the opcode of a failed one is undefined */
    uint32_t vendor_err, byte_len, imm, qp_num, src_qp;
    unsigned wc_flags;
    uint16_t pkey_index, slid;
    uint8_t sl, dlid_path_bits;
};

struct kl_ibv_async_event {
    union {
        struct kl_ibv_cq *cq;
        struct kl_ibv_qp *qp;
        int port_num;
    } element;
    int event_type;
};

_Static_assert(sizeof(struct kl_ibv_device) == 664, "ABI");
_Static_assert(offsetof(struct kl_ibv_device, ibdev_path) == 408, "ABI");
_Static_assert(sizeof(struct kl_ibv_context) == 328, "ABI");
_Static_assert(offsetof(struct kl_ibv_context, poll_cq) == 96, "ABI");
_Static_assert(offsetof(struct kl_ibv_context, post_send) == 208, "ABI");
_Static_assert(offsetof(struct kl_ibv_context, async_fd) == 268, "ABI");
_Static_assert(sizeof(struct kl_ibv_device_attr) == 232, "ABI");
_Static_assert(offsetof(struct kl_ibv_device_attr, max_qp) == 108, "ABI");
_Static_assert(offsetof(struct kl_ibv_device_attr, phys_port_cnt) == 227, "ABI");
_Static_assert(sizeof(struct kl_ibv_port_attr) == 52, "ABI");
_Static_assert(offsetof(struct kl_ibv_port_attr, link_layer) == 46, "ABI");
_Static_assert(sizeof(struct kl_ibv_mr) == 48, "ABI");
_Static_assert(offsetof(struct kl_ibv_qp, qp_num) == 52, "ABI");
_Static_assert(sizeof(struct kl_ibv_qp_init_attr) == 64, "ABI");
_Static_assert(sizeof(struct kl_ibv_ah_attr) == 32, "ABI");
_Static_assert(sizeof(struct kl_ibv_qp_attr) == 144, "ABI");
_Static_assert(offsetof(struct kl_ibv_qp_attr, pkey_index) == 120, "ABI");
_Static_assert(offsetof(struct kl_ibv_qp_attr, rnr_retry) == 132, "ABI");
_Static_assert(sizeof(struct kl_ibv_send_wr) == 128, "ABI");
_Static_assert(offsetof(struct kl_ibv_send_wr, rkey) == 48, "ABI");
_Static_assert(sizeof(struct kl_ibv_recv_wr) == 32, "ABI");
_Static_assert(sizeof(struct kl_ibv_wc) == 48, "ABI");
_Static_assert(sizeof(struct kl_ibv_async_event) == 16, "ABI");

#endif
