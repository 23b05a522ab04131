/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* A context, and what client and server have in common: options, clock, randomness, addresses. */
#ifndef IBTRS_USER_CTX_H
#define IBTRS_USER_CTX_H

#include <pthread.h>
#include <sys/socket.h>
#include <ibtrs/addr.h>
#include "ibtrs/user/libibtrs.h"

/**
 * struct ibtrs_ctx - what makes paths of sessions and keeps them alive
 * @lock: over everything of its sessions but their queues; taken before the lock of a queue
 * @news: something has changed that a caller may wait for
 * @ep: connections that are being made, and service connections
 * @wake: eventfd in @ep: a queue has found something for a step to do
 * @clts: sessions
 */
struct ibtrs_ctx {
	pthread_mutex_t lock;
	pthread_cond_t news;
	int ep;
	int wake;
	bool threaded;
	bool stop;
	pthread_t thread;
	struct ibtrs_clt *clts;
	uint64_t (*now_ms)(void *priv);
	void *priv;
};

u64 ibtrs_ctx_now(const struct ibtrs_ctx *ctx);
void ibtrs_ctx_wake(const struct ibtrs_ctx *ctx);
/*
 * Waits, with @ctx->lock held, until something may have changed, or for @ms milliseconds at most.
 * If no thread of the library steps the context, this does.
 */
void ibtrs_ctx_wait(struct ibtrs_ctx *ctx, u32 ms);

/* An eventfd in @ep, reported as @ptr. Return: it, or a negative errno. */
int ibtrs_user_eventfd(int ep, void *ptr);
void ibtrs_user_signal(int fd);
void ibtrs_user_settle(int fd);		/* undoes the signals so far */
u64 ibtrs_user_clock(void);		/* milliseconds of CLOCK_MONOTONIC */
u64 ibtrs_user_clock_us(void);
/* When a wait of so long ends; negative: U64_MAX, never; 0: 0, and no clock is read. */
u64 ibtrs_user_end(int timeout_ms);
/*
 * Wait until @fd is readable, for @ms at most if that is not negative. Return: 1: look again; 0: it
 * is @end; or a negative errno.
 */
int ibtrs_user_sleep(int fd, u64 end, int ms);
int ibtrs_user_random(void *to, size_t len);
u32 ibtrs_user_jitter(void);
/* Copies options of any size; -E2BIG: they say something that this library does not know. */
int ibtrs_user_opts(void *to, size_t size, const void *from);
/* Fills a struct of news that the caller's header may know a shorter or longer form of. */
int ibtrs_user_tell(void *to, const void *from, size_t size);
/* Words about @what, which is a path or a session; returns @err. */
__printf(4, 5)
int ibtrs_user_why(char why[IBTRS_WHY_LEN], int err, const char *what, const char *fmt, ...);

/**
 * struct ibtrs_place - where a server is
 * @rdma: at an RDMA adapter; else for sockets
 * @family: AF_INET, AF_INET6 or AF_UNIX
 * @path: of AF_UNIX
 */
struct ibtrs_place {
	bool rdma;
	int family;
	u16 port;
	struct ibtrs_addr addr;
	char path[108];
};

int ibtrs_place_parse(const char *text, struct ibtrs_place *p, const char **why);
/* Return: its length. */
socklen_t ibtrs_place_sockaddr(const struct ibtrs_place *p, struct sockaddr_storage *to);
/* The address alone; as it was if it is neither IPv4 nor IPv6. */
void ibtrs_place_peer(const struct sockaddr *from, char text[IBTRS_ADDR_STR_MAX]);
/* The address as RoCE has it in a GID: IPv6, or IPv4 mapped to it; of other families zeros. */
void ibtrs_place_gid(const struct sockaddr *at, u8 gid[IBTRS_GID_LEN]);
/* Why a socket does not do it: cause, and what to do. @err is negative. */
const char *ibtrs_place_words(int err, bool listens);
/* A socket that has begun to connect, or listens; or a negative errno. */
int ibtrs_place_connect(const struct ibtrs_place *p);
int ibtrs_place_listen(const struct ibtrs_place *p, int *port);

#endif
