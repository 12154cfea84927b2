/* SPDX-License-Identifier: Apache-2.0 */
/* The declarations of abi.h against rdma-core's header, where that is installed. */
#include "net/verbs/abi.h"

#include "tests/kolo_test.h"

#include <stdio.h>

#if __has_include(<infiniband/verbs.h>)
#include <infiniband/verbs.h>

#define SIZE(ours, theirs) assert_int_equal(sizeof(struct ours), sizeof(struct theirs))
#define PLACE(ours, member, theirs, reals)                                                                             \
    assert_int_equal(offsetof(struct ours, member), offsetof(struct theirs, reals));                                   \
    assert_int_equal(sizeof(((struct ours *)0)->member), sizeof(((struct theirs *)0)->reals))

static void structures(void **state)
{
    (void)state;
    SIZE(kl_ibv_device, ibv_device);
    SIZE(kl_ibv_context, ibv_context);
    SIZE(kl_ibv_device_attr, ibv_device_attr);
    SIZE(kl_ibv_port_attr, ibv_port_attr);
    SIZE(kl_ibv_mr, ibv_mr);
    SIZE(kl_ibv_qp_init_attr, ibv_qp_init_attr);
    SIZE(kl_ibv_qp_attr, ibv_qp_attr);
    SIZE(kl_ibv_ah_attr, ibv_ah_attr);
    SIZE(kl_ibv_send_wr, ibv_send_wr);
    SIZE(kl_ibv_recv_wr, ibv_recv_wr);
    SIZE(kl_ibv_sge, ibv_sge);
    SIZE(kl_ibv_wc, ibv_wc);
    SIZE(kl_ibv_async_event, ibv_async_event);
}

static void members(void **state)
{
    (void)state;
    PLACE(kl_ibv_device, name, ibv_device, name);
    PLACE(kl_ibv_device, ibdev_path, ibv_device, ibdev_path);
    PLACE(kl_ibv_context, poll_cq, ibv_context, ops.poll_cq);
    PLACE(kl_ibv_context, req_notify_cq, ibv_context, ops.req_notify_cq);
    PLACE(kl_ibv_context, post_send, ibv_context, ops.post_send);
    PLACE(kl_ibv_context, post_recv, ibv_context, ops.post_recv);
    PLACE(kl_ibv_context, async_fd, ibv_context, async_fd);
    PLACE(kl_ibv_device_attr, sys_image_guid, ibv_device_attr, sys_image_guid);
    PLACE(kl_ibv_device_attr, max_qp, ibv_device_attr, max_qp);
    PLACE(kl_ibv_device_attr, phys_port_cnt, ibv_device_attr, phys_port_cnt);
    PLACE(kl_ibv_port_attr, active_mtu, ibv_port_attr, active_mtu);
    PLACE(kl_ibv_port_attr, gid_tbl_len, ibv_port_attr, gid_tbl_len);
    PLACE(kl_ibv_port_attr, max_msg_sz, ibv_port_attr, max_msg_sz);
    PLACE(kl_ibv_port_attr, lid, ibv_port_attr, lid);
    PLACE(kl_ibv_port_attr, active_width, ibv_port_attr, active_width);
    PLACE(kl_ibv_port_attr, active_speed, ibv_port_attr, active_speed);
    PLACE(kl_ibv_port_attr, link_layer, ibv_port_attr, link_layer);
    PLACE(kl_ibv_port_attr, flags, ibv_port_attr, flags);
    PLACE(kl_ibv_qp_init_attr, send_cq, ibv_qp_init_attr, send_cq);
    PLACE(kl_ibv_qp_init_attr, cap, ibv_qp_init_attr, cap);
    PLACE(kl_ibv_qp_init_attr, qp_type, ibv_qp_init_attr, qp_type);
    PLACE(kl_ibv_qp_attr, path_mtu, ibv_qp_attr, path_mtu);
    PLACE(kl_ibv_qp_attr, rq_psn, ibv_qp_attr, rq_psn);
    PLACE(kl_ibv_qp_attr, dest_qp_num, ibv_qp_attr, dest_qp_num);
    PLACE(kl_ibv_qp_attr, access_flags, ibv_qp_attr, qp_access_flags);
    PLACE(kl_ibv_qp_attr, ah, ibv_qp_attr, ah_attr);
    PLACE(kl_ibv_qp_attr, pkey_index, ibv_qp_attr, pkey_index);
    PLACE(kl_ibv_qp_attr, min_rnr_timer, ibv_qp_attr, min_rnr_timer);
    PLACE(kl_ibv_qp_attr, port_num, ibv_qp_attr, port_num);
    PLACE(kl_ibv_qp_attr, timeout, ibv_qp_attr, timeout);
    PLACE(kl_ibv_qp_attr, rnr_retry, ibv_qp_attr, rnr_retry);
    PLACE(kl_ibv_ah_attr, traffic_class, ibv_ah_attr, grh.traffic_class);
    PLACE(kl_ibv_ah_attr, sgid_index, ibv_ah_attr, grh.sgid_index);
    PLACE(kl_ibv_ah_attr, dlid, ibv_ah_attr, dlid);
    PLACE(kl_ibv_ah_attr, is_global, ibv_ah_attr, is_global);
    PLACE(kl_ibv_send_wr, imm, ibv_send_wr, imm_data);
    PLACE(kl_ibv_send_wr, remote_addr, ibv_send_wr, wr.rdma.remote_addr);
    PLACE(kl_ibv_send_wr, rkey, ibv_send_wr, wr.rdma.rkey);
    PLACE(kl_ibv_wc, imm, ibv_wc, imm_data);
    PLACE(kl_ibv_wc, qp_num, ibv_wc, qp_num);
    PLACE(kl_ibv_mr, rkey, ibv_mr, rkey);
    PLACE(kl_ibv_qp, qp_num, ibv_qp, qp_num);
    PLACE(kl_ibv_cq, channel, ibv_cq, channel);
    PLACE(kl_ibv_comp_channel, fd, ibv_comp_channel, fd);
    PLACE(kl_ibv_async_event, event_type, ibv_async_event, event_type);
}

