// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workers: a few threads for calls that may wait for a disk and that io_uring does not have. A disk
 * that does not answer keeps one of them per call; when all wait, others wait with them.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"

struct serverd_jobs {
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct serverd_job *todo;
	struct serverd_job **todo_end;
	struct serverd_job *ended;
	struct serverd_job **ended_end;
	int fd;
};

static void *job_worker(void *arg)
{
	struct serverd_jobs *j = arg;
	struct serverd_job *job;
	uint64_t one = 1;

	for (;;) {
		pthread_mutex_lock(&j->lock);
		while (!j->todo)
			pthread_cond_wait(&j->some, &j->lock);
		job = j->todo;
		j->todo = job->next;
		if (!j->todo)
			j->todo_end = &j->todo;
		pthread_mutex_unlock(&j->lock);
		job->run(job);
		job->next = NULL;
		pthread_mutex_lock(&j->lock);
		*j->ended_end = job;
		j->ended_end = &job->next;
		pthread_mutex_unlock(&j->lock);
		if (write(j->fd, &one, sizeof(one)) < 0)
			abort();	/* such a counter takes every write of 1 */
	}
	return NULL;
}

int serverd_jobs_start(struct serverd *d)
{
	struct serverd_jobs *j = calloc(1, sizeof(*j));
	sigset_t all, old;
	pthread_t t;
	int i, err = 0;

	if (!j)
		return -ENOMEM;
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->some, NULL);
	j->todo_end = &j->todo;
	j->ended_end = &j->ended;
	j->fd = d->jobs_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->jobs = j;
	if (j->fd < 0)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	for (i = 0; i < SERVERD_WORKERS && !err; i++) {
		err = -pthread_create(&t, NULL, job_worker, j);
		if (!err)
			pthread_detach(t);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return i > 1 ? 0 : err;		/* one is enough */
}

void serverd_job(struct serverd *d, struct serverd_job *job)
{
	struct serverd_jobs *j = d->jobs;

	job->next = NULL;
	pthread_mutex_lock(&j->lock);
	*j->todo_end = job;
	j->todo_end = &job->next;
	pthread_cond_signal(&j->some);
	pthread_mutex_unlock(&j->lock);
}

void serverd_jobs_done(struct serverd *d)
{
	struct serverd_jobs *j = d->jobs;
	struct serverd_job *job, *next;
	uint64_t n;

	if (read(j->fd, &n, sizeof(n)) < 0)
		return;
	pthread_mutex_lock(&j->lock);
	job = j->ended;
	j->ended = NULL;
	j->ended_end = &j->ended;
	pthread_mutex_unlock(&j->lock);
	for (; job; job = next) {
		next = job->next;
		job->done(d, job);
	}
}
