/* SPDX-License-Identifier: Apache-2.0 */
/** net_peer.c - another process with the same plugin, which receives one message and then does nothing, until it is stopped or killed. */
#include "tools/kolo/plugin/trial.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static bool connect_both(struct kl_trial *b, struct kl_trial_pair *p, unsigned char *handle)
{
    while (!p->send || !p->recv)
        if (!kl_trial_connect_once(b, p, handle) || !kl_trial_accept_once(b, p)) return false;
    return true;
}

static bool exchange(int to, int from, const unsigned char *own, unsigned char *other)
{
    return write(to, own, KL_TRIAL_HANDLE) == KL_TRIAL_HANDLE && read(from, other, KL_TRIAL_HANDLE) == KL_TRIAL_HANDLE;
}

static void be_peer(const char *file, int to, int from)
{
    struct kl_check_result result = {.verdict = KL_CHECK_OK};
    unsigned char other[KL_TRIAL_HANDLE];
    struct kl_trial_request q;
    struct kl_trial_pair p;
    struct kl_trial b;
    char data[64];

    if (!kl_trial_open(&b, file, &result) || !kl_trial_listen(&b, &p) || !exchange(to, from, p.handle, other) ||
        !connect_both(&b, &p, other) || !kl_trial_irecv(&b, &p, data, sizeof data, 0, &q))
        _exit(1);
    while (!q.done)
        if (!kl_trial_test(&b, &q)) _exit(1);
    if (write(to, "d", 1) < 0) _exit(1);
    for (;;) pause();
}

bool kl_trial_peer_start(struct kl_trial_peer *peer, const char *file, struct kl_check_result *result)
{
    int there[2], back[2];

    if (pipe(there) || pipe(back)) return kl_check_fails(result, "no pipe");
    *peer = (struct kl_trial_peer){.pid = fork(), .from = there[0], .to = back[1]};
    if (!peer->pid) {
        close(back[1]);
        be_peer(file, there[1], back[0]);
    }
    close(there[1]);
    close(back[0]);
    return peer->pid > 0 || kl_check_fails(result, "cannot start a process");
}

bool kl_trial_peer_meet(struct kl_trial *b, struct kl_trial_peer *peer, struct kl_trial_pair *p)
{
    static char data[64];
    unsigned char other[KL_TRIAL_HANDLE];
    struct kl_trial_request s;
    char byte;

    if (!kl_trial_listen(b, p)) return false;
    if (!exchange(peer->to, peer->from, p->handle, other))
        return kl_check_fails(b->result, "the peer could not listen");
    if (!connect_both(b, p, other) || !kl_trial_isend(b, p, data, sizeof data, 0, &s)) return false;
    while (!s.done)
        if (!kl_trial_test(b, &s)) return false;
    return read(peer->from, &byte, 1) == 1 || kl_check_fails(b->result, "the peer got no message");
}

void kl_trial_peer_kill(struct kl_trial_peer *peer)
{
    kill(peer->pid, SIGKILL);
    waitpid(peer->pid, NULL, 0);
    close(peer->from);
    close(peer->to);
}