static void numbers(void **state)
{
    (void)state;
    assert_int_equal(KL_IBV_WC_RETRY_EXC, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(KL_IBV_WC_GENERAL, IBV_WC_GENERAL_ERR);
    assert_int_equal(KL_IBV_WC_FLUSHED, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(KL_IBV_WC_RECV_IMM, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(KL_IBV_WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
    assert_int_equal(KL_IBV_SEND_SIGNALED, IBV_SEND_SIGNALED);
    assert_int_equal(KL_IBV_SEND_INLINE, IBV_SEND_INLINE);
    assert_int_equal(KL_IBV_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE);
    assert_int_equal(KL_IBV_QPT_RC, IBV_QPT_RC);
    assert_int_equal(KL_IBV_QPS_ERR, IBV_QPS_ERR);
    assert_int_equal(KL_IBV_QP_DEST_QPN, IBV_QP_DEST_QPN);
    assert_int_equal(KL_IBV_QP_SQ_PSN, IBV_QP_SQ_PSN);
    assert_int_equal(KL_IBV_QP_MIN_RNR, IBV_QP_MIN_RNR_TIMER);
    assert_int_equal(KL_IBV_QP_MAX_DEST_RD, IBV_QP_MAX_DEST_RD_ATOMIC);
    assert_int_equal(KL_IBV_QP_MAX_RD, IBV_QP_MAX_QP_RD_ATOMIC);
    assert_int_equal(KL_IBV_EVENT_DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL);
    assert_int_equal(KL_IBV_EVENT_GID_CHANGE, IBV_EVENT_GID_CHANGE);
    assert_int_equal(KL_IBV_PORT_ACTIVE, IBV_PORT_ACTIVE);
    assert_int_equal(KL_IBV_LINK_ETHERNET, IBV_LINK_LAYER_ETHERNET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structures),
        cmocka_unit_test(members),
        cmocka_unit_test(numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    puts("skipped: infiniband/verbs.h is not installed");
    return KOLO_TEST_SKIP;
}
#endif
