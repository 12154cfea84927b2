/* SPDX-License-Identifier: Apache-2.0 */
/** trial.h - a net plugin that is checked: both ends of connections in one process, polled in turn. Each call is noted and timed. */
#ifndef KOLO_TOOL_PLUGIN_TRIAL_H
#define KOLO_TOOL_PLUGIN_TRIAL_H

#include "net/plugin/library.h"
#include "tools/kolo/plugin/call_clock.h"
#include "tools/kolo/plugin/call_times.h"
#include "tools/kolo/plugin/result.h"

#include <stdio.h>
#include <sys/types.h>

enum { KL_TRIAL_HANDLE = KL_NET_HANDLE, KL_TRIAL_TRIES = 3, KL_TRIAL_SLOW_MS = 20, KL_TRIAL_MOST_MS = 1 };

struct kl_trial {
    struct kl_check_result *result;
    struct kl_net_library library;
    struct kl_call_clock clock; /* of the thread that opened the trial */
    struct kl_call_times connecting, data;
};

struct kl_trial_pair {
    unsigned char handle[KL_TRIAL_HANDLE];
    void *listener, *send, *recv;
};

struct kl_trial_request {
    void *request;
    void *mr, *comm;
    int done, size;
};

/** Open the plugin, and initialise it. False: there is no net plugin, or it fails, which the result says. */
bool kl_trial_open(struct kl_trial *b, const char *file, struct kl_check_result *result);
void kl_trial_close(struct kl_trial *b);

/** Parts of a pair; false: the check has failed. */
bool kl_trial_listen(struct kl_trial *b, struct kl_trial_pair *p);
bool kl_trial_connect_once(struct kl_trial *b, struct kl_trial_pair *p, unsigned char *handle);
bool kl_trial_accept_once(struct kl_trial *b, struct kl_trial_pair *p);

/** All: listen, connect and accept in turn. And the end. */
bool kl_trial_pair(struct kl_trial *b, struct kl_trial_pair *p);
void kl_trial_unpair(struct kl_trial *b, struct kl_trial_pair *p);

/** Post a message, tried again while there is no request. */
bool kl_trial_isend(struct kl_trial *b, struct kl_trial_pair *p, const void *data, size_t bytes, int tag,
                    struct kl_trial_request *request);
bool kl_trial_irecv(struct kl_trial *b, struct kl_trial_pair *p, void *data, size_t bytes, int tag,
                    struct kl_trial_request *request);

/** Test once; and until both are done. False: the check has failed. */
bool kl_trial_test(struct kl_trial *b, struct kl_trial_request *request);
bool kl_trial_finish(struct kl_trial *b, struct kl_trial_request *one, struct kl_trial_request *other);

/** A message from one buffer to another. */
bool kl_trial_move(struct kl_trial *b, struct kl_trial_pair *p, const void *from, void *to, size_t bytes);

/** A process with the same plugin: a connection to it and one from it are in the pair, and it has got a message. Then it does nothing. */
struct kl_trial_peer {
    pid_t pid;
    int from, to; /* pipes */
};

/** Start it, before the plugin is opened here. */
bool kl_trial_peer_start(struct kl_trial_peer *peer, const char *file, struct kl_check_result *result);
bool kl_trial_peer_meet(struct kl_trial *b, struct kl_trial_peer *peer, struct kl_trial_pair *p);
void kl_trial_peer_kill(struct kl_trial_peer *peer);

/** The slowest call of the best of some tries: a pause of the whole machine is in one of them. */
struct kl_trial_pace {
    uint64_t most_ns, p99_ns, calls;
};
void kl_trial_pace_add(struct kl_trial_pace *pace, const struct kl_call_times *times);

/** Within the contract: 20 ms at most, and 99 of 100 calls within 1 ms? */
bool kl_trial_pace_judge(const struct kl_trial_pace *pace, struct kl_check_result *result);

/** Bytes that depend on their place, and on `seed`. */
void kl_trial_fill(void *data, size_t bytes, unsigned seed);
bool kl_trial_is_filled(const void *data, size_t bytes, unsigned seed);

/** Note a call of the plugin that begins; "": none is under way. */
void kl_trial_note(struct kl_trial *b, const char *call);

#endif
