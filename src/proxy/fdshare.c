/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/fdshare.h"
#include "base/error.h"
ncclResult_t kl_fdshare_offer(int fd, struct kl_fd_ticket *ticket) { (void)fd,(void)ticket; return KL_FAIL(ncclSystemError,"temp"); }
void kl_fdshare_withdraw(const struct kl_fd_ticket *ticket) {(void)ticket;}
ncclResult_t kl_fdshare_redeem(const struct kl_fd_ticket *ticket, uint64_t deadline, int *fd) {(void)ticket,(void)deadline,(void)fd; return KL_FAIL(ncclSystemError,"temp"); }
