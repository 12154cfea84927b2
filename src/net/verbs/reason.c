/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/reason.h"

#include "net/verbs/abi.h"

#include <errno.h>

static const char kolo_fault[] = "a fault of Kolo, or of the device's driver";

static const char cause_loc_prot[] =
    "memory was freed or unmapped while it was sent, or the IOMMU or ACS is in the way of the "
    "card";
static const char cause_loc_access[] =
    "the device may not write the memory that was posted: an IOMMU, ACS, or memory that was "
    "unmapped";

static const char cause_retry_exc[] =
    "a wrong GID (NCCL_IB_GID_INDEX), no route between these two addresses (other rails or VLANs), a firewall that "
    "drops UDP port 4791, an MTU that the way does not carry, a lossy network without PFC, or a peer that died; "
    "ping from one address to the other first";

static const char *const causes[KL_IBV_WC_STATUSES] = {
    [KL_IBV_WC_SUCCESS] = "none",
    [KL_IBV_WC_LOC_LEN] = kolo_fault,
    [KL_IBV_WC_LOC_QP_OP] = kolo_fault,
    [KL_IBV_WC_LOC_EEC_OP] = kolo_fault,
    [KL_IBV_WC_LOC_PROT] = cause_loc_prot,
    [KL_IBV_WC_FLUSHED] = "the queue pair had failed before; the device's events and the peer's log have the reason",
    [KL_IBV_WC_MW_BIND] = kolo_fault,
    [KL_IBV_WC_BAD_RESP] = "the peer's card or a device between both answers wrongly; compare firmware versions",
    [KL_IBV_WC_LOC_ACCESS] = cause_loc_access,
    [KL_IBV_WC_REM_INV_REQ] = "the peer's card refused the request; its log has the reason",
    [KL_IBV_WC_REM_ACCESS] = "the peer has freed the memory that was written, or the IOMMU or ACS is in the way there",
    [KL_IBV_WC_REM_OP] = "the peer's card could not complete it; its log and dmesg have the reason",
    [KL_IBV_WC_RETRY_EXC] = cause_retry_exc,
    [KL_IBV_WC_RNR_RETRY_EXC] = "the peer had posted no receive request: a fault of Kolo",
    [KL_IBV_WC_LOC_RDD] = kolo_fault,
    [KL_IBV_WC_REM_INV_RD] = kolo_fault,
    [KL_IBV_WC_REM_ABORT] = "the peer aborted the request; its log has the reason",
    [KL_IBV_WC_INV_EECN] = kolo_fault,
    [KL_IBV_WC_INV_EEC_STATE] = kolo_fault,
    [KL_IBV_WC_FATAL] = "the device has failed; see dmesg",
    [KL_IBV_WC_RESP_TIMEOUT] = "the peer's card does not answer; see its link (ibstat) and the switch",
    [KL_IBV_WC_GENERAL] = "the device reports no reason; see dmesg",
};

const char *kl_verbs_status_cause(int status)
{
    return status < 0 || status >= KL_IBV_WC_STATUSES ? "a status that Kolo does not know" : causes[status];
}

const char *kl_verbs_connect_cause(int err)
{
    switch (err) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
        return "the peer's address does not answer (ARP, neighbour discovery): it is down, or on another rail or VLAN";
    case ENETUNREACH:
        return "there is no route from this GID to the peer's: they are in different subnets";
    case EINVAL:
        return "the GID has gone from the port's table (the interface changed its address?), or the MTU is larger than "
               "the port's";
    case ENOMEM:
        return "the device or the limit of locked memory is exhausted";
    case EPERM:
    case EACCES:
        return "the process may not use the device; see /dev/infiniband";
    default:
        return "see dmesg, and the device's state (ibstat)";
    }
}
