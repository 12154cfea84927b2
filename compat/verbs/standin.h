/* SPDX-License-Identifier: Apache-2.0 */
/**
 * standin.h - the stand-in for libibverbs: devices without hardware, whose queue pairs write each other's memory over TCP.
 *
 * A queue pair's number has the TCP port of its process in the upper 16 of 24 bits, so a GID that maps an IPv4 address,
 * and a number, are all that is needed to reach it: a wrong GID is unreachable, as in reality.
 *
 *      device.c     devices, ports                          engine.c      the thread that plays the NIC
 *      memory.c     protection domains, memory regions      requester.c   sends work requests of a queue pair
 *      cq.c         completion queues, channels             responder.c   executes them at the other end
 *      qp.c         queue pairs and their states            wire.c        the TCP connections of both
 *      state.c      lock, settings, GIDs, events            completion.c, flush.c   how requests end
 *      fault.c      faults on request
 *
 * Threads:  all state is under one lock; functions of other files are called with it held, unless they say otherwise.
 */
#ifndef KOLO_VERBS_STANDIN_H
#define KOLO_VERBS_STANDIN_H

#include "src/net/verbs/abi.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VS_EXPORT __attribute__((visibility("default")))

enum { VS_MAX_DEVICES = 8, VS_MAX_INLINE = 512, VS_GIDS = 8, VS_QPS_OF_PORT = 256 };

extern pthread_mutex_t vs_lock;
void vs_enter(void);
void vs_leave(void);

/* ---- settings ---- */

struct vs_settings {
    int devices, mtu, inline_bytes, speed_mbps;
    uint32_t max_msg;
    bool infiniband;
    struct in_addr address;
    const char *sysfs; /* "": none */
};

/** KOLO_VERBS_*, read once. */
const struct vs_settings *vs_settings(void);

/* ---- objects; the ABI's structure comes first ---- */

struct vs_context {
    struct kl_ibv_context ib;
    struct kl_ibv_device device;
    int events; /* end of the pipe whose other end is ib.async_fd */
    struct vs_mr *mrs;
};

struct vs_mr {
    struct kl_ibv_mr ib;
    int access;
    unsigned char *map; /* of a DMA-BUF; NULL: the memory is at its address */
    struct vs_mr *next;
};

struct vs_channel {
    struct kl_ibv_comp_channel ib;
    int in; /* end of the pipe whose other end is ib.fd */
};

struct vs_cq {
    struct kl_ibv_cq ib;
    unsigned char room[160]; /* a program that was compiled with rdma-core's header may look further */
    struct kl_ibv_wc *wc;    /* ring of ib.cqe */
    unsigned head, tail;
    bool armed;
    unsigned events, acked;
};

/** A work request of a send queue. */
struct vs_send {
    uint64_t id, remote_addr;
    struct kl_ibv_sge sge;
    int opcode;
    unsigned flags;
    uint32_t imm, rkey;
    unsigned char data[VS_MAX_INLINE];
};

struct vs_recv {
    uint64_t id;
    struct kl_ibv_sge sge; /* length 0: none */
};

/** Before the data of a request, and after them in the other direction. */
struct vs_request {
    uint32_t opcode, imm, rkey, length;
    uint64_t remote_addr;
    uint32_t rnr_ms, unused;
};

/** Of a new TCP connection. */
struct vs_hello {
    uint32_t magic, to, from, psn;
};

enum { VS_MAGIC = 0x4b767273 };

/** A TCP connection as the engine sees it. */
struct vs_wire {
    int fd; /* -1: none */
    bool incoming;
    struct vs_qp *qp; /* of an incoming one: NULL before its hello */
    unsigned char head[sizeof(struct vs_request)];
    size_t have; /* bytes of `head` */
    uint32_t events;
    struct vs_wire *next; /* incoming ones of the process */
};

struct vs_qp {
    struct kl_ibv_qp ib;
    unsigned char room[160];
    struct kl_ibv_qp_attr attr;
    struct kl_ibv_qp_cap cap;
    bool signal_all;

    /* requester: [acked, posted), of which those before `sent` are on their way */
    struct vs_send *sq;
    uint64_t posted, sent, acked;
    struct vs_wire out;
    bool connecting, greeted;
    size_t part;       /* bytes sent of the request `sent`, with its head */
    uint32_t answer;   /* status of the oldest one, while it arrives */
    size_t answered;   /* bytes of it */
    uint64_t lost_at;  /* when the first unanswered try was made; 0: none */
    uint64_t again_at; /* next try to connect; 0: none */

    /* responder */
    struct vs_recv *rq;
    uint64_t recv_posted, recv_used;
    struct vs_wire *in;
    size_t taken;       /* bytes of the data of the current request */
    uint64_t rnr_until; /* it waits for a receive request until then; 0: it does not */

    struct vs_qp *next;
};

/* ---- engine.c ---- */

/** Start the thread for one more queue pair, and give it a number; 0 on success, or errno. */
int vs_engine_add(struct vs_qp *qp);

/** The queue pair is about to be freed. When none is left the thread ends; drops the lock for that. */
void vs_engine_remove(struct vs_qp *qp);

/** Do the thread's work for the queue pairs of a completion queue. */
void vs_engine_help(const struct kl_ibv_cq *cq);

/** The thread has something new to look at. */
void vs_engine_wake(void);

/* ---- wire.c ---- */

extern struct vs_wires {
    int epoll;
    struct vs_wire *incoming;
    struct vs_qp *qps;
} vs_wires;

/** Watch a wire for these events; or not at all any more, and close it. */
void vs_wire_watch(struct vs_wire *w, uint32_t events);
void vs_wire_close(struct vs_wire *w);

struct vs_qp *vs_wire_find(uint32_t number);

/* ---- requester.c, responder.c ---- */

/** Send as much as possible, and read answers. */
void vs_requester_progress(struct vs_qp *qp);

/** Milliseconds until it has something to do without an event; -1: nothing. */
int vs_requester_timer(const struct vs_qp *qp);

/** Read requests from an incoming wire. False: it was closed and freed. */
bool vs_responder_progress(struct vs_wire *w);
void vs_responder_timer(struct vs_qp *qp);

/* ---- flush.c, completion.c, state.c, memory.c ---- */

uint64_t vs_now_ms(void);

/** To the error state: all requests are flushed. */
void vs_qp_fail(struct vs_qp *qp);
void vs_qp_leave_wires(struct vs_qp *qp);
void vs_qp_flush(const struct vs_qp *qp, struct kl_ibv_cq *cq, uint64_t id, int opcode);

VS_EXPORT int ibv_query_gid(struct kl_ibv_context *context, uint8_t port, int index, union kl_ibv_gid *gid);

void vs_cq_push(struct kl_ibv_cq *cq, const struct kl_ibv_wc *wc);
void vs_device_event(struct kl_ibv_context *context, int type, void *element);

/** The range here, if it is inside the memory region of this key, with these rights; else NULL. */
unsigned char *vs_memory_at(const struct kl_ibv_context *context, uint32_t key, uint64_t addr, size_t bytes,
                            int access);

/* ---- fault.c ---- */

/**
 * Is there a fault for this opportunity of a place ("send", "reg_mr", ...)? Returns its number (a status, an errno, an
 * event) or 0. KOLO_VERBS_FAULT=PLACE:NUMBER@N,... means the Nth opportunity in this process; without @N each one.
 */
int vs_fault(const char *place);

/** Raise a counter below KOLO_VERBS_SYSFS, where it exists: that the hardware would raise for this status. */
void vs_fault_count(const struct kl_ibv_device *device, int status);

#endif
